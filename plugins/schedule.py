"""How the learning rate moves: each schedule is a function of the step, in units of the peak rate.

Step s counts from 0, N is the number of steps, W the warm-up. During warm-up every schedule is (s + 1) / W, so that
the first update already learns and step W - 1 stands at the peak; after it p = (s - W) / (N - W) runs from 0 to 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated

from annotated_types import Ge, Le

Schedule = Callable[[int], float]
Floor = Annotated[float, Ge(0), Le(1)]


def cosine(steps: int, warmup: int, *, floor: Floor = 0.1) -> Schedule:
    """Half a cosine from the peak to `floor`: floor + (1 - floor) (1 + cos(pi p)) / 2 (Loshchilov & Hutter 2017).

    `floor` is a share of the peak, 0 to 1; after the last step the rate stays there.
    """
    return _add_warmup(warmup, lambda s: floor + (1 - floor) * (1 + math.cos(math.pi * _past(s, steps, warmup))) / 2)


def linear(steps: int, warmup: int, *, floor: Floor = 0.0) -> Schedule:
    """A straight line from the peak to `floor`, a share of the peak: 1 - (1 - floor) p."""
    return _add_warmup(warmup, lambda s: 1 - (1 - floor) * _past(s, steps, warmup))


def constant(steps: int, warmup: int) -> Schedule:
    """The peak rate to the end: 1."""
    return _add_warmup(warmup, lambda s: 1.0)


def inverse_sqrt(steps: int, warmup: int) -> Schedule:
    """Falls with the square root of the step: (W / (s + 1))^0.5 (Vaswani et al. 2017)."""
    return _add_warmup(warmup, lambda s: math.sqrt(max(warmup, 1) / (s + 1)))


def _add_warmup(warmup: int, after: Schedule) -> Schedule:
    return lambda s: (s + 1) / warmup if s < warmup else after(s)


def _past(step: int, steps: int, warmup: int) -> float:
    return min(1.0, (step - warmup) / max(1, steps - warmup))
