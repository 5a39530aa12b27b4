"""What a shell completes: slots, names of variants and models, comparisons of a file and of a directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from zoo.api.catalogue import MODELS
from zoo.faults import SpecError
from zoo.hooks import SLOTS
from zoo.registry import discover

ROLES = {name: slot.role for name, slot in SLOTS.items()}


def complete_slot(ctx: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
    return select({**ROLES, "models": "whole models, as published"}, typed)


def complete_name(ctx: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
    """The names of the slot that was typed before."""
    slot = ctx.params.get("slot")
    return select(find_models() if slot in MODELS else find_names(slot if slot in SLOTS else None), typed)


def complete_part(ctx: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
    """`slot:name`, once the slot is there."""
    slot, colon, name = typed.partition(":")
    if not colon:
        places = select({**ROLES, "model": "a whole model"}, slot)
        return [CompletionItem(f"{item.value}:", help=item.help) for item in places]
    found = find_models() if slot == "model" else find_names(slot) if slot in SLOTS else {}
    return [CompletionItem(f"{slot}:{item.value}", help=item.help) for item in select(found, name)]


def complete_subject(ctx: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
    """What `zoo check` takes: `slot:name`, or the path of a file."""
    found = complete_part(ctx, param, typed)
    return found or [CompletionItem(typed, type="file")]


def complete_model(ctx: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
    return select(find_models(), typed)


def complete_family(ctx: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
    return select(find_names("family"), typed)


def complete_comparison(ctx: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
    """The comparisons of the file that was typed before."""
    from zoo.declare.yaml import load_file

    try:
        document: Any = load_file(ctx.params["file"]).value
    except (SpecError, KeyError, TypeError):
        return []
    comparisons = document.get("comparisons") if isinstance(document, dict) else None
    return select(dict.fromkeys(comparisons or (), ""), typed)


def complete_result(ctx: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
    """The comparisons that have a folder in the directory of run folders."""
    folders = sorted(path.parent.name for path in Path(ctx.params.get("out") or "runs").glob("*/comparison.json"))
    return select(dict.fromkeys(folders, ""), typed)


def select(known: dict[str, str], typed: str) -> list[CompletionItem]:
    """The names that begin as typed, each with its summary."""
    return [CompletionItem(name, help=text) for name, text in known.items() if name.startswith(typed)]


def find_names(slot: str | None) -> dict[str, str]:
    return {entry.variant.name: entry.variant.summary for entry in discover().variants(slot)}


def find_models() -> dict[str, str]:
    from zoo.declare.library import own_document

    models = own_document().value["models"].items()
    return {name: model.get("published", {}).get("paper", "") for name, model in models}
