"""Which suite of checks a slot has. Each module that is named here offers it as `SUITE`."""

from __future__ import annotations

import importlib

from zoo.declare.spec import MODEL_SLOTS
from zoo.faults import SpecError, nearest

from .harness import Suite

SUITES = {slot: "models" for slot in MODEL_SLOTS} | {
    "task": "tasks",
    "metric": "metrics",
    "data": "data",
    "tokenizer": "tokenizers",
    "optimizer": "optimizers",
    "schedule": "schedules",
    "reference": "references",
    "family": "families",
}
"""Slot to module. The slots of a model share one suite."""


def load_suite(slot: str) -> Suite:
    """The suite of a slot. Raises `SpecError` for a slot that has none."""
    if slot not in SUITES:
        raise SpecError(f"there are no checks for the slot '{slot}'{nearest(slot, SUITES)}")
    return importlib.import_module(f"{__package__}.{SUITES[slot]}").SUITE
