"""What a comparison would run, what that would cost, and about how long it would take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import torch
from tabulate import tabulate

from . import measure
from .builder import sketch
from .compare import Comparison, Row, RunSpec
from .match import matched
from .plan import cost, prepared, step_flops
from .report import units
from .runs import FINISHED, Run, machine
from .tasks import Task
from .train import device, draw, n_steps
from .tune import read, settled, trials

MANY_EPOCHS = 5
"""Passes over the training text above which a small model is expected to memorise it."""
TIMED = 3
"""Steps that are timed, after one that warms up."""


@dataclass(frozen=True)
class Line:
    """A row of the plan: its cells, its passes over the training text, and the FLOPs of one step and of one run."""

    row: Row
    cells: Sequence[str]
    epochs: float | None
    memory: int
    step: int
    flops: int

    @property
    def runs(self) -> list[RunSpec]:
        """Its runs and those of its trials."""
        return [*self.row.runs, *(run for trial in self.row.trials for run in trial.runs)]


def table(comparison: Comparison, registry, out: Path = Path("runs"), workers: int = 1, timed: bool = False) -> str:
    """One line per row of the comparison; then how many runs they are, their FLOPs, and the time by runs that are done
    in `out` or, where there are none and `timed` says so, by a step timed here. Reads the data.
    """
    known: dict = {}
    comparison = settled(matched(comparison, known, registry), known, out)
    lines = [planned(row, prepared(row.runs[0], known), registry) for row in comparison.rows if row.runs[0].model]
    headers = ["variant", "parameters", "FLOPs/token", "KV/token", "memory", "kernel", "runs", "steps", "epochs"]
    align = ["left", *["right"] * 4, "left", *["right"] * 3]
    cells = [line.cells for line in lines]
    if comparison.match:
        headers, align = [*headers, "mismatch"], [*align, "right"]
        cells = [[*line.cells, f"{line.row.match['mismatch']:+.2%}"] for line in lines]
    said = [tabulate(cells, headers, disable_numparse=True, colalign=align)]
    said += [f"refused: {each.raw.name}: {each.reason}" for each in comparison.refused]
    runs, tried = sum(len(row.runs) for row in comparison.rows), sum(len(each) for _, each in trials(comparison))
    flops = units.flops(sum(line.flops * len(line.runs) for line in lines))
    counted = f"{runs} runs" + (f" and {tried} trials before them" if tried else "")
    said.append(f"{counted}, {flops} FLOPs: three forward passes of every token in training, evaluations left out")
    said += [time] if (time := duration(comparison, lines, known, registry, out, workers, timed)) else []
    said.append("memory is an estimate for one training step in float32")
    if max((line.epochs for line in lines if line.epochs), default=0) > MANY_EPOCHS:
        said.append(f"more than {MANY_EPOCHS} epochs: small models memorise by then; the best on dev is what counts")
    return "\n".join(said)


def planned(row: Row, task: Task, registry) -> Line:
    """A row of the plan, for a prepared task."""
    run = row.runs[0]
    counted = cost(sketch(run.model, run.sized(task), registry), task, run.train.batch_size)
    steps, step = n_steps(run.train, task), step_flops(counted.flops_per_token, run.train, task)
    weight = float(task.batch(64, torch.Generator().manual_seed(0)).weight.sum()) / 64
    tokens = steps * run.train.batch_size * run.train.accumulate * weight
    passes = tokens / task.train_tokens if task.train_tokens else None
    cells = [
        row.name,
        units.count(counted.parameters),
        units.flops(counted.flops_per_token),
        units.size(counted.kv_bytes_per_token),
        units.size(counted.memory_bytes),
        ", ".join(counted.kernels),
        str(len(row.runs)),
        f"{steps:,}",
        units.epochs(passes),
    ]
    return Line(row, cells, passes, counted.memory_bytes, step, step * steps)


def duration(
    comparison: Comparison, lines: Sequence[Line], known: dict, registry, out: Path, workers: int, timed: bool
) -> str:
    """How long the runs that are not done yet will take, and how that is known; nothing where it is not."""
    asked = {read(run, known).id(): line.flops for line in lines for run in line.runs}
    ended = finished(out, asked)
    left = sum(flops for id, flops in asked.items() if id not in ended)
    done = {id: seconds for id, seconds in ended.items() if seconds}
    if not left:
        return "all of them have ended"
    rate, base = None, next((line for line in lines if line.row.name == comparison.baseline), lines[0])
    if done:
        rate, how = sum(asked[id] for id in done) / sum(done.values()), f"by the {len(done)} that are done"
    elif timed:
        run = base.row.runs[0]
        rate = speed(run, prepared(run, known), registry, base.step, base.memory)
        how = f"by a step of '{base.row.name}' timed now, {units.flops(rate)} FLOPs/s"
    if rate is None:
        return ""
    side = f", {workers} at once" if workers > 1 else ""
    return f"about {about(left / rate / workers)} to go{side}: an estimate {how}"


def speed(run: RunSpec, task: Task, registry, step: int, memory: int) -> float | None:
    """FLOPs per second of a step of `step` FLOPs, forward and backward; None for one that would not fit in memory."""
    if memory > machine()["memory_bytes"] / 2:
        return None
    threads, place = torch.get_num_threads(), device(run.train.device)
    try:
        torch.set_num_threads(run.train.threads)
        with torch.random.fork_rng(devices=[]):
            model = run.make_model(task, registry).to(place).train()
            taken = [seconds(model, run, task, place) for _ in range(TIMED + 1)]
    finally:
        torch.set_num_threads(threads)
    return step / min(taken[1:])


def seconds(model, run: RunSpec, task: Task, place: torch.device) -> float:
    """Wall clock of one step without its optimizer."""
    generator, choices = torch.Generator().manual_seed(0), None if task.choices is None else task.choices.to(place)
    began = perf_counter()
    for _ in range(run.train.accumulate):
        batch = draw(task, run.train.batch_size, generator).to(place)
        loss, weight = measure.loss(measure.predict(model, batch), batch, choices)
        (loss / weight).backward()
    float(loss.detach())  # waits for a device that works on its own
    model.zero_grad()
    return perf_counter() - began


def finished(out: Path, ids: Iterable[str]) -> dict[str, float | None]:
    """The seconds of those of the runs that have ended, by id; None of one that diverged on the way."""
    found = {}
    for id in ids:
        record = Run(out / id).read()
        if record.get("status") in FINISHED:
            done = record["status"] == "done"
            found[id] = (record.get("train") or {}).get("seconds") if done else None
    return found


def about(seconds: float) -> str:
    """A time as long as an estimate deserves."""
    for limit, size, unit in ((90, 1, "s"), (90 * 60, 60, "min"), (48 * 3600, 3600, "h")):
        if seconds < limit:
            return f"{max(1, round(seconds / size))} {unit}"
    return f"{seconds / 86400:.1f} days"
