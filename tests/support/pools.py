"""Runs in a pool whose workers act."""

import os
import sys
import threading
import time
from functools import partial
from pathlib import Path

from zoo.execute import pool
from zoo.execute.pool import Job, run_all
from zoo.record.folder import Run

HERE = Path(__file__).parents[1]
RUNS = 4
COMMAND = (sys.executable, str(HERE / "support" / "workers.py"))


def jobs(out, *acts, **more):
    made = []
    for i, act in enumerate(acts):
        run = Run(out / f"{i}-{act}")
        run.begin({"spec": {"act": act, **more}, "seed": 0, "threads": 1})
        made.append(Job(act, run))
    return made


def go(made, workers=2, **given):
    return run_all(made, workers=workers, **{"start": partial(pool.start_locally, command=COMMAND), **given})


def once_running(made, *signals):
    """Send signals to this process as soon as all of these runs are under way."""

    def send():
        wait_for(lambda: all(job.run.metrics.exists() for job in made))
        for number in signals:
            os.kill(os.getpid(), number)
            time.sleep(0.5)

    threading.Thread(target=send).start()


def wait_for(fact, seconds=60):
    end = time.monotonic() + seconds
    while not fact():
        assert time.monotonic() < end
        time.sleep(0.02)


def steady(out, steps: int) -> list[Run]:
    """Runs of so many steps, whose states are saved after every step."""
    spec = {"train": {"steps": steps, "checkpoint_seconds": 0.0, "eval_every": 10}, "pause": 0.05}
    runs = [Run(Path(out) / f"run{seed}") for seed in range(RUNS)]
    for seed, run in enumerate(runs):
        run.begin({"spec": spec, "seed": seed, "threads": 1})
    return runs
