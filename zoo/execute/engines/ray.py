"""Runs on a cluster of machines, by Ray: each is a task that asks for its cores, and one whose worker dies is retried.

All machines need the package, and see the same files under the same paths.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from typing import Any

from zoo.execute.pool import COMMAND, POLL, Start
from zoo.faults import SpecError
from zoo.runs import Run

RETRIES = 3
"""Times that a run is taken up again whose worker died; it goes on from its last state."""


REQUEST = ".stop"
"""The file by which a run is asked to save and end, in its folder."""


class Killed(Exception):
    """A run's process was ended by a signal that nobody here has sent."""


def work(command: Sequence[str], folder: str, here: str) -> int:
    """What a worker of the cluster does: the run in a process of its own. Returns the exit code, or raises `Killed`."""
    request = Path(folder) / REQUEST
    with Run(Path(folder)).output.open("wb") as output:
        process = subprocess.Popen(
            [*command, folder], stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=here, start_new_session=True
        )
    stopped = False
    while process.poll() is None:
        sleep(POLL)
        if request.exists():
            request.unlink()
            stopped = True
            process.send_signal(signal.SIGINT)
    if process.returncode < 0 and not stopped:
        raise Killed(process.returncode)
    return process.returncode


class Remote:
    """A task as the pool sees a process."""

    def __init__(self, ray: Any, task: Any, run: Run):
        self.ray, self.task, self.run = ray, task, run
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None and self.ray.wait([self.task], timeout=0)[0]:
            self.returncode = self.result()
        return self.returncode

    def wait(self) -> int:
        self.ray.wait([self.task])
        return self.poll()

    def result(self) -> int:
        try:
            return self.ray.get(self.task)
        except Killed as error:
            return error.cause.args[0]
        except self.ray.exceptions.TaskCancelledError:
            return -signal.SIGINT
        except self.ray.exceptions.RayError as error:
            self.run.output.write_text(str(error), "utf-8")
            return 1

    def send_signal(self, number: int) -> None:
        """Ask it to save and end, or make it. Ray itself can ask a task too, but takes it for ended at once."""
        if number == signal.SIGKILL:
            self.ray.cancel(self.task, force=True)
        else:
            (self.run.folder / REQUEST).touch()


@contextmanager
def cluster(needs: int, gpus: int = 0, command: Sequence[str] = COMMAND[1:]) -> Iterator[tuple[Start, int]]:
    """What starts a run on the cluster, and how many of `needs` cores and `gpus` GPUs go side by side.

    The cluster is the one that RAY_ADDRESS names or this machine is part of, else one of this machine alone. Raises
    `SpecError` where Ray is not installed, and if no machine has so many cores.
    """
    try:
        import ray
    except ImportError:
        raise SpecError("'--on ray' needs Ray: pip install 'transformer-zoo[ray]'") from None
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        ray.init(log_to_driver=False, logging_level="error")
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise SpecError(f"the Ray cluster cannot be reached: {str(error).splitlines()[0]}") from error
    try:
        asked = {"CPU": needs, "GPU": gpus}
        slots = sum(fits(node["Resources"], asked) for node in ray.nodes() if node["Alive"])
        if not slots:
            raise SpecError(f"no machine of the cluster has the {needs} cores and {gpus} GPUs that a run asks for")
        options = {"num_cpus": needs, "num_gpus": gpus, "max_retries": RETRIES, "retry_exceptions": [Killed]}
        remote = ray.remote(**options)(work)

        def start(run: Run) -> Remote:
            full = [sys.executable, *command]
            (run.folder / REQUEST).unlink(missing_ok=True)
            return Remote(ray, remote.remote(full, str(run.folder.absolute()), str(Path.cwd())), run)

        yield start, slots
    finally:
        ray.shutdown()


def fits(resources: dict[str, float], asked: dict[str, int]) -> int:
    """How many times a machine has what is asked for."""
    return min(int(resources.get(name, 0) // count) for name, count in asked.items() if count)
