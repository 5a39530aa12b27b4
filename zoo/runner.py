"""From a comparison to run folders and back: what a run is told, what it makes of that, and all of them in a pool."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .builder import bind, make, sketch
from .compare import Comparison, Row, RunSpec, read_run
from .faults import SpecError
from .library import Library, own_document
from .measure import METRICS
from .parts import Architecture
from .plan import Cost, cost
from .pool import Job
from .registry import discover
from .runs import Run, write_json
from .spec import PartSpec, Train
from .tasks import Reference, Task


@dataclass(frozen=True)
class Made:
    """What a run works with: a model and how to train it, or a reference; `facts` are parts of its record."""

    task: Task
    facts: Mapping[str, Any]
    model: Architecture | None = None
    settings: Train | None = None
    reference: Reference | None = None


def record(run: RunSpec, library: Library) -> dict[str, Any]:
    """What a run's folder says before it starts: enough for another process to make the same."""
    return {
        "spec": run.plain(),
        "seed": run.seed,
        "threads": run.train.threads if run.train else 1,
        "provenance": run.provenance(),
        "plugins": library.wishes(),
    }


def reopen(record: Mapping[str, Any]) -> tuple[RunSpec, Library]:
    """The run that a record describes. Raises `SpecError` if a part of it is no longer there."""
    wishes = record.get("plugins", {})
    library = Library((own_document(),), discover(**wishes), wishes)
    return read_run(record["spec"], library), library


def materialise(record: Mapping[str, Any]) -> Made:
    """Read the data and make the model that a record asks for."""
    run, library = reopen(record)
    task = run.make_task()
    task.prepare()
    if run.reference is not None:
        return Made(task, {"model": None}, reference=bind(run.reference, {}))
    counted = cost(sketch(run.model, run.sized(task), library.registry), task, run.train.batch_size)
    model = run.make_model(task, library.registry)
    return Made(task, {"model": model_facts(run, counted, model)}, model, bound(run.train))


def model_of(record: Mapping[str, Any]) -> Architecture:
    """The model of a record, its weights not yet loaded."""
    run, library = reopen(record)
    shape = replace(run.shape, vocab_size=record["data"]["vocab_size"])
    return make(run.model, shape, seed=run.seed, registry=library.registry)


def model_facts(run: RunSpec, counted: Cost, model: Architecture) -> dict[str, Any]:
    """The part `model` of the record."""
    kernels = [part.name for part in run.model.slots["kernel"].parts()]
    return {
        "parameters": counted.parameters,
        "flops_per_token": counted.flops_per_token,
        "kv_bytes_per_token": counted.kv_bytes_per_token,
        "kernel": {"requested": ", ".join(kernels), "effective": list(counted.kernels)},
        "factorisation": "left to right" if model.autoregressive else "independent",
    }


def bound(train: Train) -> Train:
    """The settings with factories in place of their parts."""

    def factory(part: PartSpec) -> Callable[..., Any]:
        return lambda **given: bind(part, given)

    return replace(train, schedule=factory(train.schedule), optimizer=factory(train.optimizer))


def write_comparison(comparison: Comparison, library: Library, out: Path, file: str) -> list[Job]:
    """Write the comparison's own record and every run's, and return the jobs, seeds interleaved across the rows."""
    first = comparison.rows[0].runs[0]
    name = first.make_task().metrics[0]
    lines = with_texts(comparison.rows)
    rows = []
    for row in lines:
        runs = [{"seed": run.seed, "id": run.id()} for run in row.runs]
        rows.append({"name": row.name, "differs": dict(row.differs), "refused": None, "runs": runs})
    metric = METRICS[name]
    write_json(
        folder(out, comparison.name) / "comparison.json",
        {
            "format": 1,
            "name": comparison.name,
            "file": file,
            "task": first.task.name,
            "metric": {"name": name, "better": metric.better, "unit": metric.unit},
            "select": "best dev",
            "baseline": comparison.baseline,
            "rows": rows,
        },
    )
    jobs: dict[str, Job] = {}
    for turn in range(max(len(row.runs) for row in lines)):
        for row in lines:
            if turn < len(row.runs):
                run = row.runs[turn]
                job = Job(f"{row.name} · {run.seed}" if len(row.runs) > 1 else row.name, Run(out / run.id()))
                if job.run.id not in jobs:
                    job.run.begin(record(run, library))
                    jobs[job.run.id] = job
    return list(jobs.values())


def with_texts(rows: Sequence[Row]) -> list[Row]:
    """The rows with the hash of the text that each run reads. Raises `SpecError` for a text that cannot be read."""
    texts: dict[str, str] = {}

    def text(run: RunSpec) -> str:
        key = str(run.task.plain())
        if key not in texts:
            data = run.make_task().data
            try:
                texts[key] = "" if data is None else data.read().sha256()
            except ValueError as error:
                raise SpecError([run.task.fault(str(error))]) from error
        return texts[key]

    return [replace(row, runs=tuple(replace(run, text=text(run)) for run in row.runs)) for row in rows]


def folder(out: Path, name: str) -> Path:
    """Where a comparison's record and report lie."""
    path = out / name
    path.mkdir(parents=True, exist_ok=True)
    return path
