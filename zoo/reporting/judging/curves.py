"""Scores on dev over the steps of training, as they are drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from ..drawing import BANDS
from ..table import Row, Table


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


def collect_curves(table: Table) -> tuple[str, list[Curve]]:
    """The score that was taken on dev, else the loss, and each row's line of it."""
    name = table.metric.name
    if not any(name in point for row in table.rows for run in row.runs for _, point in run.curve):
        name = "loss"
    return name, [curve for row in table.rows if (curve := make_curve(row, name))]


def make_curve(row: Row, name: str) -> Curve | None:
    healthy: list[dict[int, float]] = []
    lost: list[dict[int, float]] = []
    for run in row.runs:
        points = {step: point[name] for step, point in run.curve if name in point}
        if points:
            (lost if run.status in ("diverged", "failed") else healthy).append(points)
    if not healthy and not lost:
        return None
    steps = sorted(set.intersection(*map(set, healthy))) if healthy else []
    seeds = [[points[step] for points in healthy] for step in steps]
    mean, low, high = tuple(map(fmean, seeds)), tuple(map(min, seeds)), tuple(map(max, seeds))
    return Curve(row, tuple(steps), mean, low, high, tuple(tuple(points.items()) for points in lost))


def describe_curves(drawn: list[Curve], n_rows: int) -> str:
    """What the lines are."""
    parts = [f"the best {len(drawn)} of {n_rows} rows"] if n_rows > len(drawn) else []
    if any(curve.low != curve.high for curve in drawn):
        parts.append("mean over seeds" + (", band from the lowest to the highest" if len(drawn) <= BANDS else ""))
    if any(curve.lost for curve in drawn):
        parts.append("thin: a seed that did not reach the end")
    return "; ".join(parts)


def find_window(curves: list[Curve], levels: Mapping[str, float]) -> tuple[float, float, float]:
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
