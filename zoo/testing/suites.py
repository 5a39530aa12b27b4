"""Which suite of checks a slot has: the module that the slot names, which offers it as `SUITE`."""

from __future__ import annotations

import importlib

from zoo.faults import SpecError, nearest
from zoo.hooks import SLOTS

from .harness import Suite

SUITES = {name: slot.suite for name, slot in SLOTS.items()}
"""Slot to module. The slots of a model share one suite."""


def load_suite(slot: str) -> Suite:
    """The suite of a slot. Raises `SpecError` for a slot that there is not."""
    if slot not in SUITES:
        raise SpecError(f"there are no checks for the slot '{slot}'{nearest(slot, SUITES)}")
    return importlib.import_module(f"{__package__}.{SUITES[slot]}").SUITE
