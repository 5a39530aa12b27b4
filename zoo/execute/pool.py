"""Runs side by side, each in a process of its own: one that fails is a row with its reason and harms no other."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Protocol

from zoo.files import parse_line
from zoo.record.folder import Run

COMMAND = (sys.executable, "-m", "zoo.execute.worker")
POLL = 0.1
"""Seconds between two looks at the processes."""
STOPPED = 130
"""The exit code of what was stopped, as shells give it to what ended by SIGINT."""


class Process(Protocol):
    """What the pool needs of a run's process, here or elsewhere; `subprocess.Popen` has it."""

    returncode: int | None

    def poll(self) -> int | None: ...
    def wait(self) -> int: ...
    def send_signal(self, number: int) -> None: ...


Start = Callable[[Run], Process]


@dataclass(frozen=True)
class Job:
    """A run that `Run.begin` has prepared, and how it is called on the screen."""

    name: str
    run: Run


@dataclass
class State:
    """A job and how far it is. `status` is as in the record, "not run" while it waits.

    `loss` is the last one on the training text, in nats; `seconds` run since this process took the job up.
    """

    job: Job
    status: str = "not run"
    reason: str | None = None
    steps: int | None = None
    start: int = 0
    step: int = 0
    loss: float | None = None
    tokens_per_second: float | None = None
    seconds: float = 0.0
    process: Process | None = field(default=None, repr=False)
    began: float = field(default=0.0, repr=False)
    file: int = field(default=0, repr=False)
    read: int = field(default=0, repr=False)

    @property
    def eta(self) -> float | None:
        """Seconds to go, by the steps done since this process began."""
        if not self.steps or self.step <= self.start:
            return None
        return self.seconds / (self.step - self.start) * (self.steps - self.step)

    def launch(self, start: Start) -> bool:
        """Start the process; False, and the run has failed, if the system has none to give."""
        run = self.job.run
        self.file, self.read = identify(run.metrics)
        try:
            self.process = start(run)
        except OSError as error:
            self.status, self.reason = "failed", f"could not be started: {error}"
            run.update(status=self.status, reason=self.reason)
            return False
        self.status, self.began = "running", monotonic()
        return True

    def follow(self) -> None:
        """Read what the run has added to its curve."""
        self.seconds = monotonic() - self.began
        path = self.job.run.metrics
        file, size = identify(path)
        if file != self.file:  # the run has cut what it will write again
            self.file, self.read = file, 0
        if size > self.read:
            with path.open("rb") as curve:
                curve.seek(self.read)
                whole, end, _ = curve.read().rpartition(b"\n")
            self.read += len(whole + end)
            for line in filter(None, map(parse_line, whole.decode("utf-8", "replace").split("\n"))):
                self.advance(line)

    def advance(self, line: dict[str, Any]) -> None:
        """Take over what one line of the curve says."""
        self.step = line.get("step", self.step)
        if line.get("kind") == "start":
            self.steps, self.start = line.get("steps"), self.step
        elif line.get("kind") == "train":
            self.loss, self.tokens_per_second = line.get("loss"), line.get("tokens_per_second")

    def end(self, code: int, stopped: bool) -> None:
        """Take over what the run says of itself; if it died without a word, say so in its place."""
        self.follow()
        run = self.job.run
        with run.lock() as mine:
            record = run.read()
            self.status, self.reason = record.status, record.reason
            if self.status not in ("not run", "running"):
                return
            if not mine:
                self.status, self.reason = "interrupted", "another process is training it"
                return
            self.status, self.reason = ("interrupted", "stopped") if stopped else ("failed", explain_death(code, run))
            run.update(status=self.status, reason=self.reason)


def identify(path: Path) -> tuple[int, int]:
    """The inode of a file, which changes when it is replaced, and its size; zeros if there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return 0, 0
    return found.st_ino, found.st_size


def explain_death(code: int, run: Run) -> str:
    """Why a process ended that left no reason."""
    if code < 0:
        hint = ", perhaps for lack of memory" if code == -signal.SIGKILL else ""
        return f"killed by {signal.Signals(-code).name}{hint}"
    lines = run.output.read_text("utf-8", errors="replace").strip().splitlines()
    return f"exited with code {code}" + (f": {lines[-1][:200]}" if lines else "")


def start_locally(run: Run, command: Sequence[str] = COMMAND) -> subprocess.Popen:
    """A process here. Its session is its own: Ctrl-C in the terminal reaches the pool alone, which passes it on."""
    with run.output.open("wb") as output:
        return subprocess.Popen(
            [*command, str(run.folder)], stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )


def run_all(
    jobs: Sequence[Job],
    *,
    workers: int,
    progress: Callable[[Sequence[State]], None] = lambda states: None,
    start: Start = start_locally,
) -> list[State]:
    """Run what is not finished, `workers` at once, in the given order; return every job's end.

    `start` starts a run somewhere, as a process of its own. `progress` is called about ten times a second. After
    Ctrl-C or SIGTERM no job starts, those that run save and end as "interrupted"; after a second one they are killed.
    """
    states = [State(job) for job in jobs]
    waiting: deque[State] = deque()
    for state in states:
        if state.job.run.finished:
            record = state.job.run.read()
            state.status, state.reason = record.status, record.reason
        else:
            waiting.append(state)
    running: list[State] = []
    with catch_stop_requests() as requests:
        try:
            while running or (waiting and not requests):
                while waiting and len(running) < workers and not requests:
                    state = waiting.popleft()
                    running += [state] if state.launch(start) else []
                progress(states)
                sleep(POLL)
                running = poll_runs(running, requests)
            progress(states)
        finally:
            for process in processes_of(running):  # only if something went wrong here
                process.send_signal(signal.SIGINT)
                process.wait()
    return states


def processes_of(states: Sequence[State]) -> list[Process]:
    return [state.process for state in states if state.process]


def poll_runs(running: list[State], requests: list[int]) -> list[State]:
    """Pass requests to stop on, note what has happened, and return the jobs that still run."""
    for i, request in enumerate(requests):
        if request:
            requests[i] = 0
            for process in processes_of(running):
                process.send_signal(signal.SIGINT if i == 0 else signal.SIGKILL)
    alive = []
    for state, process in zip(running, processes_of(running), strict=True):
        if (code := process.poll()) is None:
            state.follow()
            alive.append(state)
        else:
            state.end(code, stopped=bool(requests))
    return alive


@contextmanager
def catch_stop_requests() -> Iterator[list[int]]:
    """A list that gets the number of every SIGINT and SIGTERM; the handlers before come back at the end."""
    requests: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield requests  # only the main thread may set handlers
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda number, frame: requests.append(number)) for number in numbers]
    try:
        yield requests
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def choose_exit_code(states: Sequence[State]) -> int:
    """`STOPPED` if runs were, 3 if one failed or there was none, else 0."""
    found = {state.status for state in states}
    if found & {"interrupted", "not run"}:
        return STOPPED
    return 3 if "failed" in found or not states else 0
