"""Frames of pictures that fit any width: places are shares of it, and letters keep their size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..drawing import Scale
from .markup import Markup, join, tag

SIDE = 1000  # of the square that lines are drawn in before it is stretched

Ticks = Sequence[tuple[float, str]]
"""Shares of a length, and what stands there."""


def percent(share: float) -> str:
    return f"{100 * share:.5g}%"


def stretch(*inside: Markup) -> Markup:
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
