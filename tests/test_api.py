"""The Python API: what `zoo` names is there, lazily, and does what docs/api.md shows."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import zoo
from zoo.execute import progress
from zoo.execute.pool import Job, State
from zoo.record.folder import Run

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "api.md").read_text()
SMALL = {
    "models": ["gpt2-like", "llama-like"],
    "shape": {"d_model": 16, "n_heads": 2, "n_layers": 1, "max_len": 16},
    "task": {"name": "copy", "symbols": 4, "min_length": 2, "max_length": 3},
    "train": {"steps": 4, "batch_size": 4, "eval_every": 2},
    "seeds": 2,
}


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return zoo.run(SMALL, "small", out=tmp_path_factory.mktemp("runs"), quiet=True)


def run_python(code: str, cwd: Path) -> str:
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    return done.stdout


# Names


def test_every_public_name_is_there_and_on_the_page():
    assert set(dir(zoo)) == set(zoo.__all__)
    for name in zoo.__all__:
        assert getattr(zoo, name) is not None
        assert f"`zoo.{name}" in PAGE
    with pytest.raises(AttributeError, match="has no attribute 'biuld'"):
        zoo.biuld  # noqa: B018


def test_importing_and_listing_load_nothing_heavy(tmp_path):
    code = "import sys, zoo; dir(zoo); zoo.list('norm'); print([m for m in ('torch', 'numpy', 'pydantic') if m in sys.modules])"
    assert run_python(code, tmp_path) == "[]\n"


def test_a_report_is_read_without_torch(result):
    code = f"import sys, zoo; print(zoo.report('small', {str(result.out)!r}).rows[0].name, 'torch' in sys.modules)"
    assert run_python(code, result.out) == f"{result.rows[0].name} False\n"


def test_the_examples_of_the_page_run(tmp_path):
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S))
    printed = run_python(code, tmp_path)
    assert printed.startswith("comparisons.comparison.vary.position.1: no position is called 'rop'")


# The catalogue


def test_variants_are_records_that_print():
    found = zoo.list("norm", "rms*")
    assert [each.name for each in found] == ["rmsnorm"] and "Root mean square" or found[0].summary
    assert str(found).splitlines()[0].split()[:2] == ["slot", "name"] and "<td>rmsnorm</td>" in found._repr_html_()
    assert zoo.list("models", "gpt2")[0].parameters == 124_439_808
    with pytest.raises(zoo.SpecError, match="did you mean 'norm'"):
        zoo.list("nrom")


def test_what_is_shown_prints_as_the_command_does():
    shown = zoo.show("position:rope")
    assert str(shown).startswith("position:rope  Rotates") and shown.options[0].name == "base"
    assert zoo.show("model:gpt2", context=8).card.context == 8
    assert "124,439,808 parameters" in zoo.show("model:gpt2").text


# Comparisons


def test_faults_are_a_list():
    faults = zoo.validate({**SMALL, "models": ["gpt2-like", "gpt3-like"]})
    assert [str(fault) for fault in faults] == [
        "comparisons.comparison.models.1: no model is called 'gpt3-like'; did you mean 'gpt2-like'?"
    ]
    assert zoo.validate(ROOT / "registry.yaml") == [] == zoo.validate({"comparisons": {"one": SMALL}})
    assert zoo.validate(SMALL, overrides={"train.steps": "many"})[0].where == '--set train.steps="many"'


def test_a_file_with_several_comparisons_wants_a_name():
    with pytest.raises(zoo.SpecError, match="it holds a, b; name one"):
        zoo.plan({"comparisons": {"a": SMALL, "b": SMALL}}, time=False)


def test_a_plan_is_a_record(tmp_path):
    plan = zoo.plan(SMALL, out=tmp_path, time=False)
    assert [row.name for row in plan.rows] == ["gpt2-like", "llama-like"] and plan.duration is None
    assert plan.totals.runs == 4 and plan.totals.flops > 0 and plan.rows[0].steps == 4
    assert json.loads(json.dumps(plan.to_dict()))["rows"][0]["parameters"] == plan.rows[0].parameters
    assert "4 runs, " in str(plan)


# Results


def test_a_result_has_rows_runs_curves_and_verdicts(result):
    assert (
        {row.name for row in result.rows}
        == {"gpt2-like", "llama-like"}
        == {each["variant"] for each in result.to_dicts()}
    )
    assert [(run.status, run.folder.is_dir()) for run in result.runs] == [("done", True)] * 4
    assert {(each["row"], each["seed"], each["step"]) for each in result.curves} == {
        (row, seed, step) for row in ("gpt2-like", "llama-like") for seed in (0, 1) for step in (2, 4)
    }
    assert set(result.verdicts) == {"llama-like"} and result.sentences[0].startswith("llama-like: ")
    assert str(result).startswith("small: copy") and "<td>llama-like</td>" in result._repr_html_()
    assert (result.folder / "report.md").exists()
    with pytest.raises(zoo.SpecError, match="did you mean 'gpt2-like'"):
        result["gpt2"]


def test_a_second_run_trains_nothing(result):
    before = {run.folder: (run.folder / "run.json").stat().st_mtime_ns for run in result.runs}
    again = zoo.run(SMALL, "small", out=result.out, quiet=True)
    assert before == {run.folder: (run.folder / "run.json").stat().st_mtime_ns for run in again.runs}


def test_pandas_is_asked_for_in_words(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install 'transformer-zoo\[pandas\]'"):
        result.to_pandas()


def test_pandas(result):
    pytest.importorskip("pandas")
    assert list(result.to_pandas()["variant"]) == [row.name for row in result.rows]
    assert len(result.curves.to_pandas()) == 8


def test_a_model_is_loaded_with_its_task(result):
    loaded = result.load("llama-like", seed=1)
    assert loaded.task["name"] == "copy" and loaded.record.seed == 1 and not loaded.model.training
    assert loaded.decode([4, 5]) == "4 5" and loaded.labels == ()
    with pytest.raises(ValueError, match="has no tokenizer"):
        loaded.encode("text")
    with pytest.raises(zoo.SpecError, match="has no run of seed 7"):
        result.load("llama-like", seed=7)


def train_on_text(tmp_path, task: dict, model: str, **train) -> zoo.api.loaded.LoadedModel:
    comparison = {**SMALL, "models": [model], "task": task, "seeds": 1, "train": {**SMALL["train"], **train}}
    return zoo.run(comparison, "text", out=tmp_path / "runs", quiet=True).load(model)


def test_labels_come_back_without_the_data(tmp_path, monkeypatch):
    lines = "".join(
        f"it was {word} {n},{label}\n" for n in range(40) for word, label in (("good", "yes"), ("bad", "no"))
    )
    (tmp_path / "a.csv").write_text(f"text,label\n{lines}")
    data = {"name": "table", "files": str(tmp_path / "a.csv"), "source": "text", "target": "label"}
    loaded = train_on_text(tmp_path, {"name": "classification", "data": data, "tokenizer": "char"}, "bert-like")
    (tmp_path / "a.csv").unlink()
    assert loaded.labels == ("no", "yes")
    found = loaded.classify("it was good")
    assert set(found) == {"no", "yes"} and sum(found.values()) == pytest.approx(1)
    assert loaded.decode([loaded.first_label + 1]) == "yes"
    assert loaded.decode(loaded.encode("it was bad")) == "it was bad"
    with pytest.raises(ValueError, match="does not write from left to right"):
        loaded.generate("it")


def test_text_is_continued(tmp_path):
    (tmp_path / "text.txt").write_text("".join(f"{n} and {n} are {2 * n}\n" for n in range(100)))
    data = {"name": "text", "files": str(tmp_path / "text.txt"), "documents": "line"}
    task = {"name": "language-modeling", "data": data, "tokenizer": "byte"}
    loaded = train_on_text(tmp_path, task, "gpt2-like")
    text = loaded.generate("1 and", 6)
    assert isinstance(text, str) and text == loaded.generate("1 and", 6) and not loaded.reads_source
    with pytest.raises(ValueError, match="not trained on labels"):
        loaded.classify("1 and")


# Progress


def test_a_notebook_shows_one_output_that_changes(monkeypatch, tmp_path):
    shown = []

    class Output:
        def update(self, bundle, raw):
            shown.append(bundle["text/plain"])

    class IPython:
        @staticmethod
        def get_ipython():
            return type("Shell", (), {"kernel": object()})()

        class display:  # noqa: N801
            display = staticmethod(lambda bundle, raw, display_id: Output())

    monkeypatch.setitem(sys.modules, "IPython", IPython)
    monkeypatch.setitem(sys.modules, "IPython.display", IPython.display)
    state = State(Job("a · 0", Run(tmp_path)), status="running", steps=10, step=5, seconds=2.0)
    with progress.display(1) as show:
        show([state])
        state.status, state.process = "done", object()
        show([state])
    assert shown == [
        "a · 0: step 5/10, 0:02 to go\n0/1 runs, 0:02 to go",
        "a · 0 done after 0:02\n1/1 runs, 0:00 to go",
    ]


def test_a_user_script_type_checks_strictly(tmp_path):
    pytest.importorskip("mypy")
    script = tmp_path / "script.py"
    script.write_text(
        "import zoo\n\n"
        "model = zoo.build('gpt2-like', shape='quick')\n"
        "result = zoo.run('my.yaml', overrides={'train.steps': 3})\n"
        "names: list[str] = [row.name for row in result.rows]\n"
        "plan = zoo.plan({'model': 'gpt2-like'}, time=False)\n"
        "flops: int = plan.totals.flops\n"
        "faults: list[zoo.Fault] = zoo.validate('my.yaml')\n"
        "text: str = zoo.load('runs/x').generate('Once')\n"
        "variants = zoo.list('norm')\n"
        "print(model, names, flops, faults, text, variants, zoo.report('a'), zoo.show('model:gpt2').text)\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", os.devnull, "--follow-imports", "silent",
               "--ignore-missing-imports", str(script)]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
