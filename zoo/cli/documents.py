"""`zoo validate`, `zoo schema`, `zoo config` and `zoo show`: what a file and a part say, without training."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from zoo.api.catalogue import show_variant
from zoo.faults import Fault, SpecError

from . import discover_variants, discovery_options, print_note, to_json, warn
from .completion import complete_comparison, complete_part
from .models import CONTEXT, FROM, SHAPE, print_model

if TYPE_CHECKING:
    from zoo.compare.comparison import Comparison
    from zoo.compare.prepared import Prepared
    from zoo.declare.library import Library

SETS = click.option("--set", "sets", multiple=True, metavar="PATH=VALUE",
                    help="Override a value of the file, such as train.steps=100; repeatable.")  # fmt: skip
FILE = click.argument("file", type=click.Path(path_type=Path))
NAME = click.argument("name", required=False, shell_complete=complete_comparison)


def open_file(file: Path, name: str | None = None, sets: tuple[str, ...] = ()) -> Library:
    """The library of a file under the options before the command, with a line for each plugin that does not work."""
    from zoo.api.comparisons import open_source

    library = open_source(file, name, sets, **discovery_options())
    warn(library.registry)
    return library


def open_comparison(file: Path, name: str | None, sets: tuple[str, ...]) -> tuple[Comparison, Prepared]:
    """The comparison that is meant and what its runs share, with a line on stderr for what is allowed and known to go
    wrong.
    """
    from zoo.api.comparisons import choose_comparison

    return choose_comparison(open_file(file, name, sets), name, print_warning)


def print_warning(line: str) -> None:
    print_note(f"warning: {line}")


@click.command()
@FILE
@SETS
@click.option("-q", "--quiet", is_flag=True, help="Print mistakes only.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object with faults, warnings and counts.")
@click.pass_context
def validate(ctx: click.Context, file: Path, sets: tuple[str, ...], quiet: bool, as_json: bool) -> None:
    """Check FILE and report every mistake, as file:line:column: what is wrong.

    Nothing is trained and no data is read. Exit with 2 if there is a mistake.

    \b
    Examples:
      zoo validate my.yaml
      zoo validate my.yaml --json
      zoo validate my.yaml --set train.lr=1e-3
    """
    from zoo.api.comparisons import check_document

    if as_json:
        found = describe_document(file, sets)
        click.echo(to_json(found))
        ctx.exit(2 if found["faults"] else 0)
    counts = check_document(open_file(file, sets=sets), (lambda line: None) if quiet else print_warning)
    if not quiet:
        click.echo(f"{file}: no faults in {', '.join(f'{n} {kind}' for kind, n in counts.items())}")


def describe_document(file: Path, sets: tuple[str, ...]) -> dict[str, Any]:
    """What `--json` prints; `counts` is null where the file has faults."""
    from zoo.api.comparisons import check_document

    warned: list[str] = []
    try:
        counts, faults = check_document(open_file(file, sets=sets), warned.append), []
    except SpecError as error:
        counts, faults = None, error.faults
    found = {"file": str(file), "faults": list(map(describe_fault, faults)), "warnings": warned, "counts": counts}
    return {"format": 1, **found}


def describe_fault(fault: Fault) -> dict[str, Any]:
    file, numbers = fault.place
    line, column = numbers if len(numbers) == 2 else (None, None)
    return {"text": fault.text, "path": list(fault.path), "file": file or None, "line": line, "column": column}


@click.command()
def schema() -> None:
    """Print the JSON schema of comparison files, with the options of every variant; editors complete and check by it.

    \b
    Examples:
      zoo schema > zoo.schema.json
    """
    from zoo.compare.schema import schema as make

    click.echo(to_json(make(discover_variants())))


@click.command()
@FILE
@NAME
@SETS
def config(file: Path, name: str | None, sets: tuple[str, ...]) -> None:
    """Print the comparison NAME of FILE with every name resolved and all defaults filled in, as YAML.

    NAME may be left out if FILE holds one comparison.

    \b
    Examples:
      zoo config registry.yaml quickstart
      zoo config my.yaml --set seeds=5 > full.yaml
    """
    from zoo.declare import yaml

    comparison, prepared = open_comparison(file, name, sets)
    document = {"comparisons": {comparison.name: comparison.plain()}}
    plugins = {
        key: listed for key, listed in prepared.library.describe_discovery().items() if key != "plugins" and listed
    }
    click.echo(yaml.dump({"plugins": plugins, **document} if plugins else document), nl=False)


@click.command("show")
@click.argument("part", metavar="SLOT:NAME", shell_complete=complete_part)
@FROM
@SHAPE
@CONTEXT
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object (models only).")
def show_part(part: str, file: Path | None, shape: str | None, context: int | None, as_json: bool) -> None:
    """Explain a variant: what it does, its formula, its options and its paper.

    Or a whole model, as model:NAME: its parts, sizes, parameters and costs. The options --file, --shape, --context and
    --json apply to models.

    \b
    Examples:
      zoo show position:rope
      zoo show model:llama-7b
      zoo show model:gpt2 --shape tiny --json
    """
    slot, colon, name = part.partition(":")
    if slot == "model" and colon:
        print_model(name, file, shape, context, as_json)
        return
    given = {"--file": file, "--shape": shape, "--context": context, "--json": as_json}
    if named := [option for option, value in given.items() if value]:
        raise SpecError(f"{', '.join(named)}: only a model has these, not '{part}'")
    details = show_variant(discover_variants(), part)
    click.echo(click.style(details.title, bold=True) + details.body)
