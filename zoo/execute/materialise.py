"""What a worker makes of a run's record: the task with its data read, and the model or the reference."""

from __future__ import annotations

from dataclasses import dataclass

from zoo.compare.run_spec import ReferenceRun, RunSpec, read_run
from zoo.declare.library import Library, own_document
from zoo.model.builder import bind
from zoo.parts import Architecture
from zoo.record import RunRecord, plain
from zoo.registry import discover
from zoo.tasks import Reference, Task
from zoo.train.loop import BoundTrain, bind_settings


@dataclass(frozen=True)
class Materialised:
    """What a run works with: a model and how to train it, or a reference."""

    task: Task
    model: Architecture | None = None
    settings: BoundTrain | None = None
    reference: Reference | None = None


def reopen(record: RunRecord) -> tuple[RunSpec, Library]:
    """The run that a record describes. Raises `SpecError` if a part of it is no longer there."""
    wishes = plain(record.plugins)
    library = Library((own_document(),), discover(**wishes), wishes)
    return read_run(record.spec, library), library


def materialise(record: RunRecord) -> Materialised:
    """Read the data and make the model that a record asks for."""
    run, library = reopen(record)
    task = run.make_task()
    task.prepare()
    if isinstance(run, ReferenceRun):
        return Materialised(task, reference=bind(run.reference, {}))
    return Materialised(task, run.make_model(task, library.registry), bind_settings(run.train))
