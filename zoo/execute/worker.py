"""One run in a process of its own: `python -m zoo.execute.worker FOLDER`, which reads what to do in its run.json."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

from zoo.record.folder import Run

from .launcher import launch_processes
from .perform import Materialise, perform_run
from .process import StopRequest, summarise_error


def main(folder: str, materialise: Materialise | None = None) -> int:
    """Take a run to its end, or to where it is stopped, and return the exit code.

    If another process has the run, wait for its result.
    """
    run, stop = Run(Path(folder)), StopRequest()
    with run.lock(wait=lambda: not stop()) as mine:
        if not mine or run.finished:
            return 0
        try:
            run.error.unlink(missing_ok=True)
            run.tidy()
            processes = run.read().processes
            if processes == 1:
                perform_run(run, stop, materialise)
            else:
                launch_processes(run, processes)
            run.tidy()
        except BaseException as error:
            run.error.write_text(traceback.format_exc(), "utf-8")
            run.update(status="failed", reason=summarise_error(error))
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
