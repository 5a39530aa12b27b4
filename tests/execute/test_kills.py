"""kill -9 at any moment: what is finished stays, what is not goes on from its last state."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.commands import children
from support.pools import RUNS, steady

from zoo.model.weights import read_state
from zoo.record.folder import Run

HERE = Path(__file__).parents[1]
POOL = f"""
import sys
sys.path.insert(0, {str(HERE)!r})
from support.pools import Job, go, steady
go([Job(run.id, run) for run in steady(sys.argv[1], int(sys.argv[2]))])
"""


def pool(out: Path, steps: int) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", POOL, str(out), str(steps)])


def table(runs: list[Run]) -> list:
    """All that a report takes from the runs, and the weights."""
    facts = ("status", "metrics", "best")
    return [([getattr(run.read(), key) for key in facts], points(run), run.weights.read_bytes()) for run in runs]


def points(run: Run) -> list[dict]:
    return [{**line, "tokens_per_second": None} for line in run.lines() if line["kind"] != "start"]


def saved(run: Run) -> int:
    """The step from which the run would go on."""
    try:
        _, facts = read_state(run.resume)
    except FileNotFoundError:
        return 1_000_000 if run.finished else 0
    return facts["count"]["step"]


def seen(run: Run) -> int:
    return max((line["step"] for line in run.lines()), default=0)


@pytest.mark.skipif(sys.platform != "linux", reason="finds the workers in /proc")
@pytest.mark.parametrize(("kills", "n"), [(8, 50), pytest.param(100, 250, marks=pytest.mark.exhaustive)])
def test_kills_at_random_moments_lose_no_more_than_a_step(tmp_path, kills, n, monkeypatch):
    """Of four runs of n steps each."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    whole, runs = steady(tmp_path / "whole", n), steady(tmp_path / "killed", n)
    assert pool(tmp_path / "whole", n).wait() == 0
    dice, parent = random.Random(kills), None
    states, finished = [0] * RUNS, {}
    while not all(run.finished for run in runs):
        if parent is None or parent.poll() is not None:
            parent = pool(tmp_path / "killed", n)
        some_moment(parent, runs, dice)
        if kills and parent.poll() is None:
            kills -= 1
            os.kill(dice.choice([parent.pid, *children(parent.pid)]), signal.SIGKILL)
        for i, run in enumerate(runs):
            far = seen(run)  # before the state is read, which may move on meanwhile
            now = saved(run)
            assert far - now <= 1 and now >= states[i], "more is lost than the step that was being done"
            states[i] = now
            if run.finished:
                touched = run.record.stat().st_mtime_ns
                assert finished.setdefault(run.id, touched) == touched
    parent.wait()
    assert not kills, "all was done before so many kills"
    assert table(runs) == table(whole)


def some_moment(parent: subprocess.Popen, runs: list[Run], dice: random.Random) -> None:
    """Mostly soon after a run has done a step; at times before any could."""
    before, least = [seen(run) for run in runs], dice.random() < 0.2
    while not least and [seen(run) for run in runs] == before and parent.poll() is None:
        time.sleep(0.02)
    time.sleep(dice.random() ** 2 * 0.5)
