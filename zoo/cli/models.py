"""`zoo show model:NAME`, `zoo diff` and `zoo list models`: whole models, without training."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from zoo.declare import yaml
from zoo.declare.library import Library, open_library, own_document
from zoo.faults import SpecError, nearest

from . import discovered, discovery, warn

if TYPE_CHECKING:
    from zoo.model.card import Card

FROM = click.option("--file", type=click.Path(path_type=Path), help="A file of yours, whose models are meant first.")
SHAPE = click.option("--shape", help="Other sizes than its own: a name, or '{scale: 0.1}'.")
CONTEXT = click.option("--context", type=click.IntRange(min=1), help="Tokens in a row; max_len unless given.")

LEFT = ("model", "published", "position", "norm", "residual", "attention", "ffn", "paper")
ABOUT = """
Every model of `registry.yaml` that others have published, counted without weights. Parameters count tied weights once;
FLOPs are of a forward pass over a row of so many tokens, per token: a multiply-add counts as two, and of
scores those count that the mask lets through. KV is what the cache grows by per token in float16. `make presets` writes
this file.
""".strip()


def complete_model(ctx: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
    models = own_document().value["models"].items()
    papers = {name: model.get("published", {}).get("paper", "") for name, model in models}
    return [CompletionItem(name, help=paper) for name, paper in papers.items() if name.startswith(typed)]


def library_of(file: Path | None) -> Library:
    if file is None:
        return open_library(registry=discovered())
    library = open_library(file, **discovery())
    warn(library.registry)
    return library


def carded(library: Library, name: str, shape: str | None, context: int | None) -> Card:
    from zoo.model.card import make_card

    return make_card(library, name, None if shape is None else yaml.scalar(shape, "--shape"), context)


def show_model(name: str, file: Path | None, shape: str | None, context: int | None, as_json: bool) -> None:
    """Print the card of a model."""
    made = carded(library_of(file), name, shape, context)
    if as_json:
        click.echo(json.dumps(made.plain(), indent=2, ensure_ascii=False))
        return
    from zoo.model.card import compare_with_published, list_facts

    sections = list_facts(made)
    told = ", ".join(filter(None, [f"{made.total:,} parameters", compare_with_published(made)]))
    click.echo(f"{click.style(f'model:{name}', bold=True)}  {told}")
    width = max(len(head) for rows in sections.values() for head, _ in rows)
    for section, rows in sections.items():
        click.echo(f"\n{section}:")
        right = max(len(text) for _, text in rows) if section == "parameters" else 0
        for head, text in rows:
            click.echo(f"  {head:{width}}  {text:>{right}}{share(made, head) if right else ''}")
    if made.spec.published:
        click.echo(f"\npaper: {made.spec.published.paper or 'none'}")


def share(made: Card, part: str) -> str:
    return f"  {made.parameters[part] / made.total:6.1%}" if part in made.parameters else ""


@click.command()
@click.argument("one", metavar="A", shell_complete=complete_model)
@click.argument("other", metavar="B", shell_complete=complete_model)
@FROM
@SHAPE
@CONTEXT
@click.option("--json", "as_json", is_flag=True, help="A list of objects.")
def diff(one: str, other: str, file: Path | None, shape: str | None, context: int | None, as_json: bool) -> None:
    """Print what differs between the models A and B, part by part."""
    from tabulate import tabulate

    from zoo.model.card import list_differences

    library = library_of(file)
    cards = [carded(library, name, shape, context) for name in (one, other)]
    rows = list_differences(*cards)
    if as_json:
        click.echo(
            json.dumps([dict(zip(("what", "a", "b"), row, strict=True)) for row in rows], indent=2, ensure_ascii=False)
        )
    elif rows:
        click.echo(tabulate(rows, ["", one, other], disable_numparse=True, colalign=["left", "right", "right"]))
    else:
        click.echo(f"{one} and {other} do not differ")


def published(glob: str | None) -> list[dict[str, str | int | None]]:
    """The zoo's own models of such names, their published sizes and their papers. Raises `SpecError` for none."""
    models = own_document().value["models"]
    rows = [
        {"name": name, **{key: model.get("published", {}).get(key) for key in ("parameters", "paper")}}
        for name, model in models.items()
        if fnmatchcase(name, glob or "*")
    ]
    if not rows:
        raise SpecError(f"no model is called '{glob}'{nearest(glob, models)}")
    return rows


def list_models(glob: str | None, as_json: bool) -> None:
    """Print the zoo's own models."""
    rows = published(glob)
    if as_json:
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        count = "" if row["parameters"] is None else f"{row['parameters']:,}"
        click.echo(f"{row['name']:{width}}  {count:>15}  {click.style(row['paper'] or '', dim=True)}".rstrip())


def print_overview(glob: str | None) -> None:
    """The published models with their choices and their costs, as a Markdown table."""
    from zoo.model.card import OVERVIEW, make_card, summarise_card

    library = open_library(registry=discovered())
    names = [row["name"] for row in published(glob) if row["parameters"] is not None]
    rule = ["---" if head in LEFT else "---:" for head in OVERVIEW]
    click.echo(f"# Published models\n\n{ABOUT}\n")
    for row in (OVERVIEW, rule, *(summarise_card(make_card(library, name)) for name in names)):
        click.echo(f"| {' | '.join(row)} |")
