"""What a task asks and an architecture can express is learned: each pair is trained by the zoo's own loop."""

import itertools
import json
import random
import re
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from zoo import SpecError
from zoo.compare.comparison import read_comparison
from zoo.declare.library import open_library
from zoo.record.folder import Run
from zoo.train import metrics
from zoo.train.loop import bind_settings, train

REAL = Path(__file__).parents[2] / "shared" / "data"
ARCHITECTURES = ("decoder-only", "encoder-decoder", "encoder-only")
MODEL = {"position": "rope", "norm": "rmsnorm", "ffn": "swiglu"}
SHAPE = {"d_model": 64, "n_heads": 4, "n_layers": 2, "max_len": 32}
TRAIN = {"steps": 150, "batch_size": 32, "lr": 3e-3, "warmup": 10, "precision": "fp32", "eval_every": 10_000}
NO_DECAY = {"name": "adamw", "weight_decay": 0.0}


def declared(folder, architecture, task, *, model=None, shape=None, **settings):
    """The only run of a comparison that stands in a file."""
    row = {"model": {"architecture": architecture, **MODEL, **(model or {})}, "shape": {**SHAPE, **(shape or {})}}
    comparison = {**row, "task": task, "train": {**TRAIN, **settings.pop("train", {})}, **settings}
    folder.mkdir(exist_ok=True)
    file = folder / "pair.yaml"
    file.write_text(json.dumps({"comparisons": {"pair": comparison}}))
    (row,) = read_comparison(open_library(file), "pair").rows
    return row.runs[0]


def trained(folder, architecture, task, *, seed=0, **changes):
    """The model at its best weights on dev, its prepared task, and the metrics on the test split."""
    run = declared(folder, architecture, task, seeds=[seed], **changes)
    task = run.make_task()
    task.prepare()
    model = run.make_model(task)
    result = train(model, task, bind_settings(run.train), seed=seed, folder=Run(folder))
    assert result["status"] == "done"
    return SimpleNamespace(model=model, task=task, test=result["metrics"]["test"])


class Blind(nn.Module):
    """The best guess without the source: how often each token follows the one before it, place by place."""

    def __init__(self, task, rows=4096):
        super().__init__()
        self.size = task.vocab_size
        self.counts = defaultdict(lambda: torch.full((self.size,), 1e-2))
        batch = task.batch(rows, torch.Generator().manual_seed(0))
        for target, weight in zip(batch.target.tolist(), batch.weight.tolist()):
            for at, (before, token) in enumerate(zip([-1, *target], target)):
                self.counts[at, before][token] += weight[at]

    def forward(self, source, target, **given):
        logits = torch.empty(*target.shape, self.size)
        for row, tokens in enumerate(target.tolist()):
            for at, before in enumerate([-1, *tokens[:-1]]):
                logits[row, at] = self.counts[at, before].log()
        return logits


def chance(task):
    return metrics.evaluate(Blind(task), task, "test")


def table(file):
    return {"name": "table", "files": str(file), "source": "source", "target": "target"}


def write_rows(file, rows):
    file.write_text("".join(f"{source}\t{target}\n" for source, target in [("source", "target"), *rows]))


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    """Every task by a name, its data made here: {name: what stands under `task` in a file}."""
    home, draw = tmp_path_factory.mktemp("data"), random.Random(0)

    # Lines in which four letters come round ten times: a token is known from the one four places before or after it.
    lines = ("".join(draw.choice("abcdefgh") for _ in range(4)) * 10 for _ in range(400))
    (home / "rounds.txt").write_text("".join(f"{line}\n" for line in lines))
    rounds = {"data": {"name": "text", "files": str(home / "rounds.txt"), "documents": "line"}, "tokenizer": "char"}

    # Seven letters of four, and the one that is there more often than any other; as many rows of each label.
    words = {"".join(letters) for letters in itertools.product("abcd", repeat=7)}
    counts = {word: sorted((word.count(letter), letter) for letter in "abcd") for word in sorted(words)}
    most = {word: found[-1][1] for word, found in counts.items() if found[-1][0] > found[-2][0]}
    groups = [[(w, f"mostly {label}") for w, label in most.items() if label == letter] for letter in "abcd"]
    write_rows(home / "most.tsv", [row for group in groups for row in draw.sample(group, 300)])

    digits = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    write_rows(home / "digits.tsv", [(" ".join(digits[int(d)] for d in f"{n:03}"), f"{n:03}") for n in range(1000)])

    symbols = {"symbols": 8, "min_length": 3, "max_length": 5}
    return {
        "language": {"name": "language-modeling", "length": 16, **rounds},
        "continuation": {"name": "language-modeling", "length": 16, "prefix": 8, **rounds},
        "masked": {"name": "masked-language-modeling", "length": 16, **rounds},
        "class": {"name": "classification", "data": table(home / "most.tsv"), "tokenizer": "char"},
        "answer": {"name": "sequence-to-sequence", "data": table(home / "digits.tsv"), "tokenizer": "char"},
        "copy": {"name": "copy", **symbols},
        "reverse": {"name": "reverse", **symbols},
        "sort": {"name": "sort", **symbols},
        "recall": {"name": "associative-recall", "pairs": 2, "keys": 2, "values": 8, "queries": 1},
    }


LEARNED = {
    "language": ("loss", 2.0, 1.0),
    "continuation": ("loss", 2.0, 1.5),
    "masked": ("accuracy", 0.15, 0.4),
    "class": ("accuracy", 0.30, 0.9),
    "answer": ("exact", 0.01, 0.8),
    "copy": ("exact", 0.01, 0.3),
    "reverse": ("exact", 0.01, 0.3),
    "sort": ("exact", 0.05, 0.4),
    "recall": ("accuracy", 0.5, 0.9),
}
"""Metric, what no guess without the source betters, and what must be reached: by task.

Recall may be guessed among the two values that are seen, so its chance is a half. Reached with seed 0, worst of the
architectures: language 0.34, continuation 1.02, masked 0.71, class 1.0, answer 1.0, copy 0.65, reverse 0.53, sort 0.64,
recall 0.99.
"""
PAIRS = [("language", "decoder-only"), ("recall", "decoder-only"), ("recall", "encoder-decoder")]
PAIRS += [(name, kind) for name in LEARNED if name not in ("language", "recall") for kind in ARCHITECTURES]


def better(metric, one, other):
    return one < other if metric == "loss" else one > other


def learns(name, architecture, tasks, folder, seed):
    metric, bound, bar = LEARNED[name]
    found = trained(folder, architecture, tasks[name], seed=seed)
    assert not better(metric, chance(found.task)[metric], bound)
    assert better(metric, found.test[metric], bar), found.test
    return found


@pytest.mark.parametrize(("name", "architecture"), PAIRS)
def test_each_pair_learns(name, architecture, tasks, tmp_path):
    learns(name, architecture, tasks, tmp_path / "run", seed=0)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(("name", "architecture"), PAIRS)
def test_each_pair_learns_from_other_seeds(name, architecture, seed, tasks, tmp_path):
    learns(name, architecture, tasks, tmp_path / "run", seed=seed)


@pytest.mark.parametrize(
    ("name", "architecture", "reason"),
    [
        ("language", "encoder-decoder", "reads a source, and task 'language-modeling' has none; give it 'prefix: 8'"),
        ("language", "encoder-only", "reads a source, and task 'language-modeling' has none; give it 'prefix: 8'"),
        ("recall", "encoder-only", "task 'associative-recall' asks its questions inside the target"),
    ],
)
def test_the_other_pairs_are_refused(name, architecture, reason, tasks, tmp_path):
    with pytest.raises(SpecError, match=re.escape(reason)):
        declared(tmp_path / "run", architecture, tasks[name])


@pytest.mark.parametrize(("architecture", "steps"), list(zip(ARCHITECTURES, (60, 60, 25))))
def test_writing_gets_as_many_rows_right_as_reading_along(architecture, steps, tasks, tmp_path):
    """Greedy generation is right on just the rows that teacher forcing gets right."""
    found = trained(tmp_path / "run", architecture, tasks["answer"], train={"steps": steps})
    right = rows = 0
    for batch in found.task.batches("test", 64):
        made = found.model.generate(batch.source, batch.target.shape[1], source_keep=batch.source_keep)
        kept = batch.weight > 0
        right += ((made == batch.target) | ~kept).all(1).sum().item()
        rows += len(made)
    assert 0 < right < rows  # neither nothing nor all, or this would show little
    assert right / rows == found.test["exact"]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("layers", "low", "high"), [(1, 0.25, 0.6), (2, 0.95, 1.0)])
def test_recall_of_four_pairs_takes_two_layers(layers, low, high, tmp_path):
    """One layer guesses among the four values that it has seen (Olsson et al. 2022)."""
    settings = {"steps": 400, "batch_size": 64, "lr": 1e-3, "optimizer": NO_DECAY}
    found = trained(tmp_path / "run", "decoder-only", "associative-recall", shape={"n_layers": layers}, train=settings)
    assert low <= found.test["accuracy"] <= high


@pytest.mark.exhaustive
def test_real_questions_are_sorted_by_their_kind(tmp_path):
    """TREC: six kinds of question, 18.8 % by the most frequent one; unigram naive Bayes gets 74.8 %."""
    files = [REAL / "trec" / name for name in ("train.txt.gz", "test.txt.gz")]
    if not all(file.exists() for file in files):
        pytest.skip("the real data sets are not there")
    data = {"name": "table", "files": str(files[0]), "test": str(files[1]), "pattern": r"(?P<label>\d) (?P<text>.*)"}
    task = {"name": "classification", "data": {**data, "source": "text", "target": "label"}, "tokenizer": "bpe"}
    found = trained(tmp_path / "run", "encoder-only", task, train={"steps": 600})
    assert found.test["accuracy"] > 0.6
