"""What a comparison would run, what that would cost, and about how long it would take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

import torch

from zoo import numbers
from zoo.compare.comparison import Comparison, Row
from zoo.compare.halving import count_rounds
from zoo.compare.prepared import Prepared
from zoo.compare.run_spec import TrainedRun
from zoo.compare.tuning_rules import Halving
from zoo.model.cost import scale_to_step
from zoo.record.folder import Run, machine
from zoo.train.loop import bind_settings, count_steps

from .materialise import Materialised
from .plan import Duration, Plan, PlanRow, Totals
from .stages import foresee
from .step_timer import stepper

TIMED = 3
"""Steps that are timed, after one that warms up."""


@dataclass(frozen=True)
class Line:
    """A row and what is said of it; the FLOPs of one of its steps and of one of its runs."""

    row: Row
    record: PlanRow
    step: int
    flops: int

    @property
    def runs(self) -> list[TrainedRun]:
        """Its runs, unless it was dropped, and those of its trials or rounds."""
        return [*remaining(self.row), *(run for trial in self.row.trials for run in trial.runs)]

    def cost(self, run: TrainedRun) -> int:
        """FLOPs of one of them."""
        return self.step * run.train.steps if run.train.steps else self.flops


def remaining(row: Row) -> tuple[TrainedRun, ...]:
    """The runs of a row, unless it was dropped."""
    return () if (row.halving or {}).get("dropped") else row.runs


def estimate(
    comparison: Comparison, prepared: Prepared, out: Path = Path("runs"), workers: int = 1, timed: bool = False
) -> Plan:
    """One record per row of the comparison; how many runs they are, their FLOPs, and the time by runs that are done in
    `out` or, where there are none and `timed` says so, by a step timed here. Reads the data.
    """
    comparison = foresee(comparison, prepared, out)
    lines = [plan_row(row, prepared) for row in comparison.rows]
    totals = sum_up(comparison, lines)
    duration = estimate_duration(comparison, lines, totals.flops, prepared, out, workers, timed)
    refused = {each.raw.name: each.reason for each in comparison.refused}
    return Plan(comparison.name, tuple(line.record for line in lines), refused, totals, duration)


def plan_row(row: Row, prepared: Prepared) -> Line:
    """A row of the plan. Reads the data."""
    run = row.first
    task, counted = prepared.task(run), prepared.facts(run).cost
    steps, step = count_steps(run.train, task), scale_to_step(counted.flops_per_token, run.train, task)
    weight = float(task.batch(64, torch.Generator().manual_seed(0)).weight.sum()) / 64
    tokens = steps * run.train.batch_size * run.train.accumulate * weight
    record = PlanRow(
        row.name, counted.parameters, counted.flops_per_token, counted.kv_bytes_per_token, counted.memory_bytes,
        tuple(counted.kernels), len(remaining(row)), steps, tokens / task.train_tokens if task.train_tokens else None,
        row.match["mismatch"] if row.match else None,
    )  # fmt: skip
    return Line(row, record, step, step * steps)


def sum_up(comparison: Comparison, lines: Sequence[Line]) -> Totals:
    """How many runs there are, and the FLOPs of all: at most so many while rows may still be dropped."""
    references = len(comparison.references)
    if comparison.halving and any(line.row.held and remaining(line.row) for line in lines):
        return sum_up_dearest(comparison, comparison.halving, lines, references)
    runs = sum(len(remaining(line.row)) for line in lines)
    earlier = sum(len(line.runs) for line in lines) - runs
    flops = sum(line.cost(run) for line in lines for run in line.runs)
    if comparison.tune and comparison.tune.draw:
        to_come = [comparison.tune.draw.trials - len(line.row.trials) for line in lines]
        earlier += sum(to_come) * len(comparison.tune.seeds)
        flops += sum(n * line.flops for n, line in zip(to_come, lines, strict=True)) * len(comparison.tune.seeds)
    return Totals(references + runs, earlier, flops, halving=bool(comparison.halving))


def sum_up_dearest(comparison: Comparison, rule: Halving, lines: Sequence[Line], references: int) -> Totals:
    """The same where the rows that cost most go on."""
    base = [line for line in lines if line.row.name == comparison.baseline]
    rest = sorted((line for line in lines if line not in base), key=lambda line: -line.flops)
    flops = counts = 0
    for number, kept in enumerate(rounds := count_rounds(rule, len(rest))):
        chosen, last = [*base, *rest[:kept]], number == len(rounds) - 1
        seeds, share = (len(lines[0].row.runs), 1) if last else (len(rule.seeds), rule.share(number))
        flops += sum(line.step * ceil(line.flops // line.step / share) for line in chosen) * seeds
        counts += 0 if last else len(chosen) * seeds
    runs = references + (len(base) + rounds[-1]) * len(lines[0].row.runs)
    return Totals(runs, counts, flops, halving=True, at_most=True)


def estimate_duration(
    comparison: Comparison, lines: Sequence[Line], flops: int, prepared: Prepared, out: Path, workers: int,
    timed: bool,
) -> Duration | None:  # fmt: skip
    """How long what is not done yet of so many FLOPs will take, and how that is known; None where it is not."""
    asked = {prepared.id(run): line.cost(run) for line in lines for run in line.runs}
    ended = find_finished(out, asked)
    left = flops - sum(asked[id] for id in ended)
    done = {id: seconds for id, seconds in ended.items() if seconds}
    if left <= 0:
        return Duration(0.0, workers, "")
    base = next((line for line in lines if line.row.name == comparison.baseline), lines[0])
    if done:
        rate, how = sum(asked[id] for id in done) / sum(done.values()), f"by the {len(done)} that are done"
        return Duration(left / rate / workers, workers, how)
    memory = base.record.memory_bytes
    if timed and (speed := time_step(base.row.first, prepared, base.step, memory)):
        how = f"by a step of '{base.record.name}' timed now, {numbers.flops(speed)} FLOPs/s"
        return Duration(left / speed / workers, workers, how)
    return None


def time_step(run: TrainedRun, prepared: Prepared, step: int, memory: int) -> float | None:
    """FLOPs per second of a training step of `step` FLOPs; None for one that would not fit in memory."""
    if memory > machine()["memory_bytes"] / 2:
        return None
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(run.train.threads)
        with torch.random.fork_rng(devices=[]):
            task = prepared.task(run)
            again = stepper(
                Materialised(task, run.make_model(task, prepared.library.registry), bind_settings(run.train))
            )
            taken = [again() for _ in range(TIMED + 1)]
    finally:
        torch.set_num_threads(threads)
    return step / min(taken[1:])


def find_finished(out: Path, ids: Iterable[str]) -> dict[str, float | None]:
    """The seconds of those of the runs that have ended, by id; None of one that diverged on the way."""
    found: dict[str, float | None] = {}
    for id in ids:
        record = Run(out / id).read()
        if record.finished:
            found[id] = record.train.seconds if record.train and record.status == "done" else None
    return found
