"""One run in several processes, started and watched by torch's own launcher (what `torchrun` is the command of)."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

from zoo.record import RunRecord
from zoo.record.folder import Run

from .perform import perform_run
from .process import StopRequest, set_up_process, summarise_error

PATIENCE = 600
"""Seconds that processes get to save when they are asked to end."""


class Watched(Run):
    """The folder of a run as the processes see it that do not write it."""

    tokenizer = Path(os.devnull)

    def update(self, **parts: Any) -> RunRecord:
        return self.read()

    def log(self, line: Any) -> None:
        pass

    def trim(self, step: int) -> None:
        pass


def launch_processes(run: Run, processes: int) -> None:
    """Start so many processes on a run and wait for them.

    The first process records the result, under the lock that this one holds; if one fails, all end.
    """
    set_up_process(run.update(status="running", reason=None).threads)
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    with tempfile.TemporaryDirectory() as logs:
        config = LaunchConfig(
            min_nodes=1, max_nodes=1, nproc_per_node=processes, rdzv_backend="c10d", rdzv_endpoint="localhost:0",
            run_id=run.id, max_restarts=0, logs_specs=DefaultLogsSpecs(log_dir=logs), shutdown_timeout=PATIENCE,
        )  # fmt: skip
        try:
            elastic_launch(config, run_rank)(str(run.folder))
        except ChildFailedError as error:
            run.update(status="failed", reason=explain_failure(run, error.failures))
        except SignalException:
            if run.read().status == "running":
                run.update(status="interrupted", reason="stopped")


def explain_failure(run: Run, failures: dict[int, Any]) -> str:
    """Why the processes ended: one that was killed could not say so, and of the others the first to fail has."""
    for number, failure in failures.items():
        if failure.exitcode < 0 and failure.exitcode != -signal.SIGTERM:
            hint = ", perhaps for lack of memory" if failure.exitcode == -signal.SIGKILL else ""
            return f"killed by {signal.Signals(-failure.exitcode).name}{hint}: process {number} of {len(failures)}"
    lines = run.error.read_text("utf-8").strip().splitlines() if run.error.exists() else []
    return lines[-1] if lines else f"process {min(failures)} exited with code {failures[min(failures)].exitcode}"


def run_rank(folder: str) -> None:
    """Be one of the processes: what the launcher says to it stands in the environment."""
    stop, run = StopRequest(), Run(Path(folder))
    number = int(os.environ["RANK"])
    own = run if number == 0 else Watched(run.folder)

    def is_stopping() -> bool:
        if os.getppid() != stop.parent:
            os._exit(1)  # who held the lock of the folder is gone: write nothing more
        return stop.received

    try:
        import torch.distributed as dist

        from zoo.train.loop import choose_device
        from zoo.train.parallel import STRATEGIES

        train = run.read().spec["train"]
        kind = choose_device(train["device"]).type
        dist.init_process_group("nccl" if kind == "cuda" else "gloo")
        perform_run(own, is_stopping, strategy=STRATEGIES[train["parallel"]]())
        dist.destroy_process_group()
    except BaseException as error:
        record_failure(run, number, error)
        sys.exit(1)
    if stop.received:
        os._exit(0)  # a launcher that is ending takes no results, and whoever has one would wait for it


def record_failure(run: Run, number: int, error: BaseException) -> None:
    """Leave the traceback and the reason, unless another process has failed before: its end is why others fail."""
    try:
        with run.error.open("x", encoding="utf-8") as file:
            file.write(f"{traceback.format_exc()}\nprocess {number}: {summarise_error(error)}\n")
    except FileExistsError:
        traceback.print_exc()
