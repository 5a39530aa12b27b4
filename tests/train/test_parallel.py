"""One run in two processes over gloo is, to rounding, the run of one."""

import os
import signal
import socket

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from support.commands import TINY, children, command, ids, record, start, until
from support.tasks import Counting, settings, tiny

import zoo
from zoo.execute.launcher import Watched
from zoo.model.weights import read_model
from zoo.record.folder import Run
from zoo.tasks import Batch
from zoo.train.loop import train
from zoo.train.parallel import STRATEGIES, SingleProcess

GIVEN = {"batch_size": 8, "accumulate": 2, "steps": 12, "eval_every": 4, "clip": 0.5}


def process(rank, port, kind, folder, stop_at, results):
    torch.set_num_threads(1)
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": str(rank), "WORLD_SIZE": "2"}
    dist.init_process_group("gloo")
    run = Run(folder) if rank == 0 else Watched(folder)
    asked = iter(range(stop_at))
    stop = lambda: next(asked, None) is None and rank == 0  # noqa: E731, the first process decides
    found = train(tiny(), Counting(), settings(**GIVEN), seed=0, folder=run, stop=stop, strategy=STRATEGIES[kind]())
    results[rank] = found
    dist.destroy_process_group()


def together(kind, folder, stop_at=100):
    """What two processes return, and the curve."""
    folder.mkdir(exist_ok=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with mp.Manager() as manager:
        results = manager.dict()
        mp.spawn(process, (port, kind, folder, stop_at, results), nprocs=2)
        return [results[0], results[1]], Run(folder)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    run = Run(tmp_path_factory.mktemp("alone"))
    model = tiny()
    return train(model, Counting(), settings(**GIVEN), seed=0, folder=run), run, model


def column(run, key, kind="train"):
    return [line[key] for line in run.lines() if line["kind"] == kind]


@pytest.mark.parametrize("kind", STRATEGIES)
def test_two_processes_give_the_losses_of_one(tmp_path, alone, kind):
    expected, run, model = alone
    (first, second), spread = together(kind, tmp_path / "two")
    for key, of in [("loss", "train"), ("grad_norm", "train"), ("lr", "train"), ("loss", "dev"), ("step", "dev")]:
        assert column(spread, key, of) == pytest.approx(column(run, key, of), rel=1e-5), key
    assert len(column(spread, "loss")) == 12 and column(run, "loss")[-1] < column(run, "loss")[0]
    assert first["metrics"] == second["metrics"] and first["train"]["tokens"] == expected["train"]["tokens"]
    assert first["metrics"]["test"] == pytest.approx(expected["metrics"]["test"], rel=1e-5)
    again = tiny(seed=4)
    read_model(again, spread.weights)
    for a, b in zip(again.parameters(), model.parameters()):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
    assert again.head.weight is again.table.weight


@pytest.mark.parametrize("kind", STRATEGIES)
def test_processes_go_on_where_they_stopped(tmp_path, alone, kind):
    """Its state is the state of one process, too: what two have saved, one can take up."""
    _, run, _ = alone
    (first, _), parts = together(kind, tmp_path / "parts", stop_at=5)
    assert (first["status"], first["train"]["steps"]) == ("interrupted", 5)
    (first, _), parts = together(kind, tmp_path / "parts")
    assert first["status"] == "done" and column(parts, "step", "start") == [0, 5]
    assert column(parts, "loss") == pytest.approx(column(run, "loss"), rel=1e-5)


def test_a_single_process_changes_nothing():
    single, x = SingleProcess(), torch.ones(3)
    batch = Batch(x, x, x)
    model = tiny()
    assert single.shard_batch(batch) is batch and single.all_reduce(x) is x and single.wrap(model, None) is model
    assert all(f(x) is x for f in (single.all_gather, single.select_rank, single.unshard))
    assert single.shard_like(x, x) is x and single.broadcast(3) == 3


# as a user runs it


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    (home / "tiny.yaml").write_text(TINY)
    (home / "fails.py").write_text(FAILS)
    return home


FAILS = """
import os, signal, time
import zoo
from torch import nn

class Fails(nn.Module):
    def __init__(self, shape, *, how: str = "raise"):
        super().__init__()
        self.up, self.how = nn.Linear(shape.d_model, shape.d_model), how

    def forward(self, x, ctx):
        if not x.is_meta and os.environ.get("RANK") == "1":
            if self.how == "raise":
                raise RuntimeError("the second gave up")
            os.kill(os.getpid(), signal.SIGKILL)
        return self.up(x)

@zoo.hookimpl
def zoo_variants():
    return [zoo.Variant("ffn", "fails", Fails, "Fails in the second process alone.")]
"""


@pytest.mark.parametrize("kind", STRATEGIES)
def test_one_large_run(home, kind):
    sets = ["--set", "train.steps=30", "--set", "train.eval_every=10"]
    found = command(
        home, "run", "tiny.yaml", "long", *sets, "--nproc", "2", "--set", f"train.parallel={kind}", "--out", kind
    )
    assert found.returncode == 0, found.stdout + found.stderr
    assert command(home, "run", "tiny.yaml", "long", *sets, "--out", "one").returncode == 0
    ((id,),), ((one,),) = (ids(home, "long", out).values() for out in (kind, "one"))
    assert id != one
    spread, whole = record(home, id, kind), record(home, one, "one")
    assert spread["metrics"]["test"] == pytest.approx(whole["metrics"]["test"], rel=1e-4)
    assert spread["decode"] is None and whole["decode"]["tokens_per_second"] > 0
    assert sorted(p.name for p in (home / kind / id).iterdir()) == sorted(
        p.name for p in (home / "one" / one).iterdir()
    )
    assert (
        zoo.load(home / kind / id).model.state_dict().keys() == zoo.load(home / "one" / one).model.state_dict().keys()
    )


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("raise", "process 1: RuntimeError: the second gave up"),
        ("kill", "killed by SIGKILL, perhaps for lack of memory"),
    ],
)
def test_one_process_that_fails_ends_all(home, how, reason):
    sets = ["--set", f"model.ffn={{name: fails, how: {how}}}", "--nproc", "2", "--out", how]
    found = command(home, "run", "tiny.yaml", "long", *sets)
    assert found.returncode == 3 and reason in " ".join(found.stdout.split())
    assert "Traceback" not in found.stdout + found.stderr


def test_ctrl_c_lets_processes_save(home):
    words = ["run", "tiny.yaml", "long", "--set", "train.steps=100000", "--nproc", "2", "--out", "stopped"]
    parent = start(home, *words)
    try:
        until(lambda: list((home / "stopped").glob("*/resume.safetensors")))
        parent.send_signal(signal.SIGINT)
        out, err = parent.communicate(timeout=100)
    finally:
        parent.kill()
    assert parent.returncode == 130 and "interrupted" in out, err
    (id,) = next(iter(ids(home, "long", "stopped").values()))
    assert record(home, id, "stopped")["status"] == "interrupted" and not children(parent.pid)


def test_rows_that_cannot_be_shared_evenly(home):
    found = command(home, "run", "tiny.yaml", "long", "--nproc", "3")
    assert found.returncode == 2 and "train.batch_size is 4; it should be a multiple of the 3 processes" in found.stderr
