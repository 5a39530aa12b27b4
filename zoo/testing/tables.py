"""Which table of checks a slot has. Each module of this folder that is named here offers it as `TABLE`."""

from __future__ import annotations

import importlib

from zoo.declare.spec import MODEL_SLOTS
from zoo.faults import SpecError, nearest

from .subject import Table

TABLES = {slot: "models" for slot in MODEL_SLOTS} | {
    "task": "tasks",
    "data": "texts",
    "tokenizer": "tokenizers",
    "optimizer": "optimizers",
    "schedule": "schedules",
    "reference": "references",
    "family": "families",
}
"""Slot to module. The slots of a model share one table."""


def table_of(slot: str) -> Table:
    """The table of a slot. Raises `SpecError` for a slot that has none."""
    if slot not in TABLES:
        raise SpecError(f"nothing is held of the slot '{slot}'{nearest(slot, TABLES)}")
    return importlib.import_module(f"{__package__}.{TABLES[slot]}").TABLE
