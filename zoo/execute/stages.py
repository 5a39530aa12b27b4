"""The stages of a comparison: the jobs that can run side by side, those first on which the choice of others depends."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from zoo.compare.comparison import Comparison
from zoo.compare.halving import drop_rows, halving_rounds
from zoo.compare.match_budget import match_rows
from zoo.compare.prepared import Prepared
from zoo.compare.run_spec import ReferenceRun, RunSpec
from zoo.compare.tune import NamedRuns, choose_settings, trial_rounds
from zoo.files import write_json
from zoo.record import COMPARISON
from zoo.record.folder import Run
from zoo.tasks import Task
from zoo.train.loop import choose_device

from .describe import describe_comparison, describe_run
from .engines import Resources
from .pool import Job
from .shard import Shard

WHOLE = Shard()


def describe_starts(jobs: Sequence[Job]) -> list[str]:
    """A line for each row that starts from the weights of a file: what is in the model alone, and in the file alone."""
    out = {}
    for job in jobs:
        model = job.run.read().model
        if facts := model and model.weights:
            said = [f"{facts.filled} tensors from {facts.file}"]
            for tensors, what in ((facts.drawn, "drawn anew"), (facts.unused, "left in the file")):
                names = dict.fromkeys(re.sub(r"\b\d+\b", "*", name) for name in tensors)
                said += [f"{what}: {', '.join(names)}"] if names else []
            out[job.name.partition(" · ")[0]] = "; ".join(said)
    return [f"{name}: {text}" for name, text in out.items()]


def write_comparison(
    comparison: Comparison, prepared: Prepared, out: Path, file: str, shard: Shard = WHOLE
) -> list[Job]:
    """Write the comparison's own record and every run's, and return the jobs, seeds interleaved across the rows.

    Of a shard, the runs outside it are left alone. A row whose settings are still to be chosen by trials has no runs
    yet, and one that was dropped has none. Raises `SpecError` for data that cannot be read.
    """
    comparison = write_foreseen(comparison, prepared, out, file)
    trained = [(row.name, row.settled) for row in comparison.rows]
    return write_jobs([*trained, *((row.name, row.runs) for row in comparison.references)], prepared, out, shard)


def write_trials(
    comparison: Comparison, prepared: Prepared, out: Path, file: str, shard: Shard = WHOLE, done: Collection[str] = ()
) -> list[Job]:
    """The same with what comes before the runs, trials or rounds of halving, as far as they are known, in place of the
    runs, and without those whose ids are `done`: `write_comparison` chooses once they have ended.
    """
    comparison = write_foreseen(comparison, prepared, out, file)
    rounds = trial_rounds(comparison) if comparison.tune else halving_rounds(comparison)
    return [job for named in rounds for job in write_jobs(named, prepared, out, shard, done)]


def plan_stages(
    comparison: Comparison, prepared: Prepared, out: Path, file: str, shard: Shard = WHOLE
) -> Iterator[list[Job]]:
    """Jobs that can go side by side, those on which the choice of others depends first: each list is to be run before
    the next is asked for.
    """
    done: set[str] = set()
    comparison = match_rows(comparison, prepared)
    if comparison.tune or comparison.halving:
        while jobs := write_trials(comparison, prepared, out, file, shard, done):
            yield jobs
            done |= {job.run.id for job in jobs}
    yield write_comparison(comparison, prepared, out, file, shard)


def foresee(comparison: Comparison, prepared: Prepared, out: Path) -> Comparison:
    """The comparison as far as `out` says what it becomes: matched, its settings chosen, its rows dropped."""
    return drop_rows(choose_settings(match_rows(comparison, prepared), prepared, out), prepared, out)


def write_foreseen(comparison: Comparison, prepared: Prepared, out: Path, file: str) -> Comparison:
    """The same, and its record."""
    comparison = foresee(comparison, prepared, out)
    write_json(make_folder(out, comparison.name) / COMPARISON, describe_comparison(comparison, prepared, file))
    return comparison


def write_jobs(rows: NamedRuns, prepared: Prepared, out: Path, shard: Shard, done: Collection[str] = ()) -> list[Job]:
    """The jobs of the named rows, one seed of each after the other; each run's folder says what it is. Those whose ids
    are `done` take part in the division into shards, and are left alone.
    """
    planned: dict[str, tuple[Job, dict[str, Any], int]] = {}
    for turn in itertools.zip_longest(*(runs for _, runs in rows)):
        for (row, runs), run in zip(rows, turn, strict=True):
            if run is not None and (id := prepared.id(run)) not in planned:
                name, facts = f"{row} · {run.seed}" if len(runs) > 1 else row, describe_run(run, prepared)
                planned[id] = Job(name, Run(out / id)), facts, estimate_work(run, facts, prepared.task(run))
    held = shard.holds([cost for *_, cost in planned.values()])
    mine = [each for each in itertools.compress(planned.values(), held) if each[0].run.id not in done]
    for job, facts, _ in mine:
        job.run.begin(facts)
    return [job for job, *_ in mine]


def estimate_work(run: RunSpec, record: Mapping[str, Any], task: Task) -> int:
    """The FLOPs of a run, more or less: what matters is how runs compare. A reference is next to nothing."""
    if isinstance(run, ReferenceRun):
        return 1
    train = run.train
    tokens = train.tokens or (train.steps or 0) * train.batch_size * train.accumulate * task.target_len
    return 1 + record["model"]["flops_per_token"] * tokens


def count_resources(comparison: Comparison) -> Resources:
    """What the largest run needs; of a cluster a GPU only if its device is named."""
    settings = [run.train for row in comparison.rows for run in row.runs]
    threads = max((train.threads * train.processes for train in settings), default=1)
    gpus = max((train.processes for train in settings if train.device.startswith("cuda")), default=0)
    elsewhere = any(choose_device(name).type != "cpu" for name in {train.device for train in settings})
    return Resources(threads, gpus, elsewhere)


def make_folder(out: Path, name: str) -> Path:
    """Where a comparison's record and report lie."""
    path = out / name
    path.mkdir(parents=True, exist_ok=True)
    return path
