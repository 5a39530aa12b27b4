"""Comparisons with trials, and scores put into their folders."""

import json
import textwrap

from support.comparisons import BASE
from support.files import write
from zoo.compare.comparison import read_comparison
from zoo.declare.library import open_library

ARMS = "models: [{ffn: relu}, {ffn: gelu}]\nseeds: 2\n"


TUNE = "tune: {lr: [1e-3, 2e-3, 4e-3], seeds: 2}\n"


def opened(tmp_path, body=ARMS + TUNE, base=BASE):
    library = open_library(write(tmp_path, "comparisons:\n  c:\n" + textwrap.indent(base + body, "    ")))
    return read_comparison(library, "c"), library


def score(run, value, status="done", **more):
    """What the process of a run would leave; `value` on dev and something else on test."""
    run.update(status=status, best={"step": 1, "dev": {"accuracy": value}}, metrics={"test": {"accuracy": 1 - value}},
               **more)  # fmt: skip


def document(tmp_path):
    return json.loads((tmp_path / "runs/c/comparison.json").read_text())
