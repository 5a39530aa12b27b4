"""Which rows give the best score for what they cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from zoo import numbers

from ..table import Row, Table
from . import speed


class Cost(NamedTuple):
    """What a row can cost, less being better: a name for people, the cost, its unit, and how it is written."""

    title: str
    of: Callable[[Row], float | None]
    unit: str
    write: Callable[[float], str]


COSTS = {
    "parameters": Cost("parameters", lambda row: row.parameters, "", numbers.count),
    "train_seconds": Cost("training time", lambda row: row.train_seconds, "seconds", lambda value: f"{value:.3g} s"),
    "decode_time": Cost(
        "decode time", lambda row: _time_per_token(row), "ms per token", lambda value: f"{value:.3g} ms"
    ),
    "kv_bytes_per_token": Cost("KV memory", lambda row: row.kv_bytes_per_token, "bytes per token", numbers.size),
}
"""By their names in files."""

TIMES = ("train_seconds", "decode_time")
"""Costs that can be compared only where all runs were on one machine."""


class Point(NamedTuple):
    """A row that has a cost and a score, with its number in the table."""

    number: int
    row: Row
    cost: float
    score: float


@dataclass(frozen=True)
class Front:
    """One cost: the rows that have it and a score, and of these the best by name."""

    cost: Cost
    points: tuple[Point, ...]
    best: tuple[str, ...]

    @property
    def line(self) -> list[tuple[float, float]]:
        """What the best reach at every cost, as corners of steps."""
        ends = sorted((point.cost, point.score) for point in self.points if point.row.name in self.best)
        corners = [corner for (_, b), (c, d) in zip(ends, ends[1:], strict=False) for corner in ((c, b), (c, d))]
        return [ends[0], *corners]


def find_fronts(table: Table) -> dict[str, Front]:
    """By cost, the rows that no other beats in it and in the score; a row without either is left out.

    Costs that fewer than two rows have, or that are the same for all, say nothing and are not there; nor is any where
    rows are on several tasks.
    """
    from zoo.statistics import front

    out = {}
    for name, cost in COSTS.items() if len(table.tasks) < 2 else ():
        points = [
            Point(number, row, value, row.test.mean)
            for number, row in enumerate(table.rows, 1)
            if row.test and (value := cost.of(row)) is not None
        ]
        if len({point.cost for point in points}) > 1 and _is_comparable(table, name):
            best = front([(table.metric.rank(point.score), point.cost) for point in points])
            names = [point.row.name for point, is_best in zip(points, best, strict=True) if is_best]
            out[name] = Front(cost, tuple(points), tuple(names))
    return out


def find_best(table: Table) -> dict[str, list[str]]:
    """The names of the best rows, by cost."""
    return {name: list(front.best) for name, front in find_fronts(table).items()}


def _is_comparable(table: Table, name: str) -> bool:
    if name == "decode_time" and len(speed.list_ways(table)) > 1:
        return False
    return table.one_machine or name not in TIMES


def _time_per_token(row: Row) -> float | None:
    return 1000 / row.decode_tokens_per_second if row.decode_tokens_per_second else None
