"""`zoo show model:NAME`, `zoo diff` and `zoo list models`: whole models, without training."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import click

from zoo.api.catalogue import find_models, show_model
from zoo.declare import yaml
from zoo.declare.library import Library, open_library

from . import discover_variants, discovery_options, to_json, warn
from .completion import complete_model

FROM = click.option("--file", type=click.Path(path_type=Path), help="File with models of your own; searched first.")
SHAPE = click.option("--shape", help="Sizes in place of the model's own: a name, or '{scale: 0.1}'.")
CONTEXT = click.option(
    "--context", type=click.IntRange(min=1), help="Tokens per row for the costs.  [default: max_len]"
)

LEFT = ("model", "published", "position", "norm", "residual", "attention", "ffn", "paper")
ABOUT = """
Every model of `registry.yaml` that others have published, counted without weights. Parameters count tied weights once;
FLOPs are of a forward pass over a row of so many tokens, per token: a multiply-add counts as two, and of
scores those count that the mask lets through. KV is what the cache grows by per token in float16. `make presets` writes
this file.
""".strip()


def open_models(file: Path | None) -> Library:
    """The library of a file, or of the zoo alone."""
    if file is None:
        return open_library(registry=discover_variants())
    library = open_library(file, **discovery_options())
    warn(library.registry)
    return library


def read_shape(shape: str | None) -> Any:
    """The value of `--shape`: a name, or sizes as in YAML."""
    return None if shape is None else yaml.scalar(shape, "--shape")


def print_model(name: str, file: Path | None, shape: str | None, context: int | None, as_json: bool) -> None:
    """Print the parts, sizes and costs of a model."""
    details = show_model(open_models(file), name, read_shape(shape), context)
    if as_json:
        click.echo(to_json(details.card.plain()))
    else:
        click.echo(click.style(details.title, bold=True) + details.body)


@click.command()
@click.argument("one", metavar="A", shell_complete=complete_model)
@click.argument("other", metavar="B", shell_complete=complete_model)
@FROM
@SHAPE
@CONTEXT
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of objects.")
def diff(one: str, other: str, file: Path | None, shape: str | None, context: int | None, as_json: bool) -> None:
    """Compare the models A and B: parts, sizes, parameters and costs that differ.

    \b
    Examples:
      zoo diff gpt2 llama-7b
      zoo diff gpt2-like llama-like --shape tiny
    """
    from tabulate import tabulate

    from zoo.model.card import list_differences, make_card

    library = open_models(file)
    rows = list_differences(*(make_card(library, name, read_shape(shape), context) for name in (one, other)))
    if as_json:
        click.echo(to_json(dict(zip(("what", "a", "b"), row, strict=True)) for row in rows))
    elif rows:
        click.echo(tabulate(rows, ["", one, other], disable_numparse=True, colalign=["left", "right", "right"]))
    else:
        click.echo(f"{one} and {other} do not differ")


def list_models(glob: str | None, as_json: bool) -> None:
    """Print the zoo's own models."""
    rows = find_models(glob)
    if as_json:
        click.echo(to_json(map(dataclasses.asdict, rows)))
        return
    width = max(len(row.name) for row in rows)
    for row in rows:
        count = "" if row.parameters is None else f"{row.parameters:,}"
        click.echo(f"{row.name:{width}}  {count:>15}  {click.style(row.paper or '', dim=True)}".rstrip())


def print_overview(glob: str | None) -> None:
    """Print the published models with their parts and their costs, as a Markdown table."""
    from zoo.model.card import OVERVIEW, make_card, summarise_card

    library = open_library(registry=discover_variants())
    names = [row.name for row in find_models(glob) if row.parameters is not None]
    rule = ["---" if head in LEFT else "---:" for head in OVERVIEW]
    click.echo(f"# Published models\n\n{ABOUT}\n")
    for row in (OVERVIEW, rule, *(summarise_card(make_card(library, name)) for name in names)):
        click.echo(f"| {' | '.join(row)} |")
