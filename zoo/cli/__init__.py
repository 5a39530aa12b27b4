"""The command `zoo`. Each command is imported when it is called, so that help comes at once.

Exit codes: 1 for a property that a variant lacks and for a regression, 2 for what the user wrote wrong, 3 for a run
that failed, 4 for a plugin that failed and was asked for or under `--strict-plugins`, 130 for what Ctrl-C stopped.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from zoo import SpecError, __version__
from zoo.faults import nearest

if TYPE_CHECKING:
    from zoo.registry import Registry

COMMANDS = {
    "list": ("catalogue:list_variants", "Show the variants that there are, by slot."),
    "show": ("documents:show_part", "Explain a variant, or a whole model and what it costs."),
    "diff": ("models:diff", "Show what differs between two models."),
    "plugins": ("catalogue:list_plugins", "Show the plugins, and what became of each."),
    "validate": ("documents:validate", "Report every fault of a file."),
    "config": ("documents:config", "Print a comparison with everything filled in."),
    "schema": ("documents:schema", "Print the JSON schema of a file."),
    "plan": ("runs:plan", "Show what would run and what it would cost."),
    "run": ("runs:run", "Train what is missing and print the table."),
    "merge": ("runs:merge", "Gather the runs of several machines."),
    "report": ("tables:report", "Draw the table again from the runs."),
    "baseline": ("tables:baseline", "Keep what a later report is compared to."),
    "import": ("weights:take", "Read a model of another library."),
    "export": ("weights:give", "Write a trained model as another library reads it."),
    "check": ("check:check", "Hold variants to what every variant must do."),
    "new-plugin": ("scaffold:new_plugin", "Write a package for a variant of your own."),
}
"""Name to `module:function` under `zoo.cli`, and what the help says of it."""


class Commands(click.Group):
    """The table above as a group; what a user wrote wrong becomes lines on stderr and an exit code."""

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

    def resolve_command(self, ctx: click.Context, args: list[str]):
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


def _disabled(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        if not value.startswith("no:") or value == "no:":
            raise click.BadParameter(f"'{value}' should be no:NAME")
    return tuple(value.removeprefix("no:") for value in values)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-p", "disable", multiple=True, metavar="no:NAME", callback=_disabled, help="Leave out a plugin.")
@click.option("--no-plugins", is_flag=True, help="Leave out all plugins but the zoo's own.")
@click.option("--strict-plugins", is_flag=True, help="Fail if a plugin does.")
@click.version_option(__version__, prog_name="zoo")
@click.pass_context
def main(ctx: click.Context, disable: tuple[str, ...], no_plugins: bool, strict_plugins: bool) -> None:
    """Combine, train and compare the parts of Transformers."""
    ctx.obj = {"disable": disable, "plugins": not no_plugins, "strict": strict_plugins}


def discovery() -> dict[str, Any]:
    """The options before the command, as keywords of `zoo.registry.discover`."""
    return dict(click.get_current_context().find_root().obj or {})


def discovered() -> Registry:
    """The registry that those options ask for, with a line on stderr for each plugin that does not work."""
    from zoo.registry import discover

    registry = discover(**discovery())
    warn(registry)
    return registry


def warn(registry: Registry) -> None:
    """A line on stderr for each plugin that does not work, and for each `-p no:NAME` that names none."""
    for plugin in registry.broken:
        click.echo(str(plugin), err=True)
    known = [name for plugin in registry.plugins for name in (plugin.plugin, plugin.distribution)]
    for name in discovery().get("disable", ()):
        if name not in known:
            click.echo(f"-p no:{name}: there is no such plugin{nearest(name, known)}", err=True)
