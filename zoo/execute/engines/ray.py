"""Runs on a cluster of machines, by Ray: each is a task that asks for its cores, and one whose worker dies is retried.

All machines need the package, and see the same files under the same paths.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from zoo.execute.pool import COMMAND, Start
from zoo.faults import SpecError
from zoo.record.folder import Run

from . import Resources
from .remote import REQUEST, RETRIES, Killed, run_process


class RayProcess:
    """A task as the pool sees a process."""

    def __init__(self, ray: Any, task: Any, run: Run):
        self.ray, self.task, self.run = ray, task, run
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.ray.wait([self.task], timeout=0)[0]:
            self.wait()
        return self.returncode

    def wait(self) -> int:
        if self.returncode is None:
            self.ray.wait([self.task])
            self.returncode = self.fetch_code()
        return self.returncode

    def fetch_code(self) -> int:
        """The exit code of a task that has ended."""
        try:
            return self.ray.get(self.task)
        except Killed as error:  # as Ray wraps it, the cause is what was raised there
            return error.cause.code if isinstance(error, self.ray.exceptions.RayTaskError) else error.code
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
def open_cluster(resources: Resources, command: Sequence[str] = COMMAND[1:]) -> Iterator[tuple[Start, int]]:
    """What starts a run on the cluster, and how many go side by side.

    The cluster is the one that RAY_ADDRESS names or this machine is part of, else one of this machine alone. Raises
    `SpecError` if no machine has so many cores and GPUs.
    """
    import ray

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        ray.init(log_to_driver=False, logging_level="error")
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise SpecError(f"the Ray cluster cannot be reached: {str(error).splitlines()[0]}") from error
    try:
        capacity = sum(count_fits(node["Resources"], resources) for node in ray.nodes() if node["Alive"])
        if not capacity:
            size = f"{resources.cores} cores and {resources.gpus} GPUs"
            raise SpecError(f"no machine of the cluster has the {size} that a run asks for")
        options = {"max_retries": RETRIES, "retry_exceptions": [Killed]}
        remote = ray.remote(num_cpus=resources.cores, num_gpus=resources.gpus, **options)(run_process)

        def start(run: Run) -> RayProcess:
            full = [sys.executable, *command]
            (run.folder / REQUEST).unlink(missing_ok=True)
            return RayProcess(ray, remote.remote(full, str(run.folder.absolute()), str(Path.cwd())), run)

        yield start, capacity
    finally:
        ray.shutdown()


def count_fits(machine: dict[str, float], resources: Resources) -> int:
    """How many times a machine has what a run asks for."""
    wanted = {"CPU": resources.cores, "GPU": resources.gpus}
    return min(int(machine.get(name, 0) // count) for name, count in wanted.items() if count)
