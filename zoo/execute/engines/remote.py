"""What a machine of a cluster does with one run: a process of its own, which a file asks to stop."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from time import sleep

from zoo.execute.pool import POLL
from zoo.record.folder import Run

RETRIES = 3
"""Times that a run is taken up again whose process died; it goes on from its last state."""
REQUEST = ".stop"
"""The file by which a run is asked to save and end, in its folder."""


class Killed(Exception):
    """A run's process was ended by a signal that nobody here has sent; `code` is the exit code, below 0."""

    @property
    def code(self) -> int:
        return self.args[0]


def run_process(command: Sequence[str], folder: str, here: str) -> int:
    """Do the run in a process of its own. Returns the exit code, or raises `Killed`."""
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
