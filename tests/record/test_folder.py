import json
import math
import os
import subprocess
import sys
import time

import numpy
import pytest
import torch
from support.tasks import tiny
from torch import nn

import zoo
from zoo.compare.comparison import read_comparison
from zoo.compare.prepared import Prepared
from zoo.declare.library import open_library
from zoo.execute import materialise, stages
from zoo.files import write_json
from zoo.model import weights
from zoo.record import RunRecord
from zoo.record import folder as runs
from zoo.record.folder import Run, peak_memory
from zoo.train import metrics
from zoo.train.loop import train


def run_in(folder, **record):
    run = Run(folder / "0123456789abcdef")
    run.begin(record)
    return run


def test_reading_needs_no_torch():
    script = "import sys, zoo.record.folder, zoo.execute.pool, zoo.execute.progress, zoo.execute.worker; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


def test_json_is_strict_and_words_stay_as_they_are(tmp_path):  # REPORT-4, REPORT-5
    value = {
        "a": math.nan, "b": [math.inf, -math.inf, 1.5], "NaN-test": "Infinity", "n": numpy.float32(0.5), "i": numpy.int64(3),
        "bad": numpy.float64("nan"), "t": torch.tensor(2.0), "yes": True, "none": None, 1: (1, 2), "u": "ü",
    }  # fmt: skip
    write_json(tmp_path / "x.json", value)
    text = (tmp_path / "x.json").read_text("utf-8")
    read = json.loads(text, parse_constant=lambda word: pytest.fail(word))
    assert read == {
        "a": None, "b": [None, None, 1.5], "NaN-test": "Infinity", "n": 0.5, "i": 3, "bad": None, "t": 2.0, "yes": True,
        "none": None, "1": [1, 2], "u": "ü",
    }  # fmt: skip
    with pytest.raises(TypeError, match="Run has no place in a record"):
        write_json(tmp_path / "x.json", {"a": Run(tmp_path)})
    assert (tmp_path / "x.json").read_text("utf-8") == text


def test_a_float_comes_back_to_the_bit(tmp_path):
    values = [0.1, 1 / 3, 1e-300, 2.0**-1074, 1.7976931348623157e308]
    write_json(tmp_path / "x.json", values)
    assert json.loads((tmp_path / "x.json").read_text()) == values


def test_killed_while_it_overwrites(tmp_path):  # CKPT-1
    script = f"""
from pathlib import Path
from zoo.files import write_json
n = 0
while True:
    n += 1
    write_json(Path({str(tmp_path / "x.json")!r}), [n] * 50_000)
"""
    for _ in range(3):
        writer = subprocess.Popen([sys.executable, "-c", script])
        while not (tmp_path / "x.json").exists():
            time.sleep(0.01)
        time.sleep(0.15)
        writer.kill()
        writer.wait()
        found = json.loads((tmp_path / "x.json").read_text())
        assert len(found) == 50_000 and len(set(found)) == 1


def test_a_file_is_replaced_not_overwritten(tmp_path):
    path, kept = tmp_path / "x.json", tmp_path / "kept"
    write_json(path, "old")
    os.link(path, kept)
    write_json(path, "new")
    assert (path.read_text(), kept.read_text()) == ('"new"\n', '"old"\n')


def test_begin_states_a_run_and_leaves_a_finished_one(tmp_path):
    run = run_in(tmp_path, spec={"x": 1}, seed=3)
    assert run.read() == RunRecord(format=1, id=run.id, spec={"x": 1}, seed=3, status="not run", reason=None)
    for status, kept in [
        ("done", True),
        ("diverged", True),
        ("failed", False),
        ("interrupted", False),
        ("running", False),
    ]:
        run.update(status=status, reason="why", best={"step": 4})
        run.begin({"spec": {"x": 1}, "seed": 3})
        assert (run.read().status == status) is kept and (run.read().best is not None) is kept


def test_only_the_holder_of_the_lock_writes(tmp_path):
    run = run_in(tmp_path, seed=1)
    with run.lock() as mine:
        assert mine
        run.update(status="running")
        with run.lock() as theirs:
            assert not theirs
        run.begin({"seed": 2})
        assert (run.read().status, run.read().seed) == ("running", 1)
    asked = []
    with run.lock(), run.lock(wait=lambda: asked.append(1) or len(asked) < 3) as theirs:
        assert not theirs and len(asked) == 3
    with run.lock() as again:
        assert again


def test_the_curve_survives_a_half_written_line(tmp_path):
    run = run_in(tmp_path)
    for step in (0, 5, 10, 15):
        run.log({"kind": "train", "step": step, "loss": math.nan if step == 10 else 1.0})
    with run.metrics.open("a") as file:
        file.write('{"kind": "tr')
    assert [line["loss"] for line in run.lines()] == [1.0, 1.0, None, 1.0]
    run.trim(10)
    run.log({"kind": "dev", "step": 11})
    assert [line["step"] for line in run.lines()] == [0, 5, 10, 11]
    assert run.metrics.read_text().count("\n") == 4


def test_peak_memory_is_this_process_own():
    """A child of a large process begins small; the system's own counter would start at the parent's size."""
    block = bytearray(300_000_000)
    mine = peak_memory()
    script = "from zoo.record.folder import peak_memory; a = peak_memory(); b = bytearray(50_000_000); print(a, peak_memory())"
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout
    before, after = map(int, out.split())
    assert mine > len(block) and before < 150_000_000 and 45_000_000 < after - before < 60_000_000


def test_facts_of_machine_and_versions():
    assert runs.machine()["cores"] == runs.cores() and runs.machine()["memory_bytes"] > 2**28
    assert runs.machine()["processor"] and runs.versions()["torch"] == torch.__version__
    assert runs.versions()["python"] == ".".join(map(str, sys.version_info[:3]))


# weights


class Odd(nn.Module):
    """A tie, a kept buffer, one that is not kept, and a parameter that is not contiguous."""

    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)
        self.head.weight = self.table.weight
        self.turned = nn.Parameter(torch.randn(4, 2).t())
        self.register_buffer("kept", torch.arange(3.0))
        self.register_buffer("made", torch.arange(4.0), persistent=False)


def test_a_tied_weight_is_stored_once_and_stays_tied(tmp_path):  # INIT-2
    model, again = Odd(), Odd()
    weights.write_model(model, tmp_path / "w.safetensors")
    held = sum(x.numel() for x in weights.list_tensors(model).values())
    assert held == 15 + 8 + 3
    assert (tmp_path / "w.safetensors").stat().st_size < held * 4 + 600
    weights.read_model(again, tmp_path / "w.safetensors")
    assert again.head.weight is again.table.weight and torch.equal(again.table.weight, model.table.weight)
    assert torch.equal(again.turned, model.turned)
    with pytest.raises(RuntimeError, match="head.weight"):
        weights.read_model(tiny(), tmp_path / "w.safetensors")


def test_a_state_holds_tensors_and_plain_facts(tmp_path):  # CKPT-2
    path = tmp_path / "state.safetensors"
    tensors = {"random": torch.get_rng_state(), "x": torch.randn(3, 4, dtype=torch.bfloat16).t(), "n": torch.tensor(7)}
    facts = {"best": numpy.float64(1 / 3), "other": numpy.float32(0.5), "none": None, "nested": {"a": [1, 2.5]}}
    weights.write_state(path, tensors, facts)
    back, plain = weights.read_state(path)
    assert all(torch.equal(back[k], tensors[k]) and back[k].dtype == tensors[k].dtype for k in tensors)
    assert plain == {"best": 1 / 3, "other": 0.5, "none": None, "nested": {"a": [1, 2.5]}}
    assert type(plain["best"]) is float


def test_a_trained_model_loads_from_its_folder(tmp_path):
    """A declared run, trained, saved and loaded, scores what its record says and gives the same logits."""
    file = tmp_path / "x.yaml"
    file.write_text("""
comparisons:
  c:
    model: llama-like
    shape: {d_model: 16, n_heads: 4, n_layers: 1, max_len: 16, dropout: 0.1}
    task: {name: copy, symbols: 5}
    train: {steps: 4, eval_every: 2}
""")
    library = open_library(file)
    comparison = read_comparison(library, "c")
    (job,) = stages.write_comparison(comparison, Prepared(library), tmp_path / "out", str(file))
    made = materialise.materialise(job.run.read())
    result = train(made.model, made.task, made.settings, seed=0, folder=job.run)
    job.run.update(data={"vocab_size": made.task.vocab_size}, **result)
    model = zoo.load(job.run.folder).model
    assert not model.training and model is not made.model
    assert metrics.evaluate(model, made.task, "test") == pytest.approx(result["metrics"]["test"], rel=1e-5)
    batch = made.task.batch(2, torch.Generator().manual_seed(0))
    assert torch.equal(metrics.predict(model, batch), metrics.predict(made.model, batch))


def test_a_folder_without_weights_says_why(tmp_path):
    run = run_in(tmp_path)
    run.update(status="failed")
    with pytest.raises(zoo.SpecError, match="holds no trained model; its status is 'failed'"):
        zoo.load(run.folder)
    with pytest.raises(zoo.SpecError, match="nowhere holds no trained model; it has no run.json"):
        zoo.load(os.path.join(tmp_path, "nowhere"))
