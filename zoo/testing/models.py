"""What is held of the variants of a model's slots. Each check compares a model with itself, and raises `AssertionError`
with what was changed, what should have stayed equal, by how much it differs and in which model; it returns why it does
not apply, if so.
"""

from __future__ import annotations

from collections.abc import Callable

from . import computing, decoding, looking, saving, training
from .case import Case
from .partners import cases
from .subject import Table

Check = Callable[[Case], str | None]


def named(*checks: Check) -> dict[str, Check]:
    return {check.__name__: check for check in checks}


CHECKS = named(
    training.runs, training.gradients, computing.kernels, looking.future, looking.window, decoding.decoding,
    looking.padding, looking.rows, training.dropout, saving.round_trip, saving.copies, training.learning,
    training.untrained, decoding.generation,
)  # fmt: skip
"""What takes little: held of any model."""
COSTLY = named()
"""What takes more, or says nothing new of a second partner: held of a variant once."""

TABLE = Table(cases, {**CHECKS, **COSTLY}, frozenset({*COSTLY, "untrained"}))
