"""What runs have in common, made once: a task with its data read and its tokenizer trained."""

from __future__ import annotations

from zoo.faults import SpecError
from zoo.tasks import Task

from .comparison import RunSpec


def prepared(run: RunSpec, known: dict) -> Task:
    """The run's task, its data read and its tokenizer trained; one that is in `known` is not read again.

    Raises `SpecError` for data that cannot serve.
    """
    key = (str(run.task.plain()), run.shape)
    if key not in known:
        task = run.make_task()
        try:
            task.prepare()
        except ValueError as error:
            raise SpecError([run.task.fault(str(error))]) from error
        known[key] = task
    return known[key]
