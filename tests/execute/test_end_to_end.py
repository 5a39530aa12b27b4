"""`zoo run` as a user runs it: real processes, real folders."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support import commands
from support.commands import children, command, ids, record, start, until

import zoo
from zoo.execute.materialise import reopen
from zoo.files import parse_line
from zoo.train import metrics

home = commands.home


@pytest.fixture(scope="module")
def good(home):
    found = command(home, "run", "tiny.yaml", "good")
    assert found.returncode == 0, found.stderr
    return found


@pytest.fixture(scope="module")
def bad(home):
    return command(home, "run", "tiny.yaml", "bad")


def test_a_run_leaves_all_that_it_promises(home, good):
    rows = ids(home, "good")
    assert {name: len(found) for name, found in rows.items()} == {
        "position=rope": 2, "position=alibi": 2, "n-gram order=2": 1,
    }  # fmt: skip
    assert all(name in good.stdout for name in rows) and good.stderr.startswith("0/5 runs")
    (counted,) = rows.pop("n-gram order=2")
    found = record(home, counted)
    assert found["status"] == "done" and found["train"] is None and 0 < found["metrics"]["test"]["bpb"] < 8
    for id in (id for found in rows.values() for id in found):
        found = record(home, id)
        assert found["status"] == "done" and found["train"]["steps"] == 20
        assert {"spec", "seed", "provenance", "machine", "versions", "data", "model", "best", "metrics"} <= found.keys()
        assert all(math.isfinite(value) for value in found["metrics"]["test"].values())
        assert found["decode"]["tokens_per_second"] > 0 and found["decode"]["tokens"] == 16
        assert (home / "runs" / id / "weights.safetensors").exists()
        assert json.loads((home / "runs" / id / "tokenizer.json").read_text())["tokenizer"] == "byte"
        assert not (home / "runs" / id / "resume.safetensors").exists()
        lines = [json.loads(line) for line in (home / "runs" / id / "metrics.jsonl").read_text().splitlines()]
        assert [line["step"] for line in lines if line["kind"] == "dev"] == [10, 20]
    made = {file.name for file in (home / "runs" / "good").iterdir()}
    assert {"comparison.json", "report.md", "report.txt", "report.csv", "report.json", "curves.png"} <= made
    assert Path(home / "runs/good/curves.png").read_bytes().startswith(b"\x89PNG")


def test_done_runs_are_not_repeated_and_a_missing_one_comes_back_bit_for_bit(home, good):
    every = [id for found in ids(home, "good").values() for id in found]
    before, lost = {id: traces(home, id) for id in every}, every[1]
    weights, metrics, points = (home / "runs" / lost / "weights.safetensors").read_bytes(), *told(home, lost)
    shutil.rmtree(home / "runs" / lost)
    found = command(home, "run", "tiny.yaml", "good")
    assert found.returncode == 0 and table(found) == table(good)
    assert (home / "runs" / lost / "weights.safetensors").read_bytes() == weights
    assert told(home, lost) == (metrics, points)
    del before[lost]
    assert {id: traces(home, id) for id in before} == before
    assert weights != (home / "runs" / every[0] / "weights.safetensors").read_bytes()  # of another seed


def test_two_machines_and_a_merge_give_the_table_of_one(home, good):
    everything = {id for found in ids(home, "good").values() for id in found}
    shares = []
    for i in (1, 2):
        found = command(home, "run", "tiny.yaml", "good", "--shard", f"{i}/2", "--out", f"machine{i}")
        assert found.returncode == 0, found.stderr
        shares.append({path.parent.name for path in (home / f"machine{i}").glob("*/run.json")})
    assert shares[0] | shares[1] == everything and not shares[0] & shares[1] and all(shares)
    found = command(home, "merge", "merged", "machine1")
    assert found.returncode == 3 and found.stderr.count(" is not run\n") == len(shares[1])
    found = command(home, "merge", "merged", "machine1", "machine2")
    assert found.returncode == 0 and not found.stderr and table(found) == table(good)
    assert all(record(home, id)["metrics"] == record(home, id, "merged")["metrics"] for id in everything)
    assert command(home, "run", "tiny.yaml", "good", "--out", "merged").stderr.startswith("5/5 runs")


def test_a_shard_that_is_none_and_one_that_is_empty(home):
    found = command(home, "run", "tiny.yaml", "good", "--shard", "3/2")
    assert found.returncode == 2 and "'3/2' should be i/n with i from 1 to n, such as 2/4" in found.stderr
    found = command(home, "run", "tiny.yaml", "long", "--shard", "1/3", "--out", "none")
    assert found.returncode == 0 and "shard 1/3 holds no run" in found.stderr


def traces(home: Path, id: str) -> dict:
    """What would change if a run were touched: the content and the time of each of its files."""
    return {
        path.name: (path.read_bytes(), path.stat().st_mtime_ns)
        for path in (home / "runs" / id).iterdir() if path.name != "lock"
    }  # fmt: skip


def told(home: Path, id: str) -> tuple[dict, list[dict]]:
    """The metrics of a run and its curve, without what the clock says."""
    lines = [json.loads(line) for line in (home / "runs" / id / "metrics.jsonl").read_text().splitlines()]
    return record(home, id)["metrics"], [{**line, "tokens_per_second": None} for line in lines]


def table(found: subprocess.CompletedProcess) -> list[str]:
    """The names of the rows and their scores, as printed: speeds differ from run to run."""
    return re.findall(r"^position=\w+(?=  )|^n-gram|\d\.\d{3}", found.stdout, re.M)


def test_what_is_loaded_scores_what_was_recorded(home, good, monkeypatch):
    folder = home / "runs" / ids(home, "good")["position=rope"][0]
    loaded = zoo.load(folder)  # from another folder, where the text is not
    model, found = loaded.model, json.loads((folder / "run.json").read_text())
    monkeypatch.chdir(home)
    run, _ = reopen(loaded.record)
    task = run.make_task()
    task.prepare()
    for split in ("dev", "test"):
        scores = metrics.evaluate(model, task, split)
        assert scores == pytest.approx(found["metrics"][split], rel=1e-5)
    assert found["metrics"]["dev"] == found["best"]["dev"]


def test_a_report_is_drawn_again_from_the_folders(home, good):
    found = command(home, "report", "good", "--format", "plain")
    assert found.returncode == 0 and found.stdout.strip() == (home / "runs/good/report.txt").read_text().strip()


def test_one_failed_and_one_diverged_run_are_rows_and_the_rest_goes_on(home, bad):
    assert bad.returncode == 3
    assert "Traceback" not in bad.stdout + bad.stderr
    found = ids(home, "bad")
    rows = {name: record(home, id) for name, (id,) in found.items()}
    assert {name: row["status"] for name, row in rows.items()} == {
        "broken": "failed", "wild": "diverged", "sound": "done",
    }  # fmt: skip
    assert "the ffn gave up" in rows["broken"]["reason"] and "the ffn gave up" in bad.stdout
    (told,) = re.findall("^traceback of broken: (.*)$", bad.stdout, re.M)
    assert 'raise RuntimeError("the ffn gave up")' in (home / told).read_text()
    report = json.loads((home / "runs/bad/report.json").read_text(), parse_constant=pytest.fail)
    assert report["rows"][0]["name"] == "sound"  # the last of the file, before those that have no result
    assert len((home / "runs" / found["wild"][0] / "metrics.jsonl").read_text().splitlines()) >= 2
    finished = {id: traces(home, id) for id in found["wild"] + found["sound"]}
    assert command(home, "run", "tiny.yaml", "bad", "--allow-failures").returncode == 0
    assert {id: traces(home, id) for id in finished} == finished


@pytest.mark.skipif(sys.platform != "linux", reason="finds the worker in /proc")
def test_a_run_killed_and_then_stopped_goes_on_to_the_same_bits(home, bad):
    (id,) = ids(home, "bad")["sound"]
    words = "run", "tiny.yaml", "long", "--out", "killed"
    folder = home / "killed" / id
    parent = start(home, *words)
    try:
        until(lambda: (folder / "resume.safetensors").exists())
        parent.send_signal(signal.SIGSTOP)  # so that neither of the two sees the other die and says so
        (worker,) = children(parent.pid)
        os.kill(worker, signal.SIGKILL)
    finally:
        parent.kill()
        parent.communicate()
    assert record(home, id, "killed")["status"] == "running"

    parent = start(home, *words)
    try:
        until(lambda: began(folder) > 0)
        parent.send_signal(signal.SIGINT)
        out, err = parent.communicate(timeout=60)
    finally:
        parent.kill()
    assert parent.returncode == 130 and "Traceback" not in err
    assert "interrupted" in out and err.endswith("stopped; the same command continues\n")
    assert record(home, id, "killed")["status"] == "interrupted"
    stopped = began(folder)

    assert command(home, *words).returncode == 0
    assert began(folder) > stopped  # it began anew neither time
    assert (folder / "weights.safetensors").read_bytes() == (home / "runs" / id / "weights.safetensors").read_bytes()
    assert record(home, id, "killed")["metrics"] == record(home, id)["metrics"]


def began(folder: Path) -> int:
    """The step at which the run was last taken up."""
    lines = map(parse_line, (folder / "metrics.jsonl").read_text().splitlines())
    return max((line["step"] for line in lines if line and line["kind"] == "start"), default=0)
