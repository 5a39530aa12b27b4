"""One run in a process of its own: `python -m zoo.execute.worker FOLDER`, which reads what to do in its run.json."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

from zoo.runs import Run, machine, versions

OFFERED = 500
"""Of 1000 by which Linux can be told to prefer a process where it needs memory."""
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4  # malloc.h


class Stop:
    """True once this process was asked to end, or the one that started it is gone. A second request ends it at once."""

    def __init__(self):
        self.asked = False
        self.parent = os.getppid()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.ask)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])  # who started us may have blocked it, as Ray does

    def ask(self, number: int, frame: Any) -> None:
        if self.asked:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self.asked = True

    def __call__(self) -> bool:
        return self.asked or os.getppid() != self.parent


def main(folder: str, materialise: Callable[[Mapping[str, Any]], Any] | None = None) -> int:
    """Take a run to its end, or to where it is stopped, and return the exit code.

    `materialise(record)` gives an object with `task`, and with `model` and `settings` or with `reference`. If another
    process has the run, wait for its result.
    """
    run, stop = Run(Path(folder)), Stop()
    with run.lock(wait=lambda: not stop()) as mine:
        if not mine or run.finished:
            return 0
        try:
            run.error.unlink(missing_ok=True)
            run.tidy()
            processes = run.read().get("processes", 1)
            if processes == 1:
                perform(run, stop, materialise)
            else:
                from .launcher import spread

                spread(run, processes)
            run.tidy()
        except BaseException as error:
            run.error.write_text(traceback.format_exc(), "utf-8")
            run.update(status="failed", reason=one_line(error))
            return 1
    return 0


def prepare(record: Mapping[str, Any]) -> int:
    """Set up this process before torch is imported; returns how many threads it has."""
    threads = record.get("threads", 1)
    offer()
    keep_pages()
    os.environ |= {"OMP_NUM_THREADS": str(threads), "RAYON_NUM_THREADS": str(threads)}
    import torch

    torch.set_num_threads(threads)
    return threads


def perform(run: Run, stop: Callable[[], bool], materialise: Callable | None = None, **given: Any) -> None:
    """Do a run, and record what came out. `given` goes to the training."""
    record = run.update(status="running", reason=None, machine=machine(), versions=versions())
    threads = prepare(record)
    if materialise is None:
        from .stages import materialise
    made = materialise(record)
    task = made.task
    data = {name: getattr(task, name) for name in ("sha256", "train_tokens", "vocab_size", "notes")}
    run.update(data=data, threads=threads)
    tokenizer = getattr(task, "tokenizer", None)
    if tokenizer is not None:
        run.tokenizer.write_text(tokenizer.save(), "utf-8")
    if made.reference is not None:
        run.update(**score(made.reference, task))
    else:
        from zoo.train.loop import train

        found = train(made.model, task, made.settings, seed=record["seed"], folder=run, stop=stop, **given)
        run.update(**found, decode=None)
        if found["status"] == "done" and record.get("processes", 1) == 1:
            time_writing(run, made, stop)


def time_writing(run: Run, made: Any, stop: Callable[[], bool]) -> None:
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


def offer() -> None:
    """Be the process that the system ends first where memory runs out: one run is lost, and no other, nor the pool."""
    with suppress(OSError):  # elsewhere than on Linux, or where it is forbidden
        Path("/proc/self/oom_score_adj").write_text(str(OFFERED))


def keep_pages() -> None:
    """Let glibc keep the large blocks that every training step frees and asks for again.

    Otherwise each is given back and cleared anew: ten times the page faults, a fifth of the processor time at width
    256, and 20 MB to 150 MB less memory. The bits of a result do not change.
    """
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        for option, value in ((M_MMAP_MAX, 0), (M_TRIM_THRESHOLD, 2**31 - 1), (M_TOP_PAD, 2**28)):
            libc.mallopt(option, value)


def score(reference, task) -> dict[str, Any]:
    """The record's parts of a row that no gradient trained."""
    from zoo.train import metrics

    reference.fit(task)
    splits = ("dev", "test", *task.probes)
    metrics = {split: metrics.evaluate(None, task, split, reference=reference) for split in splits}
    return {"status": "done", "train": None, "best": {"step": 0, "dev": metrics["dev"]}, "metrics": metrics}


def one_line(error: BaseException) -> str:
    """An exception as the reason in a table."""
    text = " ".join("".join(traceback.format_exception_only(error)).split())
    return text if len(text) <= 300 else f"{text[:299]}…"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
