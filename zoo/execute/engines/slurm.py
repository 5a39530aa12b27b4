"""Runs as jobs of Slurm, by submitit: each asks for its cores, and one that dies is submitted again.

All machines see the same files under the same paths, this Python and its packages among them.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from zoo.execute.pool import COMMAND, Start
from zoo.faults import SpecError
from zoo.record.folder import Run

from . import Resources
from .remote import REQUEST, RETRIES, Killed, run_process

QUEUED = 100
"""Jobs that Slurm is given at once; it decides how many of them run."""
HOURS = 24
"""What a job may take, unless SBATCH_TIMELIMIT says otherwise. A longer run goes on in the next job."""
POLL = 1.0
"""Seconds between two looks at a job, which are looks at a file."""
FOLDER = "slurm"
"""Where the script, the log and the answer of a run's jobs lie, in its own folder."""


def run_job(command: Sequence[str], folder: str, here: str) -> int:
    """What a job does; returns the exit code of the run's process, negative for a signal."""
    try:
        return run_process(command, folder, here)
    except Killed as killed:
        return killed.code


class SlurmProcess:
    """A job as the pool sees a process. One that ends without an answer, or by a signal, is submitted again."""

    def __init__(self, submit: Callable[[], Any], run: Run):
        self.submit, self.run = submit, run
        self.returncode: int | None = None
        self.retries, self.stopped, self.due = RETRIES, False, 0.0
        self.job = submit()

    def poll(self) -> int | None:
        if self.returncode is None and monotonic() >= self.due:
            self.due = monotonic() + POLL
            if self.job.done():
                self.end()
        return self.returncode

    def wait(self) -> int:
        while (code := self.poll()) is None:
            sleep(POLL)
        return code

    def end(self) -> None:
        """Take the job's answer, or submit it once more. Raises nothing: a run that cannot be submitted has failed."""
        error = self.job.exception()
        code = self.job.result() if error is None else 1
        if self.stopped:
            self.returncode = code if error is None else -signal.SIGINT
            return
        if self.retries and (error or code < 0):
            self.retries -= 1
            try:
                self.job = self.submit()
                return
            except OSError as refused:
                error, code = refused, 1
        self.returncode = code
        if error:
            self.run.output.write_text(str(error), "utf-8")

    def send_signal(self, number: int) -> None:
        """Ask it to save and end, or make it; one that still waits in the queue is taken from there."""
        self.stopped = True
        (self.run.folder / REQUEST).touch()
        if number == signal.SIGKILL or self.run.read().status == "not run":
            self.job.cancel(check=False)
            self.returncode = -number  # submitit would wait for an answer


@contextmanager
def open_slurm(
    resources: Resources, command: Sequence[str] = COMMAND[1:], where: str = "slurm"
) -> Iterator[tuple[Start, int]]:
    """What submits a run as a job, and how many jobs there may be at once.

    Partition, account and the like are what Slurm's own variables say, such as SBATCH_PARTITION. `where` is an executor
    of submitit. Raises `SpecError` where there is no Slurm.
    """
    import submitit
    from submitit.core.plugins import get_executors

    if get_executors()[where].affinity() < 0:
        raise SpecError("'--on slurm' needs a machine from which Slurm takes jobs, and this one has no srun")
    cores = resources.cores
    options = {"timeout_min": 60 * HOURS, "cpus_per_task": cores, "slurm_srun_args": [f"--cpus-per-task={cores}"]}
    options |= {"gpus_per_node": resources.gpus} if resources.gpus else {}

    def start(run: Run) -> SlurmProcess:
        folder = str(run.folder.absolute())
        (run.folder / REQUEST).unlink(missing_ok=True)
        executor = submitit.AutoExecutor(run.folder.absolute() / FOLDER, cluster=where)
        executor.update_parameters(name=f"zoo-{run.id}", **options)

        def submit() -> Any:
            try:
                return executor.submit(run_job, [sys.executable, *command], folder, str(Path.cwd()))
            except (submitit.core.utils.FailedJobError, submitit.core.utils.FailedSubmissionError) as error:
                raise OSError(str(error)) from error

        return SlurmProcess(submit, run)

    yield start, QUEUED
