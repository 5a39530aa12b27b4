"""What is held of the variants of a model's slots. Each check compares a model with itself, and raises `AssertionError`
with what was changed, what should have stayed equal, by how much it differs and in which model; it returns why it does
not apply, if so.
"""

from __future__ import annotations

from collections.abc import Callable

from . import auxiliary_losses, computing, counting, decoding, looking, options, saving, training
from .case import Case
from .partners import cases
from .subject import Table

Check = Callable[[Case], str | None]


def named(*checks: Check) -> dict[str, Check]:
    return {check.__name__: check for check in checks}


CHECKS = named(
    training.runs, training.gradients, training.dropout, training.learning, training.untrained, computing.kernels,
    looking.future, looking.window, looking.padding, looking.rows, decoding.decoding, decoding.reorder,
    decoding.generation, saving.round_trip, saving.copies,
)  # fmt: skip
"""What takes little time: held of any model."""
FURTHER = named(training.determinism, auxiliary_losses.auxiliary_losses, saving.yaml, saving.meta, counting.counts)
"""Held of a variant with every partner."""
ONCE = named(computing.compiles, options.options, options.ranges)
"""What takes more time, or says nothing new of a second partner."""

TABLE = Table(cases, {**CHECKS, **FURTHER, **ONCE}, frozenset({*ONCE, "untrained"}))
