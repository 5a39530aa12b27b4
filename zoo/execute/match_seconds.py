"""Rows that train for as many seconds: their steps are timed before anything runs, and what was timed is kept.

The steps that follow from it are those of ordinary runs, which are the same again wherever they are repeated. A second
timing would give other steps and so other runs; therefore only what is not kept is timed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from zoo import record
from zoo.compare.comparison import Comparison, Row
from zoo.compare.match_budget import match_rows
from zoo.compare.prepared import Prepared
from zoo.compare.run_spec import TrainedRun
from zoo.compare.tuning_rules import Range
from zoo.declare.library import Library
from zoo.faults import SpecError
from zoo.record import (
    FORMAT,
    SPEEDS,
    Clocked,
    Plugins,
    RowSpeed,
    RunRecord,
    SpeedSet,
    SpeedsRecord,
    Unreadable,
)  # fmt: skip
from zoo.record.folder import Run, machine
from zoo.train.loop import choose_device

from .stages import make_folder
from .step_timer import timed

WHAT = "seconds"

Timer = Callable[[Sequence[RunRecord], int], list[float]]
"""As `zoo.execute.step_timer.timed`."""


def match_by_seconds(
    comparison: Comparison, prepared: Prepared, out: Path, workers: int, *, why_not: str = "",
    say: Callable[[str], None] = lambda line: None, timer: Timer | None = None,
) -> Comparison:  # fmt: skip
    """The comparison with as many steps in every row as take the seconds that its `match` asks for; as it is, where
    that asks for something else.

    `workers` are the runs that go side by side. `why_not` says what keeps steps from being timed here: then only what
    is kept in `out` serves, whichever machine timed it. Raises `SpecError`.
    """
    if comparison.match is None or comparison.match.what != WHAT:
        return comparison
    refuse(comparison)
    base = [comparison.base] if isinstance(comparison.base, Row) else []
    rows = {key(row.first, prepared): row for row in (*base, *comparison.rows)}
    path = make_folder(out, comparison.name) / SPEEDS
    with Run(path.parent).lock(wait=lambda: True):
        sets = read_sets(path)
        if why_not:
            used, others = select_set(path, sets, rows, why_not)
        else:
            used, others = time_rows(path, sets, rows, workers, prepared.library, say, timer or timed)
        record.write(path, SpeedsRecord(format=FORMAT, sets=(used, *others)))
    return match_rows(comparison, prepared, lambda run, *_: used.rows[key(run, prepared)].seconds)


def refuse(comparison: Comparison) -> None:
    """Raise `SpecError` for rows whose steps have no time of their own."""
    faults = []
    for row in comparison.rows:
        run = row.first
        if run.train.processes > 1:
            text = f"row '{row.name}': match: {WHAT} cannot time runs of {run.train.processes} processes"
            faults.append(run.model.node.fault(f"{text}; match training-flops"))
    optimizers = comparison.tune.axes.get("optimizer", ()) if comparison.tune else ()
    if not isinstance(optimizers, Range) and len(optimizers) > 1:
        text = f"match: {WHAT} takes one optimizer for all trials of a row: the time of a step hangs on it"
        faults.append(optimizers[1].fault(text))
    if faults:
        raise SpecError(faults)


def key(run: TrainedRun, prepared: Prepared) -> str:
    """The id of a run without what does not decide how long its steps take."""
    return prepared.id(replace(run, seed=0, train=run.train.of_one_step()))


def read_sets(path: Path) -> tuple[SpeedSet, ...]:
    """What was timed on every machine, the set in use first."""
    try:
        return record.read(path, SpeedsRecord).sets if path.exists() else ()
    except Unreadable as error:
        raise SpecError(f"{error}; without it, steps are timed anew") from error


def select_set(
    path: Path, sets: Sequence[SpeedSet], rows: Mapping[str, Row], why_not: str
) -> tuple[SpeedSet, list[SpeedSet]]:
    """The first set that has all rows, whichever machine timed it, and the others. Raises `SpecError`."""
    used = next((each for each in sets if set(rows) <= set(each.rows)), None)
    if used is None:
        text = f"match: {WHAT}: {why_not}, and {path} does not hold the times of these rows"
        raise SpecError(f"{text}; 'zoo plan' on one machine writes that file, to be put there on every one")
    return used, [each for each in sets if each is not used]


def time_rows(
    path: Path, sets: Sequence[SpeedSet], rows: Mapping[str, Row], workers: int, library: Library,
    say: Callable[[str], None], timer: Timer,
) -> tuple[SpeedSet, list[SpeedSet]]:  # fmt: skip
    """The set of this machine and so many runs side by side, with what it lacked timed now; and the other sets. A set
    that was merged names neither machine nor workers, and is of every machine.

    New rows are timed beside one that was timed before, and stand to it as they did then.
    """
    mine = SpeedSet(machine=describe_machine(row.first for row in rows.values()), workers=workers, rows={})
    used = next((each for each in sets if is_of(each, mine)), None)
    others = [each for each in sets if each is not used]
    if used is None and sets:
        text = f"{path} is of {spell_set(sets[0])}; this is {spell_set(mine)}"
        say(f"{text}: steps are timed anew, and the runs are others")
    used = used or mine
    old = [id for id in rows if id in used.rows][:1]
    new = [id for id in rows if id not in used.rows]
    if new:
        ids = [*old, *new]
        say(f"timing training steps: {len(ids)} rows by turns, {workers} at once")
        plugins = Plugins(**library.describe_discovery())
        records = [RunRecord(format=FORMAT, id=id, spec=rows[id].first.plain(), plugins=plugins) for id in ids]
        seconds = dict(zip(ids, timer(records, workers), strict=True))
        scale = used.rows[old[0]].seconds / seconds[old[0]] if old else 1.0
        added = {id: RowSpeed(name=rows[id].name, seconds=scale * seconds[id]) for id in new}
        used = replace(used, rows={**used.rows, **added})
    return used, others


def is_of(timed: SpeedSet, mine: SpeedSet) -> bool:
    """Whether a set was timed on such a machine, with as many runs side by side."""
    return timed.machine in (None, mine.machine) and timed.workers in (None, mine.workers)


def describe_machine(runs: Iterable[TrainedRun]) -> Clocked:
    """What decides how fast this machine is."""
    devices = {choose_device(run.train.device) for run in runs}
    names = sorted(torch.cuda.get_device_name(each) if each.type == "cuda" else each.type for each in devices)
    here = machine()
    return Clocked(processor=here["processor"], cores=here["cores"], devices=tuple(names))


def spell_set(timed: SpeedSet) -> str:
    found = timed.machine or Clocked()
    return f"{found.processor}, {found.cores} cores, {timed.workers} at once"
