"""What a comparison would run, what that would cost, and about how long it would take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

import torch
from tabulate import tabulate

from zoo import numbers
from zoo.compare.comparison import Comparison, Row
from zoo.compare.halving import count_rounds
from zoo.compare.prepared import Prepared
from zoo.compare.run_spec import TrainedRun
from zoo.model.cost import scale_to_step
from zoo.runs import Run, machine
from zoo.train.loop import bind_settings, count_steps

from .stages import Made, foresee
from .step_timer import stepper

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
    def runs(self) -> list[TrainedRun]:
        """Its runs, unless it was dropped, and those of its trials or rounds."""
        return [*self.last, *(run for trial in self.row.trials for run in trial.runs)]

    @property
    def last(self) -> tuple[TrainedRun, ...]:
        return () if (self.row.halving or {}).get("dropped") else self.row.runs

    def cost(self, run: TrainedRun) -> int:
        """FLOPs of one of them."""
        return self.step * run.train.steps if run.train.steps else self.flops


def table(
    comparison: Comparison, prepared: Prepared, out: Path = Path("runs"), workers: int = 1, timed: bool = False
) -> str:
    """One line per row of the comparison; then how many runs they are, their FLOPs, and the time by runs that are done
    in `out` or, where there are none and `timed` says so, by a step timed here. Reads the data.
    """
    comparison = foresee(comparison, prepared, out)
    lines = [planned(row, prepared) for row in comparison.rows]
    headers = ["variant", "parameters", "FLOPs/token", "KV/token", "memory", "kernel", "runs", "steps", "epochs"]
    align = ["left", *["right"] * 4, "left", *["right"] * 3]
    cells = [line.cells for line in lines]
    if comparison.match:
        headers, align = [*headers, "mismatch"], [*align, "right"]
        cells = [[*line.cells, f"{line.row.match['mismatch']:+.2%}"] for line in lines]
    said = [tabulate(cells, headers, disable_numparse=True, colalign=align)]
    said += [f"refused: {each.raw.name}: {each.reason}" for each in comparison.refused]
    counted, flops = budget(comparison, lines)
    flops_said = f"{numbers.flops(flops)} FLOPs: three forward passes of every token in training, evaluations left out"
    said.append(f"{counted}, {flops_said}")
    said += [time] if (time := duration(comparison, lines, flops, prepared, out, workers, timed)) else []
    said.append("memory is an estimate for one training step in float32")
    if max((line.epochs for line in lines if line.epochs), default=0) > MANY_EPOCHS:
        said.append(f"more than {MANY_EPOCHS} epochs: small models memorise by then; the best on dev is what counts")
    return "\n".join(said)


def planned(row: Row, prepared: Prepared) -> Line:
    """A row of the plan. Reads the data."""
    run = row.first
    task, counted = prepared.task(run), prepared.facts(run).cost
    steps, step = count_steps(run.train, task), scale_to_step(counted.flops_per_token, run.train, task)
    weight = float(task.batch(64, torch.Generator().manual_seed(0)).weight.sum()) / 64
    tokens = steps * run.train.batch_size * run.train.accumulate * weight
    passes = tokens / task.train_tokens if task.train_tokens else None
    cells = [
        row.name,
        numbers.count(counted.parameters),
        numbers.flops(counted.flops_per_token),
        numbers.size(counted.kv_bytes_per_token),
        numbers.size(counted.memory_bytes),
        ", ".join(counted.kernels),
        f"{steps:,}",
        numbers.epochs(passes),
    ]
    line = Line(row, cells, passes, counted.memory_bytes, step, step * steps)
    cells.insert(-2, str(len(line.last)))
    return line


def budget(comparison: Comparison, lines: Sequence[Line]) -> tuple[str, int]:
    """How many runs there are, and the FLOPs of all: at most so many while rows may still be dropped."""
    references = len(comparison.references)
    if comparison.halving and any(line.row.held and line.last for line in lines):
        return at_most(comparison, lines, references)
    runs = references + sum(len(line.last) for line in lines)
    tried = sum(len(line.runs) - len(line.last) for line in lines)
    flops = sum(line.cost(run) for line in lines for run in line.runs)
    if comparison.tune and comparison.tune.draw:
        to_come = [comparison.tune.draw.trials - len(line.row.trials) for line in lines]
        tried += sum(to_come) * len(comparison.tune.seeds)
        flops += sum(n * line.flops for n, line in zip(to_come, lines, strict=True)) * len(comparison.tune.seeds)
    kind = "in rounds of halving" if comparison.halving else "trials"
    return f"{runs} runs" + (f" and {tried} {kind} before them" if tried else ""), flops


def at_most(comparison: Comparison, lines: Sequence[Line], references: int) -> tuple[str, int]:
    """The same where the rows that cost most go on."""
    rule = comparison.halving
    base = [line for line in lines if line.row.name == comparison.baseline]
    rest = sorted((line for line in lines if line not in base), key=lambda line: -line.flops)
    flops = counts = 0
    for number, kept in enumerate(rounds := count_rounds(rule, len(rest))):
        chosen, last = [*base, *rest[:kept]], number == len(rounds) - 1
        seeds, share = (len(lines[0].row.runs), 1) if last else (len(rule.seeds), rule.share(number))
        flops += sum(line.step * ceil(line.flops // line.step / share) for line in chosen) * seeds
        counts += 0 if last else len(chosen) * seeds
    runs = references + (len(base) + rounds[-1]) * len(lines[0].row.runs)
    return f"at most {runs} runs and {counts} in rounds of halving before them", flops


def duration(
    comparison: Comparison, lines: Sequence[Line], flops: int, prepared: Prepared, out: Path, workers: int,
    timed: bool,
) -> str:  # fmt: skip
    """How long what is not done yet of so many FLOPs will take, and how that is known; nothing where it is not."""
    asked = {prepared.id(run): line.cost(run) for line in lines for run in line.runs}
    ended = finished(out, asked)
    left = flops - sum(asked[id] for id in ended)
    done = {id: seconds for id, seconds in ended.items() if seconds}
    if left <= 0:
        return "all of them have ended"
    rate, base = None, next((line for line in lines if line.row.name == comparison.baseline), lines[0])
    if done:
        rate, how = sum(asked[id] for id in done) / sum(done.values()), f"by the {len(done)} that are done"
    elif timed:
        rate = speed(base.row.first, prepared, base.step, base.memory)
        how = f"by a step of '{base.row.name}' timed now, {numbers.flops(rate)} FLOPs/s"
    if rate is None:
        return ""
    side = f", {workers} at once" if workers > 1 else ""
    return f"about {about(left / rate / workers)} to go{side}: an estimate {how}"


def speed(run: TrainedRun, prepared: Prepared, step: int, memory: int) -> float | None:
    """FLOPs per second of a training step of `step` FLOPs; None for one that would not fit in memory."""
    if memory > machine()["memory_bytes"] / 2:
        return None
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(run.train.threads)
        with torch.random.fork_rng(devices=[]):
            task = prepared.task(run)
            again = stepper(Made(task, run.make_model(task, prepared.library.registry), bind_settings(run.train)))
            taken = [again() for _ in range(TIMED + 1)]
    finally:
        torch.set_num_threads(threads)
    return step / min(taken[1:])


def finished(out: Path, ids: Iterable[str]) -> dict[str, float | None]:
    """The seconds of those of the runs that have ended, by id; None of one that diverged on the way."""
    found = {}
    for id in ids:
        record = Run(out / id).read()
        if record.finished:
            found[id] = record.train.seconds if record.train and record.status == "done" else None
    return found


def about(seconds: float) -> str:
    """A time as long as an estimate deserves."""
    for limit, size, unit in ((90, 1, "s"), (90 * 60, 60, "min"), (48 * 3600, 3600, "h")):
        if seconds < limit:
            return f"{max(1, round(seconds / size))} {unit}"
    return f"{seconds / 86400:.1f} days"
