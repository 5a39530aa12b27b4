"""`zoo list` and `zoo plugins`: what is on offer, and from where."""

from __future__ import annotations

import dataclasses
from itertools import groupby

import click

from zoo.api.catalogue import MODELS, variant_record
from zoo.faults import SpecError
from zoo.hooks import SLOTS
from zoo.registry import HOME, Entry, Plugin, Registry

from . import discover_variants, to_json
from .completion import complete_name, complete_slot


@click.command("list")
@click.argument("slot", required=False, shell_complete=complete_slot)
@click.argument("glob", required=False, shell_complete=complete_name)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of objects.")
@click.option("--matrix", is_flag=True, help="List pairs of variants that cannot be combined, and why.")
@click.option("--markdown", is_flag=True, help="Print models as a Markdown table of parts and costs.")
def list_variants(slot: str | None, glob: str | None, as_json: bool, matrix: bool, markdown: bool) -> None:
    """List variants by slot, or whole models.

    SLOT is a place for one part of a model or of its training, such as position, norm, ffn or task; all slots are
    listed unless it is given. GLOB selects names: 'r*', 'myplugin:*'. A pattern alone searches all slots. SLOT may also
    be 'models', for the whole models that come with the zoo.

    \b
    Examples:
      zoo list
      zoo list position
      zoo list norm 'r*'
      zoo list models
    """
    if slot in MODELS:
        from . import models

        models.print_overview(glob) if markdown else models.list_models(glob, as_json)
        return
    if markdown:
        raise SpecError("--markdown is a table of models; write 'zoo list models --markdown'")
    registry = discover_variants()
    if matrix:
        list_refusals(registry, slot, as_json)
        return
    if slot and slot not in SLOTS and not glob and set(slot) & set("*?["):
        slot, glob = None, slot
    entries = registry.variants(slot, glob)
    if as_json:
        click.echo(to_json([dataclasses.asdict(variant_record(entry)) for entry in entries]))
        return
    for name, group in groupby(entries, lambda entry: entry.variant.slot):
        click.echo(f"{click.style(name, bold=True)}: {SLOTS[name].role}")
        rows = [(registry.spelling(entry), entry) for entry in group]
        width = max(len(written) for written, _ in rows)
        for written, entry in rows:
            click.echo(f"  {written:{width}}  {describe(entry)}")


def list_refusals(registry: Registry, slot: str | None, as_json: bool) -> None:
    """Print every refusal, or those that a slot has a part in; each as soon as it is found."""
    from zoo.model.compatibility import find_refusals

    found = (r for r in find_refusals(registry) if slot is None or any(part.startswith(f"{slot}:") for part in r.parts))
    if as_json:
        click.echo(to_json([{"parts": list(r.parts), "reason": r.reason} for r in found]))
        return
    for refusal in found:
        click.echo(f"{' x '.join(click.style(part, bold=True) for part in refusal.parts)}  {refusal.reason}")


@click.command("plugins")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of objects.")
def list_plugins(as_json: bool) -> None:
    """List installed plugins and their status.

    A plugin that cannot be loaded is listed with the reason; it does not affect the others.

    \b
    Examples:
      zoo plugins
      zoo -p no:myplugin plugins
    """
    plugins = discover_variants().plugins
    if as_json:
        click.echo(to_json(map(plugin_row, plugins)))
        return
    width = max((len(plugin.plugin) for plugin in plugins), default=0)
    for plugin in plugins:
        state = f"{plugin.variants} variants" if plugin.status == "ok" else f"{plugin.status}: {plugin.cause}"
        click.echo(f"{plugin.plugin:{width}}  {plugin.distribution} {plugin.version}  {plugin.source}  {state}")


def describe(entry: Entry) -> str:
    """The summary of a variant, with its paper and where it is from if not from the zoo."""
    foreign = "" if entry.distribution == HOME else f"from {entry.distribution} {entry.version}"
    notes = [note for note in (entry.variant.paper, foreign) if note]
    return entry.variant.summary + click.style("".join(f"  [{note}]" for note in notes), dim=True)


def plugin_row(plugin: Plugin) -> dict[str, str | int]:
    return {
        "name": plugin.plugin,
        "distribution": plugin.distribution,
        "version": plugin.version,
        "source": plugin.source,
        "status": plugin.status,
        "cause": plugin.cause,
        "variants": plugin.variants,
    }
