"""Designs: which combinations become rows, and what becomes of those that cannot be built."""

import itertools
import json
import textwrap

import pytest
from support.comparisons import comparison
from support.files import faults, write

from zoo import reporting
from zoo.compare.comparison import read_comparison
from zoo.compare.design import Conditions, grid, leave_one_out, one_at_a_time, pairwise
from zoo.compare.prepared import Prepared
from zoo.declare.library import open_library
from zoo.execute.estimate import estimate
from zoo.execute.stages import write_comparison

ANY = Conditions()


def test_the_designs_by_hand():
    assert one_at_a_time([3, 2], ANY) == [(0, 0), (1, 0), (2, 0), (0, 1)]
    assert leave_one_out([2, 2, 1], ANY) == [(1, 1, 0), (0, 1, 0), (1, 0, 0)]
    assert grid([2, 2], ANY) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    with pytest.raises(ValueError, match="two values"):
        leave_one_out([2, 3], ANY)


def pairs(rows):
    """Every pair of values of two axes that stands in a row, counted from the rows themselves."""
    return {pair for row in rows for pair in itertools.combinations(enumerate(row), 2)}


@pytest.mark.parametrize(
    "sizes, most",
    [([2, 2], 4), ([3, 3, 3], 11), ([2] * 7, 10), ([3] * 4, 13), ([5, 4, 3, 2], 24), ([4] * 8, 35), ([3], 3)],
)
def test_pairwise_has_every_pair_in_few_rows(sizes, most):
    """As many rows as published greedy constructions need: 3^4 takes 9 at best, AETG 9 to 11."""
    rows = pairwise(sizes, ANY)
    assert pairs(rows) == pairs(itertools.product(*map(range, sizes)))
    assert len(rows) == len(set(rows)) <= most and rows[0] == (0,) * len(sizes)
    assert pairwise(sizes, ANY) == rows
    for axis, size in enumerate(sizes):
        counts = [sum(row[axis] == value for row in rows) for value in range(size)]
        assert max(counts) - min(counts) <= max(3, len(rows) // 3), (axis, counts)


def test_pairwise_under_conditions_has_every_pair_that_can_be():
    rule = Conditions(without=({0: frozenset({0}), 1: frozenset({1})}, {2: frozenset({2}), 3: frozenset({0, 1})}))
    rows, allowed = pairwise([3, 3, 3, 3], rule), grid([3, 3, 3, 3], rule)
    assert set(rows) <= set(allowed) and pairs(rows) == pairs(allowed)
    assert ((0, 0), (1, 1)) not in pairs(rows)


VARY = "model: {}\nvary: {position: [none, rope, alibi], norm: [layernorm, none], ffn: [gelu, relu]}\n"


@pytest.mark.parametrize(
    "more, rows",
    [
        ("", 12),
        ("design: grid", 12),
        ("design: one-at-a-time", 5),
        ("design: pairwise", 6),
        ("only: [{position: rope}]", 4),
        ("only: [{position: rope, norm: none}, {position: alibi}]", 6),
        ("only: [{position: [rope, alibi]}]\nexcept: [{norm: none, model.ffn: relu}]", 6),
        ("design: one-at-a-time\nexcept: [{position: alibi}]", 4),
    ],
)
def test_how_many_rows_a_design_has(tmp_path, more, rows):
    assert len(comparison(tmp_path, VARY + more).rows) == rows


def test_what_a_row_of_a_design_is(tmp_path):
    found = comparison(tmp_path, VARY.replace(", alibi", "") + "design: leave-one-out")
    assert [row.name for row in found.rows] == ["rope, none, relu", "none, none, relu", "rope, layernorm, relu",
                                                "rope, none, gelu"]  # fmt: skip
    assert found.rows[2].cell == {"position": "rope", "norm": "layernorm", "ffn": "relu"}
    assert found.baseline == "rope, none, relu"
    found = comparison(tmp_path, "models: [gpt2-like, llama-like]\nvary: {ffn: [gelu, relu]}\ndesign: one-at-a-time")
    assert [row.name for row in found.rows] == ["gpt2-like, gelu", "llama-like, gelu", "gpt2-like, relu"]


@pytest.mark.parametrize(
    "more, said",
    [
        ("design: pairwize", "9:9: design is 'pairwize'; it should be one of grid, one-at-a-time, leave-one-out, "
                             "pairwise; did you mean 'pairwise'?"),
        ("design: [grid]", '9:9: design is ["grid"]; it should be one of grid, one-at-a-time, leave-one-out, pairwise'),
        ("design: leave-one-out", "9:9: design 'leave-one-out': an axis has two values here, without and with"),
        ("design: one-at-a-time\nexcept: [{ffn: gelu}]",
         "9:9: design 'one-at-a-time': the row from which the others are one step is left out by a condition"),
        ("only: [{positoin: rope}]", "9:9: 'positoin' does not vary; did you mean 'position'?"),
        ("only: [{head: tied}]", "9:9: 'head' does not vary; what varies is position, norm, ffn"),
        ("except: [{position: rop}]", "9:21: position has no value 'rop' here; did you mean 'rope'?"),
        ("except: [{position: [rope, 3]}]", "9:28: position has no value '3' here; it has none, rope, alibi"),
        ("except: {position: rope}", '9:9: it is {"position": "rope"}; it should be a list of at least one'),
        ("except: [rope]", "9:10: what stands under 'except' is 'rope'; it should be a mapping"),
        ("except: [{position: [none, rope, alibi]}]", "9:1: the conditions leave no row"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_design(tmp_path, more, said):
    place, _, text = said.partition(": ")
    line, column = place.split(":")
    assert faults(lambda: comparison(tmp_path, VARY + more)) == [f"a.yaml:{line}:{int(column) + 4}: {text}"]


def test_rows_have_no_design(tmp_path):
    assert faults(lambda: comparison(tmp_path, "rows: {a: {}}\ndesign: grid\nonly: [{}]")) == [
        "a.yaml:8:5: beside 'rows' there can be no 'design'", "a.yaml:9:5: beside 'rows' there can be no 'only'",
    ]  # fmt: skip


# Refused combinations

MIXERS = "model: {}\nvary: {attention: [mha, lstm], position: [none, alibi]}\n"
WHY = "attention 'lstm': it does not support bias, which position 'alibi' needs"


def test_a_refused_combination_is_a_row_with_its_reason(tmp_path):
    body = "comparisons:\n  c:\n" + textwrap.indent(
        "shape: {d_model: 16, n_heads: 2, n_layers: 2, max_len: 32}\ntask: copy\ntrain: {steps: 3}\n" + MIXERS, "    "
    )
    library = open_library(write(tmp_path, body))
    found = read_comparison(library, "c")
    assert [row.name for row in found.rows] == ["mha, none", "mha, alibi", "lstm, none"]
    (refused,) = found.refused
    assert refused.raw.name == "lstm, alibi" and refused.reason.startswith(WHY)
    jobs = write_comparison(found, Prepared(library), tmp_path / "runs", "a.yaml")
    assert len(jobs) == 3
    last = json.loads((tmp_path / "runs/c/comparison.json").read_text())["rows"][3]
    assert last["refused"] == refused.reason and last["runs"] == []
    assert last["cell"] == {"attention": "lstm", "position": "alibi"}
    assert f"refused: lstm, alibi: {refused.reason}" in str(estimate(found, Prepared(library))).splitlines()
    row = next(row for row in reporting.read(tmp_path / "runs", "c").rows if row.name == "lstm, alibi")
    assert (row.status, row.reason) == ("refused", refused.reason)


@pytest.mark.parametrize(
    "body",
    [
        "model: {attention: lstm}\nvary: {position: [none, alibi]}",
        "model: {}\nvary: {attention: [lstm], position: [none, alibi]}",
        "model: {}\nvary: {attention: [mha, lstm], position: [none, alibi]}\nonly: [{attention: mha, position: none},"
        " {attention: lstm, position: alibi}]",
        "model: {}\nvary: {attention: [mha, lstm], position: [none, alibi]}\nbaseline: 'lstm, alibi'",
        "model: {}\nvary: {attention: [lstm, mha], position: [alibi, none]}",
        "rows: {a: {model: {}}, b: {model: {attention: lstm, position: alibi}}}",
    ],
)
def test_a_value_that_no_row_can_have_and_a_refused_baseline_are_faults(tmp_path, body):
    (said,) = faults(lambda: comparison(tmp_path, body))
    assert WHY in said


def test_the_same_refusal_in_every_row_is_one_fault(tmp_path):
    body = "model: {}\nvary: {attention: [mha, {name: gqa, kv_heads: 3}], ffn: [gelu, relu]}"
    (said,) = faults(lambda: comparison(tmp_path, body))
    assert said.startswith("a.yaml:8:29: attention 'gqa': ")
