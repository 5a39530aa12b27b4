"""How long training steps take: those of all rows by turns, in as many processes as runs will go side by side.

`python -m zoo.execute.step_timer` is one of these: it reads which rows, then a line for every round, and answers each
by a line.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryFile
from time import monotonic, perf_counter
from typing import Any, TextIO

from zoo.faults import SpecError
from zoo.record import RunRecord, parse, plain
from zoo.record.folder import Run

from .process import set_up_process

COMMAND = (sys.executable, "-m", "zoo.execute.step_timer")
LEAST, MOST, PATIENCE = 5, 25, 60.0
"""Rounds at least and at most, and the seconds from which on none begins beyond the least."""

STEPS = 4
"""Steps of one row before the next row has its turn."""
WARM = 4
"""Steps before the first that counts: they compile, and fill caches and the optimizer's state."""
STILL = 1e-12
"""The learning rate at which steps are timed: as much work as any, and weights stay as they were drawn."""
LONG = 10**6
"""The budget of the timed steps; who asks for them decides how many there are."""

Step = Callable[[], float]
"""Does a training step, and returns its seconds."""


def timed(records: Sequence[RunRecord], workers: int) -> list[float]:
    """Seconds of a training step of the run that each record describes, while as many are at it as there are workers.

    A worker is one process with a model of every row. Where a row is compiled it is one process for each: what is
    compiled would otherwise be shared by rows, and other than in runs. Raises `SpecError`.
    """
    apart = any(record.spec["train"]["compile"] for record in records)
    groups = [[record] for record in records] if apart else [records]
    with ExitStack() as stack:
        crews = [
            [stack.enter_context(start_timer({"records": plain(group), "first": first})) for group in groups]
            for first in range(workers)
        ]
        for each in (each for crew in crews for each in crew):
            each.hear()
        return medians(lambda: together(crews))


def together(crews: Sequence[Sequence[TimerProcess]]) -> list[list[float]]:
    """One round: for every worker the seconds of each row. All work at once, each beginning with another process."""
    found: list[dict[int, list[float]]] = [{} for _ in crews]
    for turn in range(len(crews[0])):
        asked = [(i, (turn + i) % len(crew)) for i, crew in enumerate(crews)]
        for i, at in asked:
            crews[i][at].say("go")
        for i, at in asked:
            found[i][at] = crews[i][at].hear()
    return [[taken for at in sorted(each) for taken in each[at]] for each in found]


def medians(together: Callable[[], list[list[float]]], clock: Callable[[], float] = monotonic) -> list[float]:
    """The median of every row over rounds, each of which gives it for every process. What disturbs a few rounds is
    left out, and what lasts meets all rows.
    """
    began, found, rounds = clock(), [], 0
    while rounds < LEAST or (rounds < MOST and clock() - began < PATIENCE):
        found += together()
        rounds += 1
    return [median(each) for each in zip(*found, strict=True)]


@dataclass(frozen=True)
class TimerProcess:
    """A process that times a round of steps when it gets a line."""

    process: subprocess.Popen
    errors: TextIO

    def say(self, value: Any) -> None:
        with suppress(BrokenPipeError):  # `hear` says why
            print(json.dumps(value), file=self.process.stdin, flush=True)

    def hear(self) -> Any:
        assert self.process.stdout, "it was started with a pipe"
        if line := self.process.stdout.readline():
            return json.loads(line)
        code = self.process.wait()
        self.errors.seek(0)
        lines = self.errors.read().strip().splitlines() or [f"exit code {code}"]
        why = f"killed by {signal.Signals(-code).name}, perhaps for lack of memory" if code < 0 else lines[-1]
        raise SpecError(f"the steps of these rows cannot be timed, the models of all of them together: {why}")


@contextmanager
def start_timer(request: Mapping[str, Any]) -> Iterator[TimerProcess]:
    """A process that has got the request."""
    with TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, encoding="utf-8"
        )
        timer = TimerProcess(process, errors)
        timer.say(request)
        try:
            yield timer
        finally:
            process.kill()
            with suppress(BrokenPipeError):
                process.communicate()


def stepper(made: Any, seed: int = 0) -> Step:
    """A function that does one training step, writes nothing and returns its seconds of wall clock."""
    import torch

    from zoo.train.loop import SINGLE_PROCESS, Diverged, Training

    settings = replace(made.settings.of_steps(LONG), lr=STILL, warmup=0)
    nowhere = Run(Path(os.devnull))  # a step by itself writes nothing
    training = Training(made.model, made.task, settings, seed, nowhere, lambda line: None, SINGLE_PROCESS)

    def step() -> float:
        began = perf_counter()
        with suppress(Diverged):  # the run itself will say so
            training.update()
        if training.device.type != "cpu":
            torch.accelerator.synchronize(training.device)  # it works on its own
        return perf_counter() - began

    return step


def by_turns(steps: Sequence[Step], first: int = 0) -> list[float]:
    """The mean seconds of a step of each row, over `STEPS` of one row after the other, beginning with `first`."""
    found = {i: sum(steps[i]() for _ in range(STEPS)) / STEPS for i in turns(len(steps), first)}
    return [found[i] for i in range(len(steps))]


def turns(count: int, first: int) -> list[int]:
    return [(first + i) % count for i in range(count)]


def warm_up(step: Step, threads: int) -> Step:
    """The step after those that warm it up, with as many threads as its run has, whoever had his turn before."""
    import torch

    def own() -> float:
        torch.set_num_threads(threads)
        return step()

    for _ in range(WARM):
        own()
    return own


def main(lines, say: Callable[[Any], None]) -> None:
    """Serve one process: `{"records": one run of each row, "first": the row that begins}`."""
    request: Mapping[str, Any] = json.loads(next(lines))
    records = [parse(each, RunRecord) for each in request["records"]]
    threads = [record.spec["train"]["threads"] for record in records]
    set_up_process(max(threads))
    from zoo.compare.prepared import Prepared
    from zoo.compare.run_spec import TrainedRun
    from zoo.train.loop import bind_settings

    from .materialise import Materialised, reopen

    prepared = None
    steps = []
    for record, count in zip(records, threads, strict=True):
        run, library = reopen(record)
        assert isinstance(run, TrainedRun), "a reference has no steps"
        prepared = prepared or Prepared(library)
        task = prepared.task(run)
        made = Materialised(task, run.make_model(task, library.registry), bind_settings(run.train))
        steps.append(warm_up(stepper(made), count))
    say("ready")
    for _ in lines:
        say(by_turns(steps, request["first"]))


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what parts print is no answer
    main(sys.stdin, lambda answer: print(json.dumps(answer), file=answers, flush=True))
