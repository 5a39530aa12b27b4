"""The loss curves of a comparison in one picture. Only drawing needs matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from .caption import title
from .formats import flat
from .table import Row, Table

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9")
"""Okabe and Ito's palette, which colour-blind readers can tell apart, without its yellow; the pale ones last."""

STYLES = ("-", "--", ":")
DRAWN = len(COLOURS) * len(STYLES)
BANDS = len(COLOURS)  # more bands than this hide each other


class NoPicture(Exception):
    """Why there is no picture, in a line that can be printed."""


@dataclass(frozen=True)
class Curve:
    """One row's line: the mean over its healthy seeds with their range, and each run that went wrong on its own."""

    row: Row
    steps: tuple[int, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    lost: tuple[tuple[tuple[int, float], ...], ...]

    @property
    def end(self) -> tuple[int, float]:
        return (self.steps[-1], self.mean[-1]) if self.steps else self.lost[0][-1]


def picture(table: Table, path: Path) -> None:
    """Draw the dev curves of `table` into a PNG file. Raises `NoPicture` if there is nothing to draw or draw with."""
    name, curves = curves_of(table)
    if not curves:
        raise NoPicture("no picture: no run has a curve yet")
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise NoPicture("no picture: matplotlib is missing; pip install 'transformer-zoo[plots]'") from None
    levels = {row.name: row.dev.mean for row in table.rows if row.reference and row.dev and name == table.metric.name}
    figure = Figure(figsize=(10, 6), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    drawn = curves[:DRAWN]
    _frame(axes, table, name, how(drawn, len(curves)))
    _draw(axes, drawn, levels)
    _zoom(axes, drawn, levels)
    _label(axes, drawn, levels)
    figure.savefig(path, format="png", metadata={"Software": None})


def curves_of(table: Table) -> tuple[str, list[Curve]]:
    """The score that was taken on dev, else the loss, and each row's line of it."""
    name = table.metric.name
    if not any(name in point for row in table.rows for run in row.runs for _, point in run.curve):
        name = "loss"
    return name, [curve for row in table.rows if (curve := _curve(row, name))]


def _curve(row: Row, name: str) -> Curve | None:
    healthy, lost = [], []
    for run in row.runs:
        points = {step: point[name] for step, point in run.curve if name in point}
        if points:
            (lost if run.status in ("diverged", "failed") else healthy).append(points)
    if not healthy and not lost:
        return None
    steps = sorted(set.intersection(*map(set, healthy))) if healthy else []
    seeds = [[points[step] for points in healthy] for step in steps]
    bands = (tuple(map(pick, seeds)) for pick in (fmean, min, max))
    return Curve(row, tuple(steps), *bands, tuple(tuple(points.items()) for points in lost))


def how(drawn: list[Curve], n_rows: int) -> str:
    """What the lines are."""
    parts = [f"the best {len(drawn)} of {n_rows} rows"] if n_rows > len(drawn) else []
    if any(curve.low != curve.high for curve in drawn):
        parts.append("mean over seeds" + (", band from the lowest to the highest" if len(drawn) <= BANDS else ""))
    if any(curve.lost for curve in drawn):
        parts.append("thin: a seed that did not reach the end")
    return "; ".join(parts)


def _frame(axes, table: Table, name: str, how: str) -> None:
    unit = {table.metric.name: table.metric.unit, "loss": "nats per token"}.get(name)
    axes.set_title(flat(title(table)), loc="left", fontsize=13, pad=24, parse_math=False)
    axes.text(0, 1.02, how, transform=axes.transAxes, color="0.35", fontsize=10)
    axes.set_xlabel("training step")
    axes.set_ylabel(f"dev {name} ({unit})" if unit else f"dev {name}", parse_math=False)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="0.92")
    axes.set_axisbelow(True)


def _draw(axes, curves: list[Curve], levels: Mapping[str, float]) -> None:
    for number, curve in enumerate(curves):
        look = _look(number)
        axes.plot(curve.steps, curve.mean, linewidth=1.8, **look)
        if len(curves) <= BANDS:
            axes.fill_between(curve.steps, curve.low, curve.high, color=look["color"], alpha=0.15, linewidth=0)
        for points in curve.lost:
            axes.plot(*zip(*points, strict=True), linewidth=1, alpha=0.7, **look)
            axes.plot(*points[-1], marker="x", color=look["color"], markersize=8)
    for value in levels.values():
        axes.axhline(value, color="0.35", linewidth=1.2, linestyle=(0, (6, 4)))


def _look(number: int) -> dict[str, str]:
    return {"color": COLOURS[number % len(COLOURS)], "linestyle": STYLES[number // len(COLOURS)]}


def _zoom(axes, curves: list[Curve], levels: Mapping[str, float]) -> None:
    low, high, right = window(curves, levels)
    axes.set_ylim(low, high)
    axes.set_xlim(0, right)


def window(curves: list[Curve], levels: Mapping[str, float]) -> tuple[float, float, float]:
    """The lowest and the highest value in view, and the last step.

    The first fifth of training is left out of the vertical range: there all curves fall alike and dwarf the rest.
    """
    last = max(curve.end[0] for curve in curves)
    points = [point for curve in curves for point in zip(curve.steps, curve.mean, strict=True)]
    points = points or [point for curve in curves for points in curve.lost for point in points]
    values = [value for step, value in points if step >= last / 5] or [value for _, value in points]
    values += levels.values()
    values += [side[-1] for curve in curves if curve.steps for side in (curve.low, curve.high) if len(curves) <= BANDS]
    margin = 0.06 * (max(values) - min(values)) or 0.1
    return min(values) - margin, max(values) + margin, last or 1


def _label(axes, curves: list[Curve], levels: Mapping[str, float]) -> None:
    """Names stand where their lines end, pushed apart as far as it takes; no thread leads to an end out of view."""
    low, high = axes.get_ylim()
    right = axes.get_xlim()[1]
    ends = [(*curve.end, _name(curve), _look(number)["color"]) for number, curve in enumerate(curves)]
    ends += [(right, value, f"{_short(name)} (reference)", "0.35") for name, value in levels.items()]
    ends.sort(key=lambda end: end[1])
    places = spread([value for _, value, _, _ in ends], 0.042 * (high - low), low, high)
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


def _name(curve: Curve) -> str:
    return _short(curve.row.name) + ("" if curve.steps else f" ({curve.row.runs[0].status})")


def _short(name: str) -> str:
    name = flat(name)
    return name if len(name) <= 48 else f"{name[:32]}…{name[-15:]}"
