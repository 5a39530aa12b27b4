"""What is held of the variants of a model's slots. Each check compares a model with itself, and raises `AssertionError`
with what was changed, what should have stayed equal, by how much it differs and in which model; it returns why it does
not apply, if so.
"""

from __future__ import annotations

from collections.abc import Callable

from . import auxiliary_losses, costs, decoding, equivalence, masking, options, saving, training
from .harness import Suite
from .model_case import ModelCase
from .partners import build_cases

Check = Callable[[ModelCase], str | None]


def name_checks(*checks: Check) -> dict[str, Check]:
    return {check.__name__: check for check in checks}


CHECKS = name_checks(
    training.runs, training.gradients, training.dropout, training.learning, training.untrained, equivalence.kernels,
    masking.future, masking.window, masking.padding, masking.rows, decoding.decoding, decoding.reorder,
    decoding.generation, saving.round_trip, saving.copies,
)  # fmt: skip
"""What takes little time: held of any model."""
FURTHER = name_checks(training.determinism, auxiliary_losses.auxiliary_losses, saving.yaml, saving.meta, costs.counts)
"""Held of a variant with every partner."""
ONCE = name_checks(equivalence.compiles, options.options, options.ranges)
"""What takes more time, or says nothing new of a second partner."""

SUITE = Suite(build_cases, {**CHECKS, **FURTHER, **ONCE}, frozenset({*ONCE, "untrained"}))
