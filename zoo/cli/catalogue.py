"""`zoo list` and `zoo plugins`, and what a shell completes."""

from __future__ import annotations

import json
from itertools import groupby

import click
from click.shell_completion import CompletionItem

from zoo.faults import SpecError
from zoo.hooks import SLOTS
from zoo.registry import HOME, Entry, Plugin, Registry, discover

from . import discovered

MODELS = ("model", "models")
"""What may be said where a slot is, to mean whole models."""


def complete_slot(ctx: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
    places = {**SLOTS, "models": "Whole models, as published."}
    return [CompletionItem(slot, help=text) for slot, text in places.items() if slot.startswith(typed)]


def complete_name(ctx: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
    """The names of the slot that was typed before."""
    slot = ctx.params.get("slot")
    if slot in MODELS:
        return _models(typed)
    return [item for item in _items(slot if slot in SLOTS else None) if item.value.startswith(typed)]


def complete_part(ctx: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
    """`slot:name`, once the slot is there."""
    slot, colon, name = typed.partition(":")
    if not colon:
        return [CompletionItem(f"{item.value}:", help=item.help) for item in complete_place(slot)]
    found = _models("") if slot == "model" else _items(slot) if slot in SLOTS else []
    return [CompletionItem(f"{slot}:{i.value}", help=i.help) for i in found if i.value.startswith(name)]


def complete_place(typed: str) -> list[CompletionItem]:
    places = {**SLOTS, "model": "A whole model."}
    return [CompletionItem(place, help=text) for place, text in places.items() if place.startswith(typed)]


def _models(typed: str) -> list[CompletionItem]:
    from .models import complete_model

    return complete_model(None, None, typed)


def _items(slot: str | None) -> list[CompletionItem]:
    return [CompletionItem(entry.variant.name, help=entry.variant.summary) for entry in discover().variants(slot)]


@click.command("list")
@click.argument("slot", required=False, shell_complete=complete_slot)
@click.argument("glob", required=False, shell_complete=complete_name)
@click.option("--json", "as_json", is_flag=True, help="A list of objects.")
@click.option("--matrix", is_flag=True, help="The pairs of parts that refuse each other, and why.")
@click.option("--markdown", is_flag=True, help="Of models alone: a table of their choices and costs.")
def list_variants(slot: str | None, glob: str | None, as_json: bool, matrix: bool, markdown: bool) -> None:
    """Show the variants that there are, by slot.

    SLOT is one of the places of a model or a training: position, norm, ffn, task, ...; GLOB picks names, such as
    'r*' or 'myplugin:*'. A pattern alone looks in all slots. `zoo list models` shows the whole models that come with
    the zoo.
    """
    if slot in MODELS:
        from . import models

        models.print_overview(glob) if markdown else models.list_models(glob, as_json)
        return
    if markdown:
        raise SpecError("--markdown is a table of models; write 'zoo list models --markdown'")
    registry = discovered()
    if matrix:
        _list_refusals(registry, slot, as_json)
        return
    if slot and slot not in SLOTS and not glob and set(slot) & set("*?["):
        slot, glob = None, slot
    entries = registry.variants(slot, glob)
    if as_json:
        click.echo(_json([_variant_row(entry) for entry in entries]))
        return
    for name, group in groupby(entries, lambda entry: entry.variant.slot):
        click.echo(f"{click.style(name, bold=True)}: {SLOTS[name]}")
        rows = [(registry.spelling(entry), entry) for entry in group]
        width = max(len(written) for written, _ in rows)
        for written, entry in rows:
            click.echo(f"  {written:{width}}  {_described(entry)}")


def _list_refusals(registry: Registry, slot: str | None, as_json: bool) -> None:
    """Every refusal, or those that a slot has a part in; each as soon as it is found."""
    from zoo.model.compatibility import find_refusals

    found = (r for r in find_refusals(registry) if slot is None or any(part.startswith(f"{slot}:") for part in r.parts))
    if as_json:
        click.echo(_json([{"parts": list(r.parts), "reason": r.reason} for r in found]))
        return
    for refusal in found:
        click.echo(f"{' x '.join(click.style(part, bold=True) for part in refusal.parts)}  {refusal.reason}")


@click.command("plugins")
@click.option("--json", "as_json", is_flag=True, help="A list of objects.")
def list_plugins(as_json: bool) -> None:
    """Show the plugins, and what became of each."""
    plugins = discovered().plugins
    if as_json:
        click.echo(_json([_plugin_row(plugin) for plugin in plugins]))
        return
    width = max((len(plugin.plugin) for plugin in plugins), default=0)
    for plugin in plugins:
        state = f"{plugin.variants} variants" if plugin.status == "ok" else f"{plugin.status}: {plugin.cause}"
        click.echo(f"{plugin.plugin:{width}}  {plugin.distribution} {plugin.version}  {plugin.source}  {state}")


def _described(entry: Entry) -> str:
    foreign = "" if entry.distribution == HOME else f"from {entry.distribution} {entry.version}"
    notes = [note for note in (entry.variant.paper, foreign) if note]
    return entry.variant.summary + click.style("".join(f"  [{note}]" for note in notes), dim=True)


def _variant_row(entry: Entry) -> dict[str, str]:
    variant = entry.variant
    return {
        "slot": variant.slot,
        "name": variant.name,
        "summary": variant.summary,
        "paper": variant.paper,
        "plugin": entry.plugin,
        "distribution": entry.distribution,
        "version": entry.version,
        "source": entry.source,
    }


def _plugin_row(plugin: Plugin) -> dict[str, str | int]:
    return {
        "name": plugin.plugin,
        "distribution": plugin.distribution,
        "version": plugin.version,
        "source": plugin.source,
        "status": plugin.status,
        "cause": plugin.cause,
        "variants": plugin.variants,
    }


def _json(rows: list[dict]) -> str:
    return json.dumps(rows, indent=2, ensure_ascii=False)
