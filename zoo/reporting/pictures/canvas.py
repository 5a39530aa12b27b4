"""What the pictures beside a report have in common. Only drawing needs matplotlib."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

from ..drawing import COLOURS, STYLES, Scale
from ..table import Table
from ..text import one_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GREY = "0.35"
LONGEST = 48  # characters of a name
LETTER = 0.08  # inches of one
DPI = 120

End = tuple[float, float, str, str]
"""Where a line ends, what it is called, and its colour."""


class NoPicture(Exception):
    """Why there is no picture, in a line that can be printed."""


def sheet(width: float, height: float, layout: Literal["constrained"] | None = None) -> Figure:
    """An empty figure of so many inches. Raises `NoPicture` where there is nothing to draw with."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise NoPicture("no picture: matplotlib is missing; pip install 'transformer-zoo[plots]'") from None
    figure = Figure(figsize=(width, height), dpi=DPI, layout=layout)
    FigureCanvasAgg(figure)
    return figure


def save(figure, path: Path) -> None:
    figure.savefig(path, format="png", metadata={"Software": None})


def choose_look(number: int) -> dict[str, Any]:
    """The line of a row, by its place among those that are drawn."""
    return {"color": COLOURS[number % len(COLOURS)], "linestyle": STYLES[number // len(COLOURS)]}


def measure_width(labels: Iterable[str]) -> float:
    """Inches of a picture with such labels beside it."""
    return max(10.0, 6.6 + LETTER * max(map(len, labels)))


def set_scale(axes, side: str, scale: Scale) -> None:
    """Let the axis "x" or "y" be what the scale is, with its ticks."""
    if scale.log:
        getattr(axes, f"set_{side}scale")("log")
        axes.minorticks_off()
    getattr(axes, f"set_{side}lim")(scale.low, scale.high)
    getattr(axes, f"set_{side}ticks")(scale.ticks(), [name for _, name in scale.labels()])


def hide_frame(axes) -> None:
    """Leave the axes below and on the left."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="0.92")
    axes.set_axisbelow(True)


def set_titles(axes, table: Table, how: str, below: str, beside: str) -> None:
    """The table's title, a line on what is drawn, and the names of the axes."""
    axes.set_title(one_line(table.title), loc="left", fontsize=13, pad=24, parse_math=False)
    axes.text(0, 1.02, how, transform=axes.transAxes, color=GREY, fontsize=10, parse_math=False)
    axes.set_xlabel(below, parse_math=False)
    axes.set_ylabel(beside, parse_math=False)
    hide_frame(axes)


def end_labels(axes, ends: Sequence[End], gap: float = 0.042) -> None:
    """Names where lines end, pushed apart as far as it takes; no thread leads to an end out of view."""
    low, high = axes.get_ylim()
    ends = sorted(ends, key=lambda end: end[1])
    places = spread([value for _, value, _, _ in ends], gap * (high - low), low, high)
    for (step, value, name, colour), place in zip(ends, places, strict=True):
        inside = low <= value <= high
        thread = {"arrowstyle": "-", "color": colour, "linewidth": 0.7, "relpos": (0, 0.5), "shrinkA": 1, "shrinkB": 1}
        axes.annotate(
            name if inside else f"{name}, out of view", xy=(step, value), xytext=(1.04, place),
            textcoords=axes.get_yaxis_transform(), color=colour, va="center", fontsize=10, annotation_clip=False,
            parse_math=False, arrowprops=thread if inside else None,
        )  # fmt: skip


def spread(places: list[float], gap: float, low: float, high: float) -> list[float]:
    """Sorted places moved as little as it takes (least squares) to lie within the bounds and `gap` apart.

    Without its share of the gaps each place may equal its neighbour, so this is isotonic regression: pool
    neighbours that are out of order.
    """
    pools: list[list[float]] = []
    for number, place in enumerate(places):
        pools.append([min(max(place, low), high) - number * gap])
        while len(pools) > 1 and fmean(pools[-2]) > fmean(pools[-1]):
            pools[-2:] = [pools[-2] + pools[-1]]
    flat_places = [fmean(pool) for pool in pools for _ in pool]
    top = max(low, high - gap * (len(places) - 1))
    return [min(max(place, low), top) + number * gap for number, place in enumerate(flat_places)]


def cut_name(name: str) -> str:
    name = one_line(name)
    return name if len(name) <= LONGEST else f"{name[:32]}…{name[-15:]}"
