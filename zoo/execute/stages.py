"""From a comparison to run folders and back: what a run is told, what it makes of that, and all of them in a pool."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from zoo.compare.comparison import Comparison, ReferenceRow, Refusal, Row
from zoo.compare.halving import drop_rows, halving_rounds
from zoo.compare.match_budget import match_rows
from zoo.compare.prepared import Prepared
from zoo.compare.run_spec import ReferenceRun, RunSpec, TrainedRun, read_run
from zoo.compare.tune import NamedRuns, choose_settings, trial_rounds
from zoo.declare.library import Library, open_library, own_document
from zoo.declare.spec import ModelSpec, Node
from zoo.faults import SpecError
from zoo.files import write_json
from zoo.model.builder import bind, make
from zoo.model.weights import TensorMatch, hash_file, load_matching, read_model
from zoo.parts import Architecture
from zoo.record import COMPARISON, FORMAT, RunRecord, plain
from zoo.registry import discover
from zoo.runs import Run
from zoo.tasks import Reference, Task, Tokenizer
from zoo.train.loop import BoundTrain, bind_settings, choose_device

from .engines import Resources
from .pool import Job
from .shard import Shard

MODEL = "model.yaml"
"""The file beside weights that describes a model which was not trained here."""
WHOLE = Shard()


@dataclass(frozen=True)
class Made:
    """What a run works with: a model and how to train it, or a reference."""

    task: Task
    model: Architecture | None = None
    settings: BoundTrain | None = None
    reference: Reference | None = None


def record(run: RunSpec, prepared: Prepared) -> dict[str, Any]:
    """What a run's folder says before it starts: enough for another process to make the same, and its counts.

    They are taken here, since a model without weights costs a process that has none seconds of imports.
    """
    trained = isinstance(run, TrainedRun)
    return {
        "spec": run.plain(),
        "model": model_facts(run, prepared) if trained else None,
        "seed": run.seed,
        "threads": run.train.threads if trained else 1,
        "processes": run.train.processes if trained else 1,
        "provenance": run.provenance(),
        "plugins": prepared.library.wishes(),
    }


def reopen(record: RunRecord) -> tuple[RunSpec, Library]:
    """The run that a record describes. Raises `SpecError` if a part of it is no longer there."""
    wishes = plain(record.plugins)
    library = Library((own_document(),), discover(**wishes), wishes)
    return read_run(record.spec, library), library


def materialise(record: RunRecord) -> Made:
    """Read the data and make the model that a record asks for."""
    run, library = reopen(record)
    task = run.make_task()
    task.prepare()
    if isinstance(run, ReferenceRun):
        return Made(task, reference=bind(run.reference, {}))
    return Made(task, run.make_model(task, library.registry), bind_settings(run.train))


@dataclass(frozen=True)
class Trained:
    """A model with its weights, in evaluation mode, and what it was made of."""

    spec: ModelSpec
    model: Architecture
    library: Library
    tokenizer: Tokenizer | None = None


def trained(folder: str | os.PathLike) -> Trained:
    """The model of a run folder, at its best weights on dev, or of a folder that `zoo import` wrote.

    Raises `SpecError` if the folder holds no trained model.
    """
    run = Run(Path(os.path.abspath(folder)))
    known = run.record.exists()
    if not known and (run.folder / MODEL).exists():
        return described(run.folder / MODEL)
    record = run.read()
    if not run.weights.exists():
        state = f"its status is '{record.status}'" if known else "it has no run.json"
        raise SpecError(f"{run.folder} holds no trained model; {state}")
    spec, library = reopen(record)
    if not (isinstance(spec, TrainedRun) and record.data and record.data.vocab_size):
        raise SpecError(f"{run.record} says neither model nor vocabulary of its weights")
    shape = replace(spec.shape, vocab_size=record.data.vocab_size)
    model = make(spec.model, shape, seed=spec.seed, registry=library.registry)
    try:
        read_model(model, run.weights)
    except (RuntimeError, SafetensorError) as error:
        raise SpecError(f"{run.weights} does not hold the weights of the model that {run.record} describes") from error
    return Trained(spec.model, model.eval(), library, tokenizer_of(run, spec))


def tokenizer_of(run: Run, spec: RunSpec) -> Tokenizer | None:
    """The tokenizer of a run as it was trained; None if its task has none."""
    part = next((part for part in spec.task.parts() if part.slot == "tokenizer"), None)
    if part is None or not run.tokenizer.exists():
        return None
    tokenizer = bind(part, {})
    tokenizer.restore(run.tokenizer.read_text("utf-8"))
    return tokenizer


def described(path: Path) -> Trained:
    """The one model that a file describes, with its weights. Raises `SpecError`."""
    library = open_library(path)
    names = list(library.documents[0].value.get("models", {}))
    if len(names) != 1:
        raise SpecError(f"{path} holds {len(names)} models; it should hold one")
    reader = library.reader()
    spec, shape = reader.sized(library.expand("model", Node(names[0]), reader), Node({}))
    reader.finish()
    if not spec.weights or not spec.shape:
        raise SpecError(f"{path} says neither shape nor weights of '{names[0]}'")
    model = make(spec, shape, registry=library.registry)
    if drawn := load_matching(model, spec.weights):
        raise SpecError(f"{spec.weights} lacks {', '.join(drawn)}")
    own = "tokenizer" in library.documents[0].value.get("defaults", {})
    part = reader.part(reader.default("tokenizer"), "tokenizer") if own else None
    reader.finish()
    return Trained(spec, model.eval(), library, part and bind(part, {}))


def model_facts(run: TrainedRun, prepared: Prepared) -> dict[str, Any]:
    """The part `model` of the record."""
    facts = prepared.facts(run)
    counted = facts.cost
    kernels = dict.fromkeys(part.name for part in run.model.parts() if part.slot == "kernel")
    return {
        "parameters": counted.parameters,
        "flops_per_token": counted.flops_per_token,
        "kv_bytes_per_token": counted.kv_bytes_per_token,
        "kernel": {"requested": ", ".join(kernels) or None, "effective": list(counted.kernels)},
        "factorisation": "left to right" if facts.autoregressive else "independent",
        "weights": start_of(run.model, facts.fit),
    }


def start_of(spec: ModelSpec, fit: TensorMatch | None) -> dict[str, Any] | None:
    """The file that a model starts from, and which tensors one of the two has alone."""
    if spec.weights is None or fit is None:
        return None
    counts = {"filled": len(fit.filled), "drawn": fit.drawn, "unused": fit.unused}
    return {"file": spec.weights, "sha256": hash_file(spec.weights), **counts}


def starts(jobs: Sequence[Job]) -> list[str]:
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


def stages(
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
    write_json(folder(out, comparison.name) / COMPARISON, summary(comparison, prepared, file))
    return comparison


def write_jobs(rows: NamedRuns, prepared: Prepared, out: Path, shard: Shard, done: Collection[str] = ()) -> list[Job]:
    """The jobs of the named rows, one seed of each after the other; each run's folder says what it is. Those whose ids
    are `done` take part in the division into shards, and are left alone.
    """
    planned: dict[str, tuple[Job, dict[str, Any], int]] = {}
    for turn in itertools.zip_longest(*(runs for _, runs in rows)):
        for (row, runs), run in zip(rows, turn, strict=True):
            if run is not None and (id := prepared.id(run)) not in planned:
                name, facts = f"{row} · {run.seed}" if len(runs) > 1 else row, record(run, prepared)
                planned[id] = Job(name, Run(out / id)), facts, work(run, facts, prepared.task(run))
    held = shard.holds([cost for *_, cost in planned.values()])
    mine = [each for each in itertools.compress(planned.values(), held) if each[0].run.id not in done]
    for job, facts, _ in mine:
        job.run.begin(facts)
    return [job for job, *_ in mine]


def work(run: RunSpec, record: Mapping[str, Any], task: Task) -> int:
    """The FLOPs of a run, more or less: what matters is how runs compare. A reference is next to nothing."""
    if isinstance(run, ReferenceRun):
        return 1
    tokens = run.train.tokens or run.train.steps * run.train.batch_size * run.train.accumulate * task.target_len
    return 1 + record["model"]["flops_per_token"] * tokens


def summary(comparison: Comparison, prepared: Prepared, file: str) -> dict[str, Any]:
    """The record of a comparison: its rows, and what ranks them."""
    first = comparison.rows[0].first
    ranking = prepared.ranking(first)
    return {
        "format": FORMAT,
        "name": comparison.name,
        "file": file,
        "sets": prepared.library.overrides,
        "task": first.task.name,
        "metric": {"name": prepared.metric(first), "better": ranking.better, "unit": ranking.unit},
        "select": "best dev",
        "baseline": comparison.baseline,
        "test": comparison.test,
        "margin": comparison.margin,
        "match": comparison.match and comparison.match.plain(),
        "tune": comparison.tune and comparison.tune.plain(),
        "halving": comparison.halving and comparison.halving.plain(),
        "claims": [claim.record() for claim in comparison.claims],
        "notes": notes(comparison, prepared),
        "rows": [*(row_summary(row, prepared) for row in comparison.lines), *map(refusal_summary, comparison.refused)],
    }


def row_summary(row: Row | ReferenceRow, prepared: Prepared) -> dict[str, Any]:
    trained = isinstance(row, Row)
    return {
        "name": row.name,
        "differs": dict(row.differs),
        "cell": dict(row.cell) if trained else {},
        "refused": None,
        "match": row.match if trained else None,
        "tuning": row.tuning if trained else None,
        "halving": row.halving if trained else None,
        "runs": [{"seed": run.seed, "id": prepared.id(run)} for run in (row.settled if trained else row.runs)],
    }


def refusal_summary(refusal: Refusal) -> dict[str, Any]:
    raw = refusal.raw
    return {"name": raw.name, "differs": {}, "cell": dict(raw.cell), "refused": refusal.reason, "runs": []}


def notes(comparison: Comparison, prepared: Prepared) -> list[str]:
    """What the tasks of a comparison say of the splits that they are scored on beside dev and test."""
    tasks = (prepared.bound_task(row.first.task, row.first.shape) for row in comparison.lines)
    return list(dict.fromkeys(task.probe_note for task in tasks if task.probe_note))


def count_resources(comparison: Comparison) -> Resources:
    """What the largest run needs; of a cluster a GPU only if its device is named."""
    settings = [run.train for row in comparison.rows for run in row.runs]
    threads = max((train.threads * train.processes for train in settings), default=1)
    gpus = max((train.processes for train in settings if train.device.startswith("cuda")), default=0)
    elsewhere = any(choose_device(name).type != "cpu" for name in {train.device for train in settings})
    return Resources(threads, gpus, elsewhere)


def folder(out: Path, name: str) -> Path:
    """Where a comparison's record and report lie."""
    path = out / name
    path.mkdir(parents=True, exist_ok=True)
    return path
