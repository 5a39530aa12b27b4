"""Rows over several tasks: what each gains over the baseline, on all of them together and on each.

`docs/verdict.md` says how, under "Over several tasks".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from statistics import fmean

from zoo.faults import Fault, SpecError

from ..table import Row, Table
from ..text import one_line
from .verdict import UNFINISHED


@dataclass(frozen=True)
class Cell:
    """A row on one task: its gains by seed, as shares of the baseline's mean score, more being better.

    `lacking` says how its runs ended where some have no score, and `status` how all of them stand. `rank` is among the
    trained rows that lack nothing anywhere.
    """

    gains: Mapping[int, float]
    status: str
    lacking: bool
    rank: float | None = None

    @property
    def mean(self) -> float | None:
        """None where it would be over what is left."""
        return fmean(self.gains.values()) if self.gains and not self.lacking else None


@dataclass(frozen=True)
class Estimate:
    """A figure over all tasks, and the bounds of its 95 % interval; none where seeds cannot give one."""

    value: float
    low: float | None = None
    high: float | None = None

    @property
    def interval(self) -> tuple[float, float] | None:
        return None if self.low is None or self.high is None else (self.low, self.high)


@dataclass(frozen=True)
class Line:
    """A row over all tasks; it has figures only where it lacks no run. Of a row with a score the baseline has none."""

    name: str
    cells: tuple[Cell, ...]
    reference: bool = False
    gain: Estimate | None = None
    improvement: Estimate | None = None

    @property
    def whole(self) -> bool:
        return all(cell.mean is not None for cell in self.cells)

    @property
    def rank(self) -> float | None:
        """The mean of its ranks on the tasks."""
        ranks = [cell.rank for cell in self.cells if cell.rank is not None]
        return fmean(ranks) if ranks else None


@dataclass(frozen=True)
class Across:
    """Comparisons with one baseline, and the rows that stand in all of them, the best first.

    `elsewhere` are the rows that do not, and the comparisons that have them.
    """

    tables: tuple[Table, ...]
    baseline: str
    lines: tuple[Line, ...]
    elsewhere: Mapping[str, tuple[str, ...]]

    @property
    def title(self) -> str:
        return f"Gain over {self.baseline} on {len(self.tables)} tasks"


def average_tasks(tables: Iterable[Table]) -> Across:
    """All rows that the comparisons have in common, over all of them. One whose task varies is taken apart by task.

    Raises `SpecError` with all that keeps comparisons from being averaged.
    """
    tables = tuple(part for table in tables for part in split_by_task(table))
    if faults := [*_find_faults(tables)]:
        raise SpecError(map(Fault, faults))
    baseline = tables[0].baseline or ""
    rows = {
        name: [row for table in tables if (row := _find_row(table, name))]
        for each in tables
        for name in _list_names(each)
    }
    common = {name: some for name, some in rows.items() if len(some) == len(tables)}
    if set(common) <= {baseline}:
        have = "; ".join(f"{table.name} has {', '.join(_list_names(table))}" for table in tables)
        raise SpecError(f"no row but the baseline '{baseline}' stands in all comparisons: {have}")
    lines = _rank([_make_line(name, tables, some) for name, some in common.items()])
    lines.sort(key=lambda line: (line.gain is None, -line.gain.value if line.gain else 0.0))
    elsewhere = {
        name: tuple(table.name for table in tables if _find_row(table, name))
        for name in rows if name not in common
    }  # fmt: skip
    return Across(tables, baseline, tuple(lines), elsewhere)


def split_by_task(table: Table) -> list[Table]:
    """The table itself, or where its rows were made on several tasks one for each, rows named by what else varies.

    Raises `SpecError` where nothing else does, and where the baseline is none of the settings.
    """
    if len(table.tasks) < 2:
        return [table]
    if table.base is None or not table.base.cell:
        raise SpecError(f"{table.name}: its task varies, and the baseline '{table.baseline}' is on one task alone")
    if not (baseline := _name_rest(table.base)):
        raise SpecError(f"{table.name}: only its task varies, so there is nothing to compare on each")
    parts = []
    for task in table.tasks:
        rows = tuple(replace(row, name=_name_rest(row)) for row in table.rows if row.task == task)
        told = _name_cell(task)
        parts.append(replace(table, name=f"{table.name} ({told})", task=told, baseline=baseline, rows=rows))
    return parts


def _name_rest(row: Row) -> str:
    return _name_cell({axis: value for axis, value in row.cell.items() if axis not in row.task})


def _name_cell(cell: Mapping[str, str]) -> str:
    """The value of a slot is its name; any other takes its setting along."""
    return ", ".join(f"{axis.rpartition('.')[2]}={value}" if "." in axis else value for axis, value in cell.items())


def _find_faults(tables: Sequence[Table]) -> Iterable[str]:
    names = [table.name for table in tables]
    if len(tables) < 2:
        named = f"there is only {names[0]}" if names else "there is none"
        yield f"an aggregate is over two comparisons or more, or over one whose task varies; {named}"
    if len({table.baseline for table in tables}) > 1:
        told = ", ".join(f"{table.name} by {table.baseline}" for table in tables)
        yield f"the comparisons are judged by different baselines: {told}"
    for table in tables:
        base = table.base
        if base is None or base.test is None:
            yield f"{table.name}: the baseline '{table.baseline}' has no score"
        elif _lacks_runs(base):
            yield f"{table.name}: the baseline '{base.name}' is {base.status}; run what failed first"
        elif base.test.mean <= 0:
            score = f"scores {base.test.mean:g} {table.metric.name}"
            yield f"{table.name}: the baseline '{base.name}' {score}, and of that nothing is a share"
    for one, other in combinations(tables, 2):
        if _list_runs(one) & _list_runs(other):
            yield f"{one.name} and {other.name} share runs, which would count twice"


def _list_runs(table: Table) -> set[str]:
    return {run.id for row in table.rows for run in row.runs}


def _list_names(table: Table) -> list[str]:
    return [row.name for row in table.rows]


def _find_row(table: Table, name: str) -> Row | None:
    return next((row for row in table.rows if row.name == name), None)


def _lacks_runs(row: Row) -> bool:
    """Whether a run has ended without a score, or none can be made."""
    return not row.runs or not set(row.outcomes) <= set(UNFINISHED)


def _make_line(name: str, tables: Sequence[Table], rows: Sequence[Row]) -> Line:
    cells = tuple(
        Cell(compute_gains(table, row), one_line(row.progress), _lacks_runs(row))
        for table, row in zip(tables, rows, strict=True)
    )
    line = Line(name, cells, any(row.reference for row in rows))
    if not line.whole:
        return line
    from zoo.statistics import improvement, interquartile_mean

    if name == tables[0].baseline:
        return replace(line, gain=Estimate(0.0))
    tasks = sorted(list(cell.gains.values()) for cell in cells)  # so that their order draws no other seeds
    return replace(line, gain=_estimate(tasks, interquartile_mean), improvement=_estimate(tasks, improvement))


def compute_gains(table: Table, row: Row) -> dict[int, float]:
    """By seed that both have: score of the row less the baseline's, more being better, over the baseline's mean score.

    The two runs of a seed share their data and part of their weights, so what a seed makes harder for both drops out
    of their difference. The mean is taken as it is: its noise is that of all gains on a task by one factor.
    """
    if row.name == table.baseline:
        return dict.fromkeys(row.scores(table.metric), 0.0)
    scale = table.base.test.mean if table.base and table.base.test else math.nan
    return {seed: -table.metric.rank(difference) / scale for seed, difference in table.differences(row).items()}


def _estimate(tasks: Sequence[Sequence[float]], statistic: Callable) -> Estimate:
    """The statistic with the interval of the stratified bootstrap; seeds that all say one thing have none."""
    from zoo.statistics import equal, stratified_bootstrap

    value, bounds = float(statistic(list(chain(*tasks)), equal(tasks))), stratified_bootstrap(tasks, statistic)
    return Estimate(value, *bounds) if bounds and bounds[0] < bounds[1] else Estimate(value)


def _rank(lines: Sequence[Line]) -> list[Line]:
    """The lines with the rank, by mean gain, of each trained one on every task; equal ones share the mean of theirs."""
    from scipy.stats import rankdata

    told = [line for line in lines if line.whole and not line.reference]
    if not told:
        return list(lines)
    by_task = [rankdata([-(line.cells[task].mean or 0.0) for line in told]) for task in range(len(told[0].cells))]
    ranks = {line.name: [float(task[place]) for task in by_task] for place, line in enumerate(told)}
    return [
        replace(line, cells=tuple(map(lambda cell, rank: replace(cell, rank=rank), line.cells, ranks[line.name])))
        if line.name in ranks else line
        for line in lines
    ]  # fmt: skip
