"""Scales and colours that pictures in a file and on a page have in common."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from zoo import numbers

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9")
"""Okabe and Ito's palette, which colour-blind readers can tell apart, without its yellow; the pale ones last."""

STYLES = ("-", "--", ":")
DRAWN = len(COLOURS) * len(STYLES)
"""As many lines as can be told apart."""

BANDS = len(COLOURS)
"""More bands than this hide each other."""

TICKS = 5


@dataclass(frozen=True)
class Scale:
    """Values to shares of a length, from 0 at `low` to 1 at `high`."""

    low: float
    high: float
    log: bool = False

    @classmethod
    def around(cls, values: Iterable[float], margin: float = 0.06) -> Scale:
        """A scale that leaves a margin on both sides; logarithmic where the largest is ten times the smallest."""
        low, high = min(values := list(values)), max(values)
        if low > 0 and high / low >= 10:
            ratio = (high / low) ** margin
            return cls(low / ratio, high * ratio, log=True)
        more = margin * (high - low) or 0.1 * abs(high) or 1.0
        return cls(low - more, high + more)

    def __call__(self, value: float) -> float:
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log(low), math.log(high), math.log(value)
        return (value - low) / (high - low)

    def ticks(self) -> list[float]:
        """Round numbers within the scale, about `TICKS` of them."""
        if self.log:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            found = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
            kept = [value for value in found if self.low <= value <= self.high]
            return kept if len(kept) <= 2 * TICKS else [value for value in kept if f"{value:e}".startswith("1")]
        rough = (self.high - self.low) / TICKS
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(size * power for size in (1, 2, 2.5, 5, 10) if size * power >= rough * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [number * step for number in range(first, last + 1)]

    def labels(self) -> list[tuple[float, str]]:
        """Ticks with as many digits as it takes to tell them apart."""
        ticks = self.ticks()
        large = [numbers.flops(tick) for tick in ticks]
        if self.high >= 1e6 and len(set(large)) == len(large):
            return [(self(tick), name) for tick, name in zip(ticks, large, strict=True)]
        step = min((b - a for a, b in zip(ticks, ticks[1:], strict=False)), default=1.0)
        # rounded, then with 0.0 added, so that none reads -0
        return [(self(tick), f"{round(tick, _places(step)) + 0.0:,.{_places(step)}f}") for tick in ticks]


def _places(step: float) -> int:
    """Decimals of a step such as 0.025 that its power of ten does not show."""
    return next((places for places in range(9) if abs(round(step, places) - step) < 1e-9 * step), 9)
