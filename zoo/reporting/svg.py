"""Scales and frames of pictures that fit any width: places are shares of it, and letters keep their size."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from zoo import numbers

from .markup import Markup, join, tag

SIDE = 1000  # of the square that lines are drawn in before it is stretched
TICKS = 5

Ticks = Sequence[tuple[float, str]]
"""Shares of a length, and what stands there."""


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


def percent(share: float) -> str:
    return f"{100 * share:.5g}%"


def stretched(*inside: Markup) -> Markup:
    """Paths in a square of `SIDE`, drawn over the whole of what they stand in."""
    return tag("svg", *inside, viewBox=f"0 0 {SIDE} {SIDE}", preserveAspectRatio="none", width="100%", height="100%")


def path(points: Iterable[tuple[float, float]], close: str = "") -> str:
    """Shares, the second from below, as a path."""
    pairs = (f"{SIDE * x:.0f} {SIDE * (1 - y):.0f}" for x, y in points)
    return f"M{'L'.join(pairs)}{close}"


def frame(x: Scale, y: Scale, names: tuple[str, str], inside: Markup, label: str, below: Ticks | None = None) -> Markup:
    """What is drawn, between its axes, which have the names; `below` replaces the ticks of the lower one."""
    below, beside = below or x.labels(), y.labels()
    rules = join(
        tag("line", class_="rule", x1="0", x2="100%", y1=percent(1 - share), y2=percent(1 - share))
        for share, _ in beside
    )
    left = (tag("text", name, x="100%", y=percent(1 - share), dy="0.32em") for share, name in beside)
    under = (tag("text", name, x=percent(share), y="1.1em", class_=_edge(share)) for share, name in below)
    return tag(
        "div",
        tag("p", names[1], class_="up"),
        tag("svg", *left, class_="left", aria_hidden="true"),
        tag("svg", rules, inside, class_="area", role="group", aria_label=label),
        tag("svg", *under, class_="under", aria_hidden="true"),
        tag("p", names[0], class_="along"),
        class_="plot",
    )


def _edge(share: float) -> str | None:
    """The side to which a name that stands at an edge gives way."""
    return "first" if share < 0.04 else "last" if share > 0.96 else None
