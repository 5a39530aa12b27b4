"""Rows that are made to agree: in parameters, FLOPs or tokens, by a width or by steps."""

import json
import textwrap

import pytest
import torch
from support.comparisons import comparison
from support.files import faults, write

from zoo.compare.comparison import read_comparison
from zoo.compare.match_budget import match_rows, search_size
from zoo.compare.prepared import Prepared
from zoo.declare.library import open_library
from zoo.execute.stages import write_comparison
from zoo.model.builder import make

BASE = """
shape: {d_model: 64, n_heads: 4, n_layers: 2, max_len: 32}
task: {name: language-modeling, data: {name: text, files: text.txt, documents: line}, tokenizer: byte}
train: {steps: 100, batch_size: 4}
"""
ARMS = "models: [gpt2-like, llama-like, {like: llama-like, head: untied}, {ffn: swiglu, attention: mqa}]\n"


@pytest.fixture
def text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("".join(f"{n} and {n} are {2 * n}\n" for n in range(100)))
    return tmp_path


def found(folder, body, base=BASE):
    library = open_library()
    return match_rows(comparison(folder, body, base=base), Prepared(library))


def built(row, seed=0):
    """The module of a row with its weights; 260 ids are those of bytes."""
    run = row.runs[0]
    return make(run.model, run.shape_for(type("task", (), {"vocab_size": 260})), seed=seed)


def size(model, without=()):
    return sum(p.numel() for name, p in model.named_parameters() if not any(word in name for word in without))


@pytest.mark.parametrize(
    "what, without", [("parameters", ()), ("non-embedding-parameters", ("embedding", "positions", "head"))]
)
def test_parameters_agree_within_a_percent_as_built(text, what, without):
    rows = found(text, f"{ARMS}match: {what}").rows
    sizes = [size(built(row), without) for row in rows]
    assert max(abs(n / sizes[0] - 1) for n in sizes) <= 0.01 and len(set(sizes)) > 1
    for row, n in zip(rows, sizes, strict=True):
        assert row.match["value"] == n and row.match["mismatch"] == pytest.approx(n / sizes[0] - 1)
    assert rows[0].runs[0].shape.d_ff is None and rows[0].differs == {}, "the baseline stays as it is"
    assert rows[1].differs["shape.d_ff"] == str(rows[1].match["size"])


def test_an_ffn_of_three_matrices_has_two_thirds_of_the_width(text):
    """Shazeer 2020: 2 d 3072 = 3 d 2048."""
    base = BASE.replace("max_len: 32", "max_len: 32, d_ff: 384")
    rows = found(text, "models: [{ffn: relu}, {ffn: swiglu}]\nmatch: parameters", base).rows
    assert rows[1].runs[0].shape.d_ff == 256 and rows[1].match["mismatch"] == 0


def test_a_query_of_one_key_head_is_paid_back_in_the_ffn(text):
    """Shazeer 2019: 8 heads of 128 at width 1024, FFN 4096 to 5440 of multi-query."""
    base = BASE.replace("d_model: 64, n_heads: 4", "d_model: 1024, n_heads: 8, d_ff: 4096")
    rows = found(text, "models: [{ffn: relu}, {ffn: relu, attention: mqa}]\nmatch: non-embedding-parameters", base).rows
    assert rows[1].match["mismatch"] == pytest.approx(0, abs=1e-3)
    assert rows[1].runs[0].shape.d_ff == pytest.approx(4096 + 896, abs=8), "2 x 7/8 x 1024² over 2 x 1024"


def test_the_width_of_the_model_and_a_number_of_ones_own(text):
    base = BASE.replace("d_model: 64", "d_model: 256")
    rows = found(text, "models: [{ffn: relu}, {ffn: swiglu, attention: mqa}]\nmatch: {what: parameters, by: d_model}",
                 base).rows  # fmt: skip
    sizes = [size(built(row)) for row in rows]
    assert rows[1].runs[0].shape.d_model > 256 and rows[1].match["mismatch"] == pytest.approx(sizes[1] / sizes[0] - 1)
    assert abs(rows[1].match["mismatch"]) < 0.03, "in steps of 8, a width of 256 comes as near as this"
    rows = found(text, f"{ARMS}match: {{what: parameters, to: 2e5}}").rows
    assert all(abs(size(built(row)) / 2e5 - 1) <= 0.01 for row in rows)


def test_flops_agree_by_the_width_or_by_the_steps(text):
    rows = found(text, f"{ARMS}match: flops-per-token").rows
    assert all(abs(row.match["mismatch"]) <= 0.01 for row in rows)
    rows = found(text, "models: [{ffn: none}, {ffn: relu}]\nmatch: training-flops").rows
    attention, ffn, head = 4 * 64 * 64 + 33 * 64, 2 * 64 * 256, 64 * 260
    few = round(100 * (2 * attention + head) / (2 * (attention + ffn) + head))
    assert [row.runs[0].train.steps for row in rows] == [100, few] and abs(rows[1].match["mismatch"]) <= 0.01


def test_tokens_agree_whatever_the_batch(text):
    body = "model: {ffn: relu}\nvary: {train.batch_size: [4, 8, 3]}\nmatch: tokens"
    rows = found(text, body).rows
    assert [row.runs[0].train.steps for row in rows] == [100, 50, 133]
    assert [row.match["mismatch"] for row in rows] == pytest.approx([0, 0, -1 / 400], abs=0.002)


def test_a_row_that_agrees_keeps_its_runs(text):
    plain = comparison(text, "models: [{ffn: relu}, {ffn: gelu}]", base=BASE)
    assert [row.runs for row in found(text, "models: [{ffn: relu}, {ffn: gelu}]\nmatch: parameters").rows] == [
        row.runs for row in plain.rows
    ]


def test_matched_rows_begin_alike_where_their_shapes_agree(text):
    """The same seeds, data order and initial tensors: that is what makes pairs of them."""
    body = "models: [{ffn: relu}, {ffn: swiglu}]\nmatch: parameters\nseeds: 2"
    one, two = found(text, body).rows
    assert [run.seed for run in one.runs] == [run.seed for run in two.runs] == [0, 1]
    mine, theirs = (dict(built(row, seed=1).named_parameters()) for row in (one, two))
    same = [name for name in mine if name in theirs and mine[name].shape == theirs[name].shape]
    assert any("attention" in name for name in same) and any("embedding" in name or "table" in name for name in same)
    assert all(torch.equal(mine[name], theirs[name]) for name in same)
    tasks = [row.runs[1].make_task() for row in (one, two)]
    for task in tasks:
        task.prepare()
    first, second = (task.batch(3, torch.Generator().manual_seed(1)) for task in tasks)
    assert torch.equal(first.target, second.target)


@pytest.mark.parametrize(
    "body, said",
    [
        ("models: [{ffn: relu}, {ffn: none, attention: mqa}]\nmatch: parameters",
         "a.yaml:7:27: row 'ffn=none attention=mqa': d_ff changes nothing in its parameters: its parts have no such "
         "width, or write their own; match by d_model or n_layers"),
        ("models: [{ffn: relu}, {ffn: {name: swiglu, d_ff: 99}}]\nmatch: parameters",
         """a.yaml:7:27: row 'ffn={"name": "swiglu", "d_ff": 99}': d_ff changes nothing in its parameters: its parts """
         "have no such width, or write their own; match by d_model or n_layers"),
        ("models: [{ffn: none, attention: none}, {ffn: relu}]\nmatch: parameters",
         "a.yaml:7:44: row 'ffn=relu' cannot be matched in parameters: d_ff 1 comes nearest, +"),
        ("model: {}\nmatch: {what: parameters, by: n_layers, to: 10}",
         "a.yaml:7:12: row 'default' cannot be matched in parameters: n_layers 1 comes nearest"),
    ],
)  # fmt: skip
def test_rows_that_cannot_agree(text, body, said):
    (line,) = faults(lambda: found(text, body))
    assert line.startswith(said)


@pytest.mark.parametrize(
    "match, said",
    [
        ("paramters", "8:12: match.what is 'paramters'; it should be one of parameters, non-embedding-parameters, "
                      "flops-per-token, training-flops, tokens, seconds; did you mean 'parameters'?"),
        ("{by: d_ff}", "8:12: match needs 'what', one of parameters, "),
        ("{what: parameters, buy: d_ff}", "8:31: match has no option 'buy'; did you mean 'by'?"),
        ("{what: parameters, by: width}",
         "8:35: match.by is 'width'; it should be one of d_ff, d_model, n_layers, steps or null"),
        ("{what: tokens, by: d_ff}", "8:31: tokens cannot be matched by d_ff; match by steps"),
        ("{what: tokens, to: -3}", "8:31: match.to is -3; it should be baseline or a number above 0"),
        ("parameters\nvary: {shape.d_ff: [8, 16]}",
         "9:12: 'shape.d_ff' cannot vary: 'match: parameters' decides it"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_match(tmp_path, match, said):
    (line,) = faults(lambda: comparison(tmp_path, f"model: {{}}\nmatch: {match}"))
    assert line.startswith(f"a.yaml:{said}")


def test_few_models_are_built():
    """A line takes three, a parabola a few more; the answer is that of trying all."""
    for count in (lambda n: 5000 + 384 * n, lambda n: 3000 + 50 * n + 7 * n * n, lambda n: 12 * n**2):
        for target in (50_000, 123_456, 1e6):
            tried = []
            best = search_size(lambda n: tried.append(n) or count(n), target, 256, [1])  # noqa: B023
            assert abs(count(best) - target) == min(abs(count(n) - target) for n in range(1, 3000))
            assert len(tried) == len(set(tried)) <= 10


def test_a_match_reads_back_and_stands_in_the_record(text):
    path = write(text, "comparisons:\n  c:\n" + textwrap.indent(BASE + ARMS + "match: parameters", "    "))
    library = open_library(path)
    read = read_comparison(library, "c")
    assert read.plain()["match"] == {"what": "parameters", "by": "d_ff", "to": "baseline"}
    write_comparison(read, Prepared(library), text / "runs", "a.yaml")
    document = json.loads((text / "runs/c/comparison.json").read_text())
    assert document["match"]["what"] == "parameters"
    assert [abs(row["match"]["mismatch"]) <= 0.01 for row in document["rows"]] == [True] * 4
