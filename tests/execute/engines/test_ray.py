"""Runs as tasks of Ray, on a cluster of two machines that are processes here."""

import os
import signal
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.pools import HERE, go, jobs, once_running, wait_for
from support.workers import noted

from zoo import SpecError
from zoo.cli import main
from zoo.execute.engines import ENGINES, Resources
from zoo.execute.engines.ray import count_fits, open_cluster
from zoo.execute.pool import choose_exit_code

ACTING = [str(HERE / "support" / "workers.py")]


def test_how_often_a_machine_has_what_is_asked_for():
    machine = {"CPU": 7.0, "GPU": 2.0, "memory": 1e9}
    assert [count_fits(machine, Resources(n, g)) for n, g in [(1, 0), (2, 0), (8, 0), (1, 1), (4, 1)]] == [
        7,
        3,
        0,
        2,
        1,
    ]
    assert count_fits({"memory": 1.0}, Resources(1)) == 0


def test_where_ray_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SpecError, match=r"needs the package 'ray': pip install 'transformer-zoo\[ray\]'"):
        ENGINES["ray"].open(Resources())


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Two machines of one core each."""
    pytest.importorskip("ray", reason="the package 'ray' is not installed")
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    both = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    both.add_node(num_cpus=1)
    os.environ["RAY_ADDRESS"] = both.address
    yield both
    del os.environ["RAY_ADDRESS"]
    both.shutdown()


@pytest.mark.exhaustive
def test_runs_on_two_machines(two, tmp_path):
    made = jobs(tmp_path, "done", "raise", "exit", "done", seconds=1.0)
    with open_cluster(Resources(1), command=ACTING) as (start, capacity):
        assert capacity == 2
        states = go(made, workers=capacity, start=start)
    assert [s.status for s in states] == ["done", "failed", "failed", "done"] and choose_exit_code(states) == 3
    assert [s.reason for s in states] == [
        None, "RuntimeError: no luck today", "exited with code 7: out of cheese", None,
    ]  # fmt: skip
    with (
        pytest.raises(SpecError, match="no machine of the cluster has the 2 cores and 0 GPUs"),
        open_cluster(Resources(2)),
    ):
        pass


@pytest.mark.exhaustive
@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
@pytest.mark.parametrize(("whose", "starts"), [("the run's own process", 2), ("the worker of the cluster", 1)])
def test_a_run_whose_worker_is_killed_is_taken_up_again(two, tmp_path, whose, starts):
    """Without its worker the run here goes on to its end, as it never asks; the next one waits for that."""
    (job,) = made = jobs(tmp_path, "done", seconds=4.0)
    once = []

    def kill():
        wait_for(job.run.metrics.exists)
        session = noted(job.run)["session"]  # of which the process is the leader
        parent = int(Path(f"/proc/{session}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill({"the run's own process": session}.get(whose, parent), signal.SIGKILL)
        once.append(session)

    thread = threading.Thread(target=kill)
    with open_cluster(Resources(1), command=ACTING) as (start, capacity):
        thread.start()
        (state,) = go(made, start=start)
        thread.join()
    assert once and state.status == "done", state.reason
    assert sum(line["kind"] == "start" for line in job.run.lines()) == starts
    assert (job.run.folder / "times").read_text() == "x"


@pytest.mark.exhaustive
def test_ctrl_c_reaches_the_cluster(two, tmp_path):
    made = jobs(tmp_path, "wait", "wait", "done")
    once_running(made[:2], signal.SIGINT)
    with open_cluster(Resources(1), command=ACTING) as (start, capacity):
        states = go(made, workers=capacity, start=start)
    assert [s.status for s in states] == ["interrupted", "interrupted", "not run"]
    assert [noted(job.run).get("signals") for job in made] == [1, 1, None] and choose_exit_code(states) == 130


@pytest.mark.exhaustive
def test_the_command_runs_on_ray(two, tmp_path):
    file = tmp_path / "a.yaml"
    file.write_text("""
comparisons:
  c:
    models: [{position: rope}, {position: alibi}]
    shape: {d_model: 16, n_heads: 2, n_layers: 1, max_len: 16}
    task: {name: copy, symbols: 4, min_length: 2, max_length: 3}
    train: {steps: 20, batch_size: 4}
""")
    result = CliRunner().invoke(main, ["run", str(file), "--on", "ray", "--out", str(tmp_path / "runs")])
    assert result.exit_code == 0, result.output
    assert result.output.count("done") == 2 and (tmp_path / "runs" / "c" / "report.md").exists()
