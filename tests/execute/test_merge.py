import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from zoo import SpecError
from zoo.cli import main
from zoo.execute.merge import find_missing, merge
from zoo.files import replace, write_json
from zoo.record import plain
from zoo.record.folder import Run

METRIC = {"name": "loss", "better": "lower", "unit": "nats per token"}


def place(folder: Path, *ids: str, file: str = "a.yaml", all: str = "abc") -> Path:
    """A folder of a comparison of three runs, of which it has begun some; each `id=status`, done unless given."""
    rows = [{"name": f"row {id}", "differs": {}, "runs": [{"seed": 0, "id": id}]} for id in all]
    head = {"format": 1, "name": "c", "file": file, "task": "t", "metric": METRIC, "baseline": "row a", "rows": rows}
    (folder / "c").mkdir(parents=True)
    write_json(folder / "c" / "comparison.json", head)
    for text in ids:
        id, _, status = text.partition("=")
        run = Run(folder / id)
        run.begin({"spec": {"x": id}, "seed": 0})
        run.log({"kind": "dev", "step": 4, "loss": 1.0})
        score(run, 1.5, status or "done")
    return folder


def score(run: Run, loss: float, status: str = "done", **more):
    run.update(status=status, metrics={"test": {"loss": loss}}, best={"dev": {"loss": loss}}, **more)


def statuses(out: Path) -> dict[str, str]:
    return {path.parent.name: json.loads(path.read_text())["status"] for path in sorted(out.glob("*/run.json"))}


def test_the_runs_of_two_machines_come_together(tmp_path):
    one, two = place(tmp_path / "one", "a", file="/home/one/a.yaml"), place(tmp_path / "two", "b", "c=diverged")
    (one / "a" / "weights.safetensors").write_bytes(b"weights")
    (one / "a" / ".run.json.7.new").write_text("half")
    out = tmp_path / "out"
    documents = merge(out, [one, two])
    assert statuses(out) == {"a": "done", "b": "done", "c": "diverged"} and find_missing(out, documents) == []
    assert sorted(path.name for path in (out / "a").iterdir()) == [
        "lock", "metrics.jsonl", "run.json", "weights.safetensors",
    ]  # fmt: skip
    assert (out / "a" / "run.json").read_bytes() == (one / "a" / "run.json").read_bytes()
    assert json.loads((out / "c" / "comparison.json").read_text()) == plain(documents["c"])


def test_what_each_machine_set_may_differ(tmp_path):
    places = [place(tmp_path / name, id) for name, id in (("one", "a"), ("two", "b"))]
    for folder, device in zip(places, ("cpu", "cuda"), strict=True):
        path = folder / "c" / "comparison.json"
        write_json(path, json.loads(path.read_text()) | {"sets": [f"train.device={device}"]})
    merge(tmp_path / "out", places)
    assert statuses(tmp_path / "out") == {"a": "done", "b": "done"}


def test_what_each_machine_knows_of_its_trials_makes_no_other_comparison(tmp_path):
    places = [place(tmp_path / name, name) for name in "ab"]
    for i, folder in enumerate(places):
        document = json.loads((folder / "c" / "comparison.json").read_text())
        document["rows"][i]["tuning"] = {"trials": [{"status": "done"}]}
        write_json(folder / "c" / "comparison.json", document)
    assert set(merge(tmp_path / "out", places)) == {"c"} and statuses(tmp_path / "out") == {"a": "done", "b": "done"}


def test_finished_beats_unfinished_wherever_it_stands(tmp_path):
    one, two = place(tmp_path / "one", "a=failed", "b"), place(tmp_path / "two", "a", "b=interrupted")
    for name, places in {"x": [one, two], "y": [two, one]}.items():
        assert find_missing(tmp_path / name, merge(tmp_path / name, places)) == ["c: row c · 0 is not run"]
        assert statuses(tmp_path / name) == {"a": "done", "b": "done"}


def test_of_unfinished_runs_the_farthest_goes_on(tmp_path):
    one, two = place(tmp_path / "one", "a=failed"), place(tmp_path / "two", "a=interrupted")
    Run(two / "a").resume.write_bytes(b"state")
    merge(tmp_path / "x", [one, two])
    merge(tmp_path / "y", [two, one])
    for name in "xy":
        assert statuses(tmp_path / name) == {"a": "interrupted"}
        assert Run(tmp_path / name / "a").resume.read_bytes() == b"state"
    merge(tmp_path / "x", [place(tmp_path / "three", "a")])
    assert statuses(tmp_path / "x") == {"a": "done"} and not Run(tmp_path / "x" / "a").resume.exists()


def test_equal_results_are_one_whatever_they_took(tmp_path):
    one, two = place(tmp_path / "one", "a"), place(tmp_path / "two", "a")
    Run(one / "a").update(train={"seconds": 1.0})
    Run(two / "a").update(train={"seconds": 9.0})
    merge(tmp_path / "out", [one, two])
    assert Run(tmp_path / "out" / "a").read().train.seconds == 1.0


def test_two_results_of_one_run_are_a_fault_and_nothing_is_written(tmp_path):
    one, two = place(tmp_path / "one", "a", "b"), place(tmp_path / "two", "a")
    score(Run(two / "a"), 1.5000001)
    with pytest.raises(SpecError) as told:
        merge(tmp_path / "out", [one, two])
    assert str(told.value) == f"{one / 'a'} and {two / 'a'} are the same run and differ in 'best'"
    assert not (tmp_path / "out").exists()


def test_a_finished_run_is_never_written_over(tmp_path):
    out, one = place(tmp_path / "out", "a"), place(tmp_path / "one", "a", "b")
    before = (out / "a" / "run.json").stat().st_mtime_ns
    Run(one / "a").update(train={"seconds": 5.0})
    merge(out, [one, out])
    assert (out / "a" / "run.json").stat().st_mtime_ns == before and statuses(out) == {"a": "done", "b": "done"}
    score(Run(one / "a"), 2.0)
    with pytest.raises(SpecError, match="are the same run and differ"):
        merge(out, [one])
    assert (out / "a" / "run.json").stat().st_mtime_ns == before


def test_a_merge_that_breaks_off_leaves_no_run_that_looks_whole(tmp_path, monkeypatch):
    one = place(tmp_path / "one", "a")
    (one / "a" / "weights.safetensors").write_bytes(b"weights")

    def full(path, write):
        if path.name == "weights.safetensors":
            raise OSError("disk full")
        replace(path, write)

    monkeypatch.setattr("zoo.files.replace", full)
    with pytest.raises(OSError, match="disk full"):
        merge(tmp_path / "out", [one])
    assert statuses(tmp_path / "out") == {}


def test_a_run_in_training_is_left_alone(tmp_path):
    out, one = place(tmp_path / "out", "a=running"), place(tmp_path / "one", "a")
    with Run(out / "a").lock(), pytest.raises(SpecError, match="a is in training; merge when it has ended"):
        merge(out, [one])
    assert statuses(out) == {"a": "running"}


def told(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["merge", *map(str, words)])
    return result.exit_code, result.output


def test_what_cannot_be_merged_is_told_all_at_once(tmp_path):
    one, two = place(tmp_path / "one", "a", "b"), place(tmp_path / "two", all="ab")
    (one / "b" / "run.json").write_text("{")
    (two / "b").mkdir()
    (two / "b" / "run.json").write_text("[]")
    (tmp_path / "empty").mkdir()
    code, text = told(tmp_path / "out", one, two, tmp_path / "empty", tmp_path / "nowhere")
    assert code == 2 and "Traceback" not in text and not (tmp_path / "out").exists()
    lines = [
        f"{one}/c/comparison.json and {two}/c/comparison.json are of one name, and not the same comparison",
        f"{tmp_path}/empty holds no comparison; it should be a folder that 'zoo run --out' has filled",
        f"{tmp_path}/nowhere holds no comparison; it should be a folder that 'zoo run --out' has filled",
        f"{one}/b/run.json cannot be read: Expecting property name",
        f"{two}/b/run.json cannot be read: it holds no object, but list",
    ]
    assert all(line in text for line in lines)
    assert told(tmp_path / "out")[0] == 2


def test_the_exit_code_says_whether_all_runs_are_there(tmp_path):
    one, two = place(tmp_path / "one", "a", "b"), place(tmp_path / "two", "c=failed")
    code, text = told(tmp_path / "out", one)
    assert code == 3 and "c: row c · 0 is not run" in text and "row a" in text
    assert (tmp_path / "out" / "c" / "report.md").exists()
    code, text = told(tmp_path / "out", one, two)
    assert code == 3 and "c: row c · 0 is failed" in text
    assert told(tmp_path / "out", one, two, "--allow-failures")[0] == 0
    score(Run(two / "c"), 1.2)
    assert told(tmp_path / "out", two)[0] == 0
