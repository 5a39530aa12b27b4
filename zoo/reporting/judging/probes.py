"""Scores on a task's further splits, as they are drawn."""

from __future__ import annotations

from dataclasses import dataclass

from ..table import Row, Table


@dataclass(frozen=True)
class ProbeLine:
    """One row's scores: by the number of the split, the mean over seeds, the lowest and the highest."""

    row: Row
    places: tuple[int, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


def collect_probes(table: Table) -> list[ProbeLine]:
    """A line for every row that is scored on any of the table's probes."""
    return [_make_probe_line(table, row) for row in table.rows if row.probes]


def _make_probe_line(table: Table, row: Row) -> ProbeLine:
    done = [run for run in row.runs if run.status == "done"]
    places = tuple(number for number, name in enumerate(table.probes) if name in row.probes)
    seeds = []
    for name in (table.probes[number] for number in places):
        seeds.append([value for run in done if (value := run.scores(name).get(table.metric.name)) is not None])
    mean = tuple(row.probes[table.probes[number]].mean for number in places)
    return ProbeLine(row, places, mean, tuple(map(min, seeds)), tuple(map(max, seeds)))
