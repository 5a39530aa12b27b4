"""The command `zoo`. Each command is imported when it is called, so that help comes at once.

Exit codes: 1 for a failed check and for a regression, 2 for mistakes in files and options, 3 for a run that failed, 4
for a plugin that failed and was asked for or under `--strict-plugins`, 130 for what Ctrl-C stopped.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from zoo import SpecError, __version__
from zoo.faults import nearest

if TYPE_CHECKING:
    from zoo.registry import Registry

COMMANDS = {
    "list": ("catalogue:list_variants", "List variants by slot, or whole models."),
    "show": ("documents:show_part", "Explain a variant, or a model and its costs."),
    "diff": ("models:diff", "Compare two models part by part."),
    "plugins": ("catalogue:list_plugins", "List installed plugins and their status."),
    "validate": ("documents:validate", "Check a file and report every mistake."),
    "config": ("documents:config", "Print a comparison with all defaults filled in."),
    "schema": ("documents:schema", "Print the JSON schema of comparison files."),
    "plan": ("runs:plan", "Show what a comparison would train, and its cost."),
    "run": ("runs:run", "Train a comparison and print its table."),
    "merge": ("runs:merge", "Merge run folders of several machines."),
    "report": ("tables:report", "Print tables and write reports from run folders."),
    "baseline": ("tables:baseline", "Save a baseline for regression checks."),
    "import": ("weights:import_model", "Import a model of another library."),
    "export": ("weights:export_model", "Export a trained model for another library."),
    "check": ("check:check", "Run the conformance checks on variants."),
    "new-plugin": ("scaffold:new_plugin", "Create a plugin package for your own variant."),
}
"""Name to `module:function` under `zoo.cli`, and its line in the help."""


class Commands(click.Group):
    """The table above as a group; mistakes of the user become lines on stderr and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, _, function = COMMANDS[name][0].partition(":")
        return getattr(importlib.import_module(f"zoo.cli.{module}"), function)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [CompletionItem(n, help=text) for n, (_, text) in COMMANDS.items() if n.startswith(incomplete)]
        return names + click.Command.shell_complete(self, ctx, incomplete)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"there is no command '{args[0]}'{nearest(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except SpecError as error:
            from zoo.registry import PluginError

            click.echo(str(error), err=True)
            ctx.exit(4 if isinstance(error, PluginError) else 2)
        except KeyboardInterrupt:
            from zoo.execute.pool import STOPPED

            click.echo("stopped", err=True)
            ctx.exit(STOPPED)


def read_disabled(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        if not value.startswith("no:") or value == "no:":
            raise click.BadParameter(f"'{value}' should be no:NAME")
    return tuple(value.removeprefix("no:") for value in values)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-p", "disable", multiple=True, metavar="no:NAME", callback=read_disabled,
              help="Disable a plugin; repeatable.")  # fmt: skip
@click.option("--no-plugins", is_flag=True, help="Disable all third-party plugins.")
@click.option("--strict-plugins", is_flag=True, help="Fail if a plugin cannot be loaded.")
@click.version_option(__version__, prog_name="zoo")
@click.pass_context
def main(ctx: click.Context, disable: tuple[str, ...], no_plugins: bool, strict_plugins: bool) -> None:
    """Combine, train and compare the parts of Transformers.

    A slot is a place for one part of a model or of its training: position, norm, ffn, optimizer, … A variant is a part
    that fills it: rope, rmsnorm, swiglu, adamw, … A comparison, declared in a YAML file, trains models that differ in
    some slots and puts their scores in one table.

    \b
    Examples:
      zoo list position
      zoo show position:rope
      zoo run registry.yaml quickstart
    """
    ctx.obj = {"disable": disable, "plugins": not no_plugins, "strict": strict_plugins}


def discovery_options() -> dict[str, Any]:
    """The options before the command, as keywords of `zoo.registry.discover`."""
    return dict(click.get_current_context().find_root().obj or {})


def discover_variants() -> Registry:
    """The registry under those options, with a line on stderr for each plugin that does not work."""
    from zoo.registry import discover

    registry = discover(**discovery_options())
    warn(registry)
    return registry


def warn(registry: Registry) -> None:
    """Print a line on stderr for each plugin that does not work, and for each `-p no:NAME` without such a plugin."""
    for plugin in registry.broken:
        click.echo(str(plugin), err=True)
    known = [name for plugin in registry.plugins for name in (plugin.plugin, plugin.distribution)]
    for name in discovery_options().get("disable", ()):
        if name not in known:
            click.echo(f"-p no:{name}: there is no such plugin{nearest(name, known)}", err=True)


def print_note(line: str) -> None:
    """Print a line on stderr."""
    click.echo(line, err=True)


def to_json(value: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> str:
    plain = value if isinstance(value, Mapping) else list(value)
    return json.dumps(plain, indent=2, ensure_ascii=False)
