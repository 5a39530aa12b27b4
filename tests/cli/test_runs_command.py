"""What `zoo run` settles before anything is trained."""

from __future__ import annotations

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
