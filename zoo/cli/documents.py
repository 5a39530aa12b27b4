"""`zoo validate`, `zoo schema`, `zoo config` and `zoo show`: what a file and a part say, without training."""

from __future__ import annotations

import inspect
import json
from dataclasses import replace
from pathlib import Path

import click

from zoo.compare.comparison import Comparison, attempt, read_comparison, warnings
from zoo.compare.prepared import Prepared
from zoo.declare import yaml
from zoo.declare.library import Library, open_library
from zoo.declare.shape import Shape
from zoo.declare.signature import REQUIRED, Field, read, show
from zoo.declare.spec import MODEL_SLOTS
from zoo.faults import SpecError, nearest
from zoo.hooks import SLOTS

from . import discovered, discovery, warn
from .catalogue import complete_part
from .models import CONTEXT, FROM, SHAPE, show_model

SETS = click.option("--set", "sets", multiple=True, metavar="PATH=VALUE", help="Change a value; repeatable.")
FILE = click.argument("file", type=click.Path(path_type=Path))


def opened(file: Path, name: str | None = None, sets: tuple[str, ...] = ()) -> Library:
    """The library of a file under the options before the command, with a line for each plugin that does not work."""
    library = open_library(file, name=name, overrides=sets, **discovery())
    warn(library.registry)
    return library


def chosen(library: Library, name: str | None, prepared: Prepared | None = None) -> Comparison:
    """The comparison of that name, or the file's only one. Raises `SpecError`."""
    own = library.documents[0]
    names = list(own.value.get("comparisons", {}))
    if name is None and len(names) != 1:
        told = f"it holds {', '.join(names)}; name one" if names else "it holds no comparison"
        raise SpecError(f"{own.name}: {told}")
    return warned(library, name or names[0], prepared)


def warned(library: Library, name: str, prepared: Prepared | None = None) -> Comparison:
    """The comparison of that name, with a line on stderr for what is allowed and known to go wrong."""
    comparison = read_comparison(library, name, prepared)
    for line in warnings(comparison):
        click.echo(f"warning: {line}", err=True)
    return comparison


@click.command()
@FILE
@SETS
def validate(file: Path, sets: tuple[str, ...]) -> None:
    """Read FILE and report every fault in it, by file:line:column."""
    library = opened(file, sets=sets)
    own = Library(library.documents[:1], library.registry)
    reader = library.reader()
    for slot, node in own.section("defaults").items():
        reader.slot(node, slot) if slot in MODEL_SLOTS else reader.part(node, slot)
    for node in own.section("shapes").values():
        attempt(reader, lambda node=node: reader.shape(library.expand("shape", node, reader), Shape()))
    for node in own.section("models").values():
        attempt(reader, lambda node=node: built(reader, library.expand("model", node, reader)))
    for name in own.section("comparisons"):
        attempt(reader, lambda name=name: warned(library, name))
    reader.finish()
    counts = {kind: len(own.section(kind)) for kind in ("shapes", "models", "comparisons")}
    click.echo(f"{file}: no faults in {', '.join(f'{n} {kind}' for kind, n in counts.items())}")


def built(reader, node) -> None:
    """Read a model and, where it says at which sizes, put as many of its layers together as differ."""
    from zoo.model.builder import build_on_meta

    model = reader.model(node)
    if model and model.shape:
        build_on_meta(model, replace(model.shape, n_layers=min(model.shape.n_layers, model.period)), reader.registry)


@click.command()
def schema() -> None:
    """Print the JSON schema of a file, with the options of every variant."""
    from zoo.compare.schema import schema as make

    click.echo(json.dumps(make(discovered()), indent=2))


@click.command()
@FILE
@click.argument("name", required=False)
@SETS
def config(file: Path, name: str | None, sets: tuple[str, ...]) -> None:
    """Print the comparison NAME of FILE with every name resolved and every default filled in."""
    library = opened(file, name, sets)
    comparison = chosen(library, name)
    document = {"comparisons": {comparison.name: comparison.plain()}}
    plugins = {key: listed for key, listed in library.wishes().items() if key != "plugins" and listed}
    click.echo(yaml.dump({"plugins": plugins, **document} if plugins else document), nl=False)


def told(option: Field, registry) -> str:
    """What an option is if nobody writes it."""
    if option.default is REQUIRED:
        return "required"
    if option.slot is None or option.default is not None:
        return f"default {show(option.default)}"
    if option.slot in MODEL_SLOTS:
        return "default: the model's"
    reader = open_library(registry=registry).reader()
    return f"default {reader.part(reader.default(option.slot), option.slot).label()}"


@click.command("show")
@click.argument("part", metavar="SLOT:NAME", shell_complete=complete_part)
@FROM
@SHAPE
@CONTEXT
@click.option("--json", "as_json", is_flag=True, help="An object; of a model.")
def show_part(part: str, **asked) -> None:
    """Explain a variant: what it does, its formula, its paper, its options. Or a whole model, as `model:NAME`: its
    parts, its sizes and what it costs.
    """
    slot, colon, name = part.partition(":")
    if slot == "model" and colon:
        show_model(name, **asked)
        return
    if given := [f"--{key.removeprefix('as_')}" for key, value in asked.items() if value]:
        raise SpecError(f"{', '.join(given)}: only a model has these, not '{part}'")
    registry = discovered()
    if not colon or slot not in SLOTS:
        near = nearest(slot, SLOTS) if colon else f"; write SLOT:NAME, such as '{next(iter(SLOTS))}:{part}'"
        raise SpecError(f"there is no slot '{slot}'{near}" if colon else f"'{part}' names no slot{near}")
    entry = registry.find(slot, name)
    target = registry.load(entry)
    variant = entry.variant
    try:
        signature = read(target, slot, variant.fixed)
    except ValueError as error:
        raise SpecError(f"{part} of plugin '{entry.plugin}' cannot be used: {error}") from error
    click.echo(f"{click.style(f'{slot}:{variant.name}', bold=True)}  {variant.summary}")
    if text := inspect.getdoc(target):
        click.echo(f"\n{text}")
    if variant.fixed:
        click.echo(f"\nfixes: {', '.join(f'{k}={show(v)}' for k, v in variant.fixed.items())}")
    click.echo("\noptions:" if signature.options else "\noptions: none")
    width = max(map(len, signature.options), default=0)
    for option in signature.options.values():
        click.echo(f"  {option.name:{width}}  {option.expected} ({told(option, registry)})")
    click.echo(f"\npaper: {variant.paper or 'none'}")
    click.echo(f"from: {entry.distribution} {entry.version}, plugin '{entry.plugin}', {entry.source}")
