"""Rows that train for as many seconds: their steps are timed before anything runs, and what was timed is kept.

The steps that follow from it are those of ordinary runs, which are the same again wherever they are repeated. A second
timing would give other steps and so other runs; therefore only what is not kept is timed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from zoo.compare.comparison import Comparison, Row
from zoo.compare.match_budget import match_rows
from zoo.compare.prepared import Prepared
from zoo.compare.run_spec import TrainedRun
from zoo.declare.library import Library
from zoo.faults import SpecError
from zoo.runs import SPEEDS, Run, machine, write_json
from zoo.train.loop import device

from .stages import folder
from .step_timer import timed

WHAT = "seconds"

Timer = Callable[[Sequence[Mapping[str, Any]], int], list[float]]
"""As `zoo.execute.step_timer.timed`."""


def paced(
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
    path = folder(out, comparison.name) / SPEEDS
    with Run(path.parent).lock(wait=lambda: True):
        sets = kept(path)
        if why_not:
            held = handed(path, sets, rows, why_not)
        else:
            held = here(path, sets, rows, workers, prepared.library, say, timer or timed)
        write_json(path, {"format": 1, "sets": [held, *(each for each in sets if each is not held)]})
    return match_rows(comparison, prepared, lambda run, *_: held["rows"][key(run, prepared)]["seconds"])


def refuse(comparison: Comparison) -> None:
    """Raise `SpecError` for rows whose steps have no time of their own."""
    faults = []
    for row in comparison.rows:
        run = row.first
        if run.train.processes > 1:
            text = f"row '{row.name}': match: {WHAT} cannot time runs of {run.train.processes} processes"
            faults.append(run.model.node.fault(f"{text}; match training-flops"))
    optimizers = comparison.tune.axes.get("optimizer", ()) if comparison.tune else ()
    if len(optimizers) > 1:
        text = f"match: {WHAT} takes one optimizer for all trials of a row: the time of a step hangs on it"
        faults.append(optimizers[1].fault(text))
    if faults:
        raise SpecError(faults)


def key(run: TrainedRun, prepared: Prepared) -> str:
    """The id of a run without what does not decide how long its steps take."""
    return prepared.id(replace(run, seed=0, train=run.train.of_one_step()))


def kept(path: Path) -> list[dict[str, Any]]:
    """What was timed on every machine, the set in use first."""
    try:
        return json.loads(path.read_text("utf-8"))["sets"] if path.exists() else []
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise SpecError(f"{path} cannot be read: {error}; without it, steps are timed anew") from error


def handed(path: Path, sets: Sequence[dict], rows: Mapping[str, Row], why_not: str) -> dict[str, Any]:
    """The first set that has all rows, whichever machine timed it. Raises `SpecError`."""
    held = next((each for each in sets if set(rows) <= set(each["rows"])), None)
    if held is None:
        text = f"match: {WHAT}: {why_not}, and {path} does not hold the times of these rows"
        raise SpecError(f"{text}; 'zoo plan' on one machine writes that file, to be put there on every one")
    return held


def here(
    path: Path, sets: Sequence[dict], rows: Mapping[str, Row], workers: int, library: Library,
    say: Callable[[str], None], timer: Timer,
) -> dict[str, Any]:  # fmt: skip
    """The set of this machine and so many runs side by side, with what it lacked timed now. One that was merged says
    neither, and is of every machine.

    New rows are timed beside one that is kept, and stand to it as they did then.
    """
    mine = {"machine": place(row.first for row in rows.values()), "workers": workers}
    held = next((each for each in sets if all(each[name] in (None, value) for name, value in mine.items())), None)
    if held is None and sets:
        say(f"{path} is of {spelled(sets[0])}; this is {spelled(mine)}: steps are timed anew, and the runs are others")
    held = held or {**mine, "rows": {}}
    old = [id for id in rows if id in held["rows"]][:1]
    new = [id for id in rows if id not in held["rows"]]
    if new:
        asked = [*old, *new]
        say(f"timing training steps: {len(asked)} rows by turns, {workers} at once")
        records = [{"spec": rows[id].first.plain(), "plugins": library.wishes()} for id in asked]
        found = dict(zip(asked, timer(records, workers), strict=True))
        scale = held["rows"][old[0]]["seconds"] / found[old[0]] if old else 1.0
        held["rows"] |= {id: {"name": rows[id].name, "seconds": scale * found[id]} for id in new}
    return held


def place(runs: Iterable[TrainedRun]) -> dict[str, Any]:
    """What decides how fast this machine is."""
    devices = {device(run.train.device) for run in runs}
    names = sorted(torch.cuda.get_device_name(each) if each.type == "cuda" else each.type for each in devices)
    return {key: machine()[key] for key in ("processor", "cores")} | {"devices": names}


def spelled(held: Mapping[str, Any]) -> str:
    found = held["machine"] or {}
    return f"{found.get('processor')}, {found.get('cores')} cores, {held['workers']} at once"
