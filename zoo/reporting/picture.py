"""The loss curves of a comparison in one picture. Only drawing needs matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from .canvas import COLOURS, DRAWN, GREY, NoPicture, end_labels, frame, look, save, sheet, short, wide
from .table import Row, Table

BANDS = len(COLOURS)  # more bands than this hide each other


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
    levels = {row.name: row.dev.mean for row in table.rows if row.reference and row.dev and name == table.metric.name}
    drawn = curves[:DRAWN]
    figure = sheet(wide([*map(_name, drawn), *map(short, levels)]), 6, layout="constrained")
    axes = figure.add_subplot()
    unit = {table.metric.name: table.metric.unit, "loss": "nats per token"}.get(name)
    frame(axes, table, how(drawn, len(curves)), "training step", f"dev {name} ({unit})" if unit else f"dev {name}")
    _draw(axes, drawn, levels)
    low, high, right = window(drawn, levels)
    axes.set_ylim(low, high)
    axes.set_xlim(0, right)
    ends = [(*curve.end, _name(curve), look(number)["color"]) for number, curve in enumerate(drawn)]
    end_labels(axes, ends + [(right, value, f"{short(row)} (reference)", GREY) for row, value in levels.items()])
    save(figure, path)


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


def _draw(axes, curves: list[Curve], levels: Mapping[str, float]) -> None:
    for number, curve in enumerate(curves):
        style = look(number)
        axes.plot(curve.steps, curve.mean, linewidth=1.8, **style)
        if len(curves) <= BANDS:
            axes.fill_between(curve.steps, curve.low, curve.high, color=style["color"], alpha=0.15, linewidth=0)
        for points in curve.lost:
            axes.plot(*zip(*points, strict=True), linewidth=1, alpha=0.7, **style)
            axes.plot(*points[-1], marker="x", color=style["color"], markersize=8)
    for value in levels.values():
        axes.axhline(value, color=GREY, linewidth=1.2, linestyle=(0, (6, 4)))


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


def _name(curve: Curve) -> str:
    return short(curve.row.name) + ("" if curve.steps else f" ({curve.row.runs[0].status})")
