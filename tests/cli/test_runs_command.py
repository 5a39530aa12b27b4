"""What `zoo run` settles before anything is trained."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from zoo.cli import main
from zoo.compare.comparison import read_comparison
from zoo.declare.library import open_library

TINY = """
comparisons:
  c:
    shape: quick
    task: copy
    train: {steps: 1}
    rows:
      short: {model: llama-like}
      long: {model: llama-like, train: {steps: 9, lr: 1e-2}}
"""


def test_a_device_that_is_not_there_is_refused_before_a_folder_is_made(tmp_path):
    (tmp_path / "c.yaml").write_text(TINY)
    out = tmp_path / "runs"
    found = CliRunner().invoke(main, ["run", str(tmp_path / "c.yaml"), "--out", str(out), "--device", "nonsense"])
    assert found.exit_code == 2 and found.stderr.startswith("device 'nonsense' cannot be used: ")
    assert not out.exists()


def test_a_value_that_is_set_reaches_rows_that_write_the_same_side(tmp_path):
    """A row's own `train` stands in place of the comparison's: set there alone, the value would be ignored."""
    (tmp_path / "c.yaml").write_text(TINY)
    library = open_library(tmp_path / "c.yaml", overrides=("train.steps=3", "train.device=cpu"))
    trains = {row.name: row.runs[0].train for row in read_comparison(library, "c").rows}
    assert {name: (train.steps, train.device) for name, train in trains.items()} == {
        "short": (3, "cpu"),
        "long": (3, "cpu"),
    }
    assert trains["long"].lr == 1e-2


SMALL = """
comparisons:
  c:
    model: {}
    vary: {norm: [layernorm, rmsnorm]}
    shape: {d_model: 16, n_heads: 2, n_layers: 1, max_len: 32}
    task: copy
    train: {steps: 2}
"""


@pytest.fixture
def small(tmp_path):
    (tmp_path / "c.yaml").write_text(SMALL)
    return tmp_path


def call(folder, command, *options):
    extra = () if command == "validate" else ("--out", str(folder / "runs"))
    return CliRunner().invoke(main, [command, str(folder / "c.yaml"), *extra, *options])


@pytest.mark.parametrize("command", ["validate", "plan", "run"])
def test_json_is_one_document_and_nothing_else(small, command):
    options = ("--no-time",) if command == "plan" else ()
    found = call(small, command, "--json", "--quiet", *options)
    assert found.exit_code == 0, found.stderr
    document = json.loads(found.stdout)
    assert document["format"] == 1
    if command == "validate":
        assert document["faults"] == [] and document["counts"]["comparisons"] == 1
    else:
        assert {row["name"] for row in document["rows"]} == {"layernorm", "rmsnorm"}


def test_faults_in_json_have_their_place(small):
    (small / "c.yaml").write_text(SMALL.replace("rmsnorm", "rmsnrom"))
    found = call(small, "validate", "--json")
    (fault,) = json.loads(found.stdout)["faults"]
    assert found.exit_code == 2 and (fault["line"], fault["column"]) == (5, 30)
    assert fault["text"] == "no norm is called 'rmsnrom'; did you mean 'rmsnorm'?"


def test_quiet_says_nothing_of_what_went_well(small):
    assert call(small, "validate", "--quiet").output == ""
    plan = call(small, "plan", "--quiet", "--no-time").stdout
    assert plan.startswith("2 runs, ") and "layernorm" not in plan
    assert call(small, "run", "--quiet").output == ""
    assert (small / "runs" / "c" / "report.md").exists()
