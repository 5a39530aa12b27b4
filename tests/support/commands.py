"""The command in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

TINY = """
plugins: [./fails.py]
shapes: {t: {d_model: 16, n_heads: 2, n_layers: 1, max_len: 16}}
comparisons:
  good:
    models: [{position: rope}, {position: alibi}]
    references: [{name: n-gram, order: 2}]
    shape: t
    task: {name: language-modeling, data: {name: text, files: text.txt, documents: line}, tokenizer: byte}
    train: {steps: 20, batch_size: 4, eval_every: 10}
    seeds: 2
  bad:
    rows:
      broken: {model: {ffn: fails}}
      wild: {model: {ffn: gelu, residual: post-norm, norm: none}, train: {steps: 40, lr: 1e6, clip: null, log_every: 1}}
      sound: {model: {ffn: gelu}}
    shape: t
    task: {name: copy, symbols: 4, min_length: 2, max_length: 3}
    train: {steps: 600, batch_size: 4, eval_every: 200, checkpoint_seconds: 0.2}
  long:
    model: {ffn: gelu}
    shape: t
    task: {name: copy, symbols: 4, min_length: 2, max_length: 3}
    train: {steps: 600, batch_size: 4, eval_every: 200, checkpoint_seconds: 0.2}
"""


FAILS = """
import zoo
from torch import nn

class Fails(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.up = nn.Linear(shape.d_model, shape.d_model)

    def forward(self, x, ctx):
        if not x.is_meta:
            raise RuntimeError("the ffn gave up")
        return self.up(x)

@zoo.hookimpl
def zoo_variants():
    return [zoo.Variant("ffn", "fails", Fails, "Always fails.")]
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    (home / "tiny.yaml").write_text(TINY)
    (home / "fails.py").write_text(FAILS)
    (home / "text.txt").write_text("".join(f"{n} and {n} are {2 * n}\n" for n in range(100)))
    return home


def command(home: Path, *words: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "zoo", *words], cwd=home, capture_output=True, text=True, timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


def ids(home: Path, name: str, out: str = "runs") -> dict[str, list[str]]:
    rows = json.loads((home / out / name / "comparison.json").read_text())["rows"]
    return {row["name"]: [run["id"] for run in row["runs"]] for row in rows}


def record(home: Path, id: str, out: str = "runs") -> dict:
    return json.loads((home / out / id / "run.json").read_text(), parse_constant=pytest.fail)


def start(home: Path, *words: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "zoo", *words], cwd=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


def children(parent: int) -> list[int]:
    return [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/stat") if father(path) == parent]


def father(stat: Path) -> int | None:
    """The parent's id in a line of /proc; None if that process has ended meanwhile."""
    try:
        return int(stat.read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


def until(true, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)
