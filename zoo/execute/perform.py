"""One run performed in this process: its data read, its model trained and scored, and the result recorded."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from zoo.record.folder import Run, machine, versions

from .process import set_up_process

if TYPE_CHECKING:
    from zoo.record import RunRecord
    from zoo.tasks import Reference, Task

DATA = ("sha256", "train_tokens", "vocab_size", "notes", "labels", "has_source", "source_len")
"""What is recorded of a task once its data was read."""
Materialise = Callable[["RunRecord"], Any]
"""Makes what a record asks for: an object with `task`, and with `model` and `settings` or with `reference`."""


def perform_run(run: Run, stop: Callable[[], bool], materialise: Materialise | None = None, **given: Any) -> None:
    """Do a run, and record what came out. `given` goes to the training."""
    record = run.update(status="running", reason=None, machine=machine(), versions=versions())
    set_up_process(record.threads)
    made = (materialise or materialise_run)(record)
    task = made.task
    data = {name: getattr(task, name) for name in DATA}
    run.update(data=data, threads=record.threads)
    tokenizer = getattr(task, "tokenizer", None)
    if tokenizer is not None:
        run.tokenizer.write_text(tokenizer.save(), "utf-8")
    if made.reference is not None:
        run.update(**score_reference(made.reference, task))
    else:
        from zoo.train.loop import train

        result = train(made.model, task, made.settings, seed=record.seed, folder=run, stop=stop, **given)
        run.update(**result, decode=None)
        if result["status"] == "done" and record.processes == 1:
            time_decoding(run, made, stop)


def materialise_run(record: RunRecord) -> Any:
    from .materialise import materialise  # which imports torch

    return materialise(record)


def time_decoding(run: Run, made: Any, stop: Callable[[], bool]) -> None:
    """Record how fast the best weights write, uncompiled. The result stands by then: a failure here is only printed.

    Not for a run in several processes, of which none may hold the whole model, and each could fail the run.
    """
    from torch.compiler import set_stance

    from zoo.train.decode_speed import decode

    try:
        with set_stance("force_eager") if made.settings.compile else nullcontext():
            if speed := decode(made.model, made.task, stop):
                run.update(decode=speed)
    except Exception:
        traceback.print_exc()


def score_reference(reference: Reference, task: Task) -> dict[str, Any]:
    """The record's parts of a row that no gradient trained."""
    from zoo.train import metrics

    reference.fit(task)
    splits = ("dev", "test", *task.probes)
    scores = {split: metrics.evaluate(None, task, split, reference=reference) for split in splits}
    return {"status": "done", "train": None, "best": {"step": 0, "dev": scores["dev"]}, "metrics": scores}
