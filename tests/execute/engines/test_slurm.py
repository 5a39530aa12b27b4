"""Runs as jobs of submitit, whose executor on this machine stands for Slurm."""

import os
import signal
import sys
import threading
from functools import partial

import pytest
from click.testing import CliRunner
from support.pools import HERE, go, jobs, once_running, wait_for
from support.workers import noted

from zoo import SpecError
from zoo.cli import main
from zoo.execute.engines import ENGINES, Resources, slurm
from zoo.execute.pool import choose_exit_code

ACTING = [str(HERE / "support" / "workers.py")]


@pytest.fixture
def here(monkeypatch):
    """Jobs on this machine, of which one that is gone without an answer is soon believed to be."""
    submitit = pytest.importorskip("submitit", reason="the package 'submitit' is not installed")
    monkeypatch.setattr(submitit.core.core.Job, "_results_timeout_s", 0)
    monkeypatch.setattr(slurm, "POLL", 0.2)
    return partial(slurm.open_slurm, where="local")


def test_where_submitit_or_slurm_is_not_installed(monkeypatch):
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "submitit", None)
        with pytest.raises(SpecError, match=r"needs the package 'submitit': pip install 'transformer-zoo\[slurm\]'"):
            ENGINES["slurm"].open(Resources())
    pytest.importorskip("submitit", reason="the package 'submitit' is not installed")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SpecError, match="this one has no srun"), slurm.open_slurm(Resources(1)):
        pass


@pytest.fixture
def commands(tmp_path, monkeypatch):
    """Slurm's commands, which note what they are asked: every job waits in the queue."""
    pytest.importorskip("submitit", reason="the package 'submitit' is not installed")
    folder = tmp_path / "bin"
    folder.mkdir()
    said = {
        "sbatch": f"cp $1 {tmp_path}/script; echo Submitted batch job 17",
        "sacct": "echo 'JobID|State|NodeList'; echo '17|PENDING|'",
        "scancel": f"echo $* > {tmp_path}/cancelled",
        "srun": "",
    }
    for name, text in said.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


def test_what_slurm_is_asked_for(commands, tmp_path):
    (made,) = jobs(tmp_path, "done")
    with slurm.open_slurm(Resources(3, 2)) as (start, capacity):
        handed = start(made.run)
    script = (tmp_path / "script").read_text()
    for asked in ("cpus-per-task=3", "gpus-per-node=2", "time=1440", f"job-name=zoo-{made.run.id}"):
        assert f"#SBATCH --{asked}\n" in script, script
    assert "srun" in script and script.count("--cpus-per-task=3") == 2 and sys.executable in script
    assert handed.poll() is None
    handed.send_signal(signal.SIGINT)
    assert (tmp_path / "cancelled").read_text() == "17\n", "what waits is taken from the queue"
    assert handed.poll() == handed.wait() == -signal.SIGINT


def test_a_job_that_slurm_does_not_take(commands, tmp_path):
    (commands / "sbatch").write_text("#!/bin/sh\necho 'sbatch: error: invalid partition' >&2; exit 1\n")
    with slurm.open_slurm(Resources(1)) as (start, capacity):
        (state,) = go(jobs(tmp_path, "done"), start=start)
    assert state.status == "failed" and state.reason.startswith("could not be started: ")
    assert "invalid partition" in state.reason


@pytest.mark.exhaustive
def test_runs_as_jobs(here, tmp_path):
    made = jobs(tmp_path, "done", "raise", "exit", "done", seconds=1.0)
    with here(Resources(), command=ACTING) as (start, capacity):
        assert capacity == slurm.QUEUED
        states = go(made, workers=2, start=start)
    assert [s.status for s in states] == ["done", "failed", "failed", "done"] and choose_exit_code(states) == 3
    assert [s.reason for s in states] == [
        None, "RuntimeError: no luck today", "exited with code 7: out of cheese", None,
    ]  # fmt: skip


@pytest.mark.exhaustive
@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
@pytest.mark.parametrize("whose", ["the run's own process", "the job"])
def test_a_run_whose_job_is_killed_is_taken_up_again(here, tmp_path, whose):
    (job,) = made = jobs(tmp_path, "done", seconds=4.0)
    once = []

    def kill():
        wait_for(job.run.metrics.exists)
        session = noted(job.run)["session"]  # of which the process is the leader
        with open(f"/proc/{session}/stat") as stat:
            parent = int(stat.read().rpartition(")")[2].split()[1])
        os.kill(session if whose == "the run's own process" else parent, signal.SIGKILL)
        once.append(session)

    thread = threading.Thread(target=kill)
    with here(Resources(), command=ACTING) as (start, capacity):
        thread.start()
        (state,) = go(made, start=start)
        thread.join()
    assert once and state.status == "done", state.reason
    assert len(list((job.run.folder / slurm.FOLDER).glob("*_submitted.pkl"))) == 2
    assert (job.run.folder / "times").read_text() == "x"


@pytest.mark.exhaustive
def test_a_run_that_dies_every_time_fails(here, tmp_path):
    made = jobs(tmp_path, "die")
    with here(Resources(), command=ACTING) as (start, capacity):
        (state,) = go(made, start=start)
    assert (state.status, state.reason) == ("failed", "killed by SIGKILL, perhaps for lack of memory")
    assert sum(line["kind"] == "start" for line in made[0].run.lines()) in (0, slurm.RETRIES + 1)


@pytest.mark.exhaustive
def test_ctrl_c_reaches_the_jobs(here, tmp_path):
    made = jobs(tmp_path, "wait", "wait", "done")
    once_running(made[:2], signal.SIGINT)
    with here(Resources(), command=ACTING) as (start, capacity):
        states = go(made, workers=2, start=start)
    assert [s.status for s in states] == ["interrupted", "interrupted", "not run"]
    assert [noted(job.run).get("signals") for job in made] == [1, 1, None] and choose_exit_code(states) == 130


@pytest.mark.exhaustive
def test_the_command_hands_runs_in(here, tmp_path, monkeypatch):
    monkeypatch.setattr(slurm, "open_slurm", here)
    file = tmp_path / "a.yaml"
    file.write_text("""
comparisons:
  c:
    models: [{position: rope}, {position: alibi}]
    shape: {d_model: 16, n_heads: 2, n_layers: 1, max_len: 16}
    task: {name: copy, symbols: 4, min_length: 2, max_length: 3}
    train: {steps: 20, batch_size: 4}
""")
    result = CliRunner().invoke(
        main, ["run", str(file), "--on", "slurm", "--workers", "2", "--out", str(tmp_path / "runs")]
    )
    assert result.exit_code == 0, result.output
    assert result.output.count("done") == 2 and (tmp_path / "runs" / "c" / "report.md").exists()
