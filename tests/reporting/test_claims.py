"""What is claimed of rows: how it is read, and what is made of it, held to scipy's intervals."""

from __future__ import annotations

import json
import math
from collections import Counter

import jsonschema
import numpy as np
import pytest
from markdown_it import MarkdownIt
from rich.console import Console
from scipy import stats
from support.claims import claim
from support.comparisons import comparison
from support.files import faults, write
from support.tables import BPB, folder, markdown_rows, run, shown, table

import zoo
from zoo import reporting
from zoo.claims import FIGURES, KEYS, Claim
from zoo.compare.comparison import read_comparison
from zoo.compare.prepared import Prepared
from zoo.compare.schema import schema
from zoo.declare.library import open_library, own_registry
from zoo.declare.yaml import dump
from zoo.execute.stages import write_comparison
from zoo.reporting.forms.latex import to_latex
from zoo.reporting.judging.claims import _decide, format_signed, judge_claims
from zoo.statistics import interval

TWO = "rows: {a: {model: gpt2-like}, b: {model: llama-like}}\n"
PROBED = """
shape: {d_model: 16, n_heads: 2, n_layers: 2, max_len: 64}
task: {name: language-modeling, tokenizer: byte, length: 16, extrapolate: [2, 4]}
train: {steps: 3}
"""


def judged(tmp_path, runs, *claims, **document):
    """What is found of claims about rows whose runs are given."""
    return judge_claims(table(tmp_path, runs, baseline="b", claims=[each.record() for each in claims], **document))


def scores(*values, metric="bpb", split="test", **parts):
    """A run for each value, on a split that is test or a probe."""
    on_test = [run(seed, 1.0) if split != "test" else run(seed, value) for seed, value in enumerate(values)]
    for (record, _), value in zip(on_test, values, strict=True):
        record["metrics"] = {"dev": {metric: 1.0}, "test": {metric: 1.0}} | {split: {metric: value}}
        record |= parts
    return on_test


GAINS = [0.05, 0.03, 0.04, 0.06, 0.02, 0.04]  # mean 0.04, interval 0.0252 to 0.0548


# What is found


@pytest.mark.parametrize(
    "gains, way, least, most, word",
    [
        (GAINS, "better", None, None, "reproduced"),
        (GAINS, "better", 0.02, None, "reproduced"),
        (GAINS, "better", 0.02, 0.06, "reproduced"),
        (GAINS, "better", 0.03, None, "cannot tell"),
        (GAINS, "better", None, 0.05, "cannot tell"),
        (GAINS, "better", 0.06, None, "not reproduced"),
        (GAINS, "better", None, 0.02, "not reproduced"),
        (GAINS, "worse", None, None, "not reproduced"),
        (GAINS, "same", None, 0.06, "reproduced"),
        (GAINS, "same", None, 0.05, "cannot tell"),
        (GAINS, "same", None, 0.02, "not reproduced"),
        ([-g for g in GAINS], "worse", None, None, "reproduced"),
        ([-g for g in GAINS], "worse", 0.02, 0.06, "reproduced"),
        ([-g for g in GAINS], "worse", 0.03, None, "cannot tell"),
        ([-g for g in GAINS], "worse", 0.06, None, "not reproduced"),
        ([-g for g in GAINS], "better", None, None, "not reproduced"),
        ([-g for g in GAINS], "same", None, 0.06, "reproduced"),
        ([0.1, -0.1, 0.05], "better", None, None, "cannot tell"),
        ([0.1, -0.1, 0.05], "worse", None, None, "cannot tell"),
        ([0.1, -0.1, 0.05], "same", None, 0.01, "cannot tell"),
        ([0.1, -0.1, 0.05], "same", None, 0.4, "reproduced"),
        ([0.0, 0.0, 0.0], "better", None, None, "not reproduced"),
        ([0.0, 0.0, 0.0], "worse", None, None, "not reproduced"),
        ([0.0, 0.0, 0.0], "same", None, 1e-9, "reproduced"),
    ],
)
@pytest.mark.parametrize("better", ["lower", "higher"])
def test_the_word_is_that_of_the_interval(tmp_path, gains, way, least, most, word, better):
    """The region by hand, the interval by scipy."""
    sign = -1 if better == "lower" else 1
    metric = "bpb" if better == "lower" else "accuracy"
    runs = {
        "a": scores(*(1 + sign * gain for gain in gains), metric=metric),
        "b": scores(*[1.0] * len(gains), metric=metric),
    }
    said = claim(way, of=metric, better=better, least=least, most=most)
    [each] = judged(tmp_path, runs, said, metric=BPB | {"name": metric, "better": better})
    assert each.word == word
    if any(gains):
        own = stats.ttest_1samp([sign * gain for gain in gains], 0).confidence_interval(0.95)
        assert (each.low, each.high) == (pytest.approx(own.low), pytest.approx(own.high))
        low, high = sorted((sign * own.low, sign * own.high))
        bounds = {
            "better": (least or 0, most or math.inf),
            "worse": (-(most or math.inf), -(least or 0)),
            "same": (-(most or 0), most or 0),
        }[way]
        inside = bounds[0] < low and high < bounds[1]
        assert word == (
            "reproduced" if inside else "not reproduced" if high <= bounds[0] or bounds[1] <= low else "cannot tell"
        )


@pytest.mark.parametrize(
    "way, sizes, bound", [("better", {}, 0.0), ("worse", {"least": 0.02}, -0.02), ("same", {"most": 0.02}, 0.02)]
)
def test_where_the_truth_is_a_bound_each_word_is_wrong_in_one_of_forty(tmp_path, way, sizes, bound):
    """Of 2,000 experiments on six seeds 50 by expectation, and 22 more or fewer are three sds."""
    given, said = table(tmp_path, {}), claim(way, **sizes)
    noise = 0.01 * np.random.default_rng(0).standard_normal((2000, 6))
    lows, highs = interval(-bound + noise)
    words = Counter(_decide(given, said, low, high, 6)[0] for low, high in zip(lows, highs, strict=True))
    assert 28 <= words["reproduced"] <= 72 and 28 <= words["not reproduced"] <= 72


def test_differences_are_paired_by_seed_whatever_their_order(tmp_path):
    runs = {"a": scores(2.0, 3.0, 5.0), "b": scores(2.1, 3.1, 5.1)[::-1]}
    [each] = judged(tmp_path, runs, claim())
    assert each.word == "reproduced" and list(each.differences.values()) == pytest.approx([-0.1] * 3)


def test_a_word_that_is_not_a_better_one_says_why(tmp_path):
    runs = {"a": scores(*(1 - gain for gain in GAINS)), "b": scores(*[1.0] * 6)}
    said = [claim(least=0.03), claim("same", most=0.05), claim(least=0.06), claim("worse"), claim(least=0.02)]
    whys = [each.why for each in judged(tmp_path, runs, *said)]
    assert whys[0] == "too few seeds, since -0.030 lies in the interval"
    assert whys[1] == "too few seeds, since -0.050 lies in the interval"
    assert whys[2:] == ["the direction is as claimed, the size is not", "", ""]


def test_both_bounds_of_a_claim_may_lie_in_the_interval(tmp_path):
    [each] = judged(tmp_path, {"a": scores(0.9, 1.1, 1.05), "b": scores(1, 1, 1)}, claim("same", most=0.01))
    assert each.why == "too few seeds, since +0.010 and -0.010 lie in the interval"


def test_a_row_is_compared_with_itself_in_longer_windows(tmp_path):
    runs = {"a": scores(1.1, 1.2, 1.15, split="x8"), "b": scores(2.0, 2.2, 2.1, split="x8")}
    for row in runs.values():
        for record, _ in row:
            record["metrics"]["x1"] = {"bpb": 1.5}
    said = [claim(on="x8"), claim(than="a", on="x8", than_on="x1"), claim("worse", "b", "b", on="x8", than_on="x1")]
    said.append(claim(on="x8", than_on="x1"))
    across, own, worse, mixed = judged(tmp_path, runs, *said)
    assert [each.word for each in (across, own, worse, mixed)] == ["reproduced"] * 4
    assert across.mean == pytest.approx(-0.95)
    assert own.mean == mixed.mean == pytest.approx(1.15 - 1.5) and worse.mean == pytest.approx(0.6)
    assert own.claim.words == "a on x8 is better than on x1 in bpb"
    assert mixed.claim.words == "a on x8 is better than b on x1 in bpb"


def test_more_tokens_a_second_are_better(tmp_path):
    def speeds(*values):
        return [run(seed, 1.0, decode={"tokens_per_second": value}) for seed, value in enumerate(values)]

    runs = {"a": speeds(2000.0, 2100.0, 2050.0), "b": speeds(1000.0, 1010.0, 1005.0)}
    said = [claim(of="decode", better="higher", least=900), claim("worse", of="decode", better="higher")]
    better, worse = judged(tmp_path, runs, *said)
    assert (better.word, worse.word) == ("reproduced", "not reproduced")
    low, high = stats.t.interval(0.95, 2, 1045, stats.sem([1000, 1090, 1045]))
    assert (better.low, better.high) == (pytest.approx(low), pytest.approx(high))


def test_times_of_two_machines_are_not_compared(tmp_path):
    def speeds(machine):
        return [run(s, 1.0, decode={"tokens_per_second": 1.0 + s}, machine={"cores": machine}) for s in range(3)]

    both = [claim(of="decode", better="higher"), claim("same", most=0.1)]
    timed, scored = judged(tmp_path, {"a": speeds(2), "b": speeds(4)}, *both)
    assert (timed.word, timed.why) == ("cannot tell", "not all runs were on one machine")
    assert scored.word == "reproduced"


@pytest.mark.parametrize("of", FIGURES)
def test_a_figure_is_read_where_runs_record_it(tmp_path, of):
    part, name = FIGURES[of].read
    runs = {row: [run(s, 1.0, **{part: {name: value + s}}) for s in range(2)] for row, value in (("a", 5), ("b", 2))}
    assert judged(tmp_path, runs, claim(of=of, better=FIGURES[of].better))[0].mean == 3


def test_runs_without_a_score_are_counted_and_named(tmp_path):
    def lost(seed, status, reason=""):
        return run(seed, None, status, reason=reason)

    mine = scores(0.9, 0.91, 0.89) + [lost(3, "diverged"), lost(4, "failed", "killed by 9"), lost(5, "running"), None]
    runs = {"a": mine, "b": scores(*[1.0] * 7)}
    [each] = judged(tmp_path, runs, claim())
    assert each.word == "reproduced" and len(each.differences) == 3 and each.planned == 7
    assert each.text == "reproduced, without 4 of 7 pairs (1 diverged, 1 killed, 2 to come)"
    [each] = judged(tmp_path, {"a": [lost(s, "diverged") for s in range(3)], "b": scores(1, 1, 1)}, claim())
    assert each.text == "cannot tell, without 3 of 3 pairs (diverged)" and each.mean is None


def test_a_probe_without_a_finite_score_is_no_pair(tmp_path):
    runs = {"a": scores(0.9, 0.8, float("nan"), split="x2"), "b": scores(1.0, 1.0, 1.0, split="x2")}
    [each] = judged(tmp_path, runs, claim(on="x2", most=2.0))
    assert each.text.endswith("without 1 of 3 pairs (no bpb on x2)") and len(each.differences) == 2


def test_one_pair_has_no_interval_and_a_row_without_runs_says_so(tmp_path):
    one, none = judged(
        tmp_path, {"a": scores(0.9), "b": scores(1.0), "c": "its mask is no good", "d": []}, claim(), claim(row="c")
    )
    assert (one.text, one.mean, one.low) == ("cannot tell: one pair has no interval", pytest.approx(-0.1), None)
    assert none.text == "cannot tell: c is refused" and none.planned == 0


def test_a_reference_stands_against_every_seed(tmp_path):
    runs = {"a": [run(0, 0.5, train=None)], "b": scores(1.0, 1.1, 1.2)}
    better, worse = judged(tmp_path, runs, claim(), claim("worse", "b", "a"))
    assert better.word == worse.word == "reproduced"
    assert list(better.differences.values()) == pytest.approx([-0.5, -0.6, -0.7])


# What is written


@pytest.fixture
def positions(tmp_path):
    """Two rows, one of which is scored on less of x2; four claims, one of each kind and one about a speed."""
    runs = {"a": scores(0.90, 0.91, 0.89, split="x2"), "b": scores(1.0, 1.02, 0.99, split="x2")}
    runs["a"][2][0]["metrics"]["x2"] = {"bpb": None}
    said = [
        claim(on="x2", source="Press et al. 2022, arXiv:2108.12409"),
        claim("worse", least=0.5, source="a | b <i>"),
        claim("same", most=0.1),
        claim(of="decode", better="higher"),
    ]
    notes = ["The same tokens in windows of 8 (x2)"]
    return table(tmp_path, runs, baseline="b", claims=[each.record() for each in said], notes=notes)


def test_probes_are_columns_after_the_test_score(positions, tmp_path):
    head, _, *rows = markdown_rows(reporting.to_markdown(positions))
    assert head[head.index("test bpb") + 1] == "x2 bpb"
    cells = {row[0]: row[head.index("x2 bpb")] for row in rows[:2]}
    assert cells["a"] == "0.905 ± 0.007 (2 of 3 seeds)" and cells["b"] == "1.003 ± 0.015"
    assert "The same tokens in windows of 8 (x2)." in reporting.to_markdown(positions)
    for form in (reporting.to_plain, reporting.to_markdown, reporting.to_html, to_latex, lambda t: shown(t, 200)):
        assert "x2 bpb" in form(positions) and "The same tokens in windows" in form(positions)
    head, a, _ = reporting.to_csv(positions).splitlines()
    row = dict(zip(head.split(","), a.split(","), strict=True))
    assert (float(row["probe_x2_mean"]), row["probe_x2_n"]) == (pytest.approx(0.905), "2")
    [first, _] = json.loads(reporting.to_json(positions))["rows"]
    assert first["probes"]["x2"] == {"mean": pytest.approx(0.905), "sd": pytest.approx(0.01 / 2**0.5), "n": 2}
    assert [each["probes"] for each in first["runs"]] == [{"x2": {"bpb": 0.9}}, {"x2": {"bpb": 0.91}}, {"x2": {}}]


def test_a_table_without_probes_and_claims_says_nothing_of_them(tmp_path):
    given = table(tmp_path, {"a": scores(1.0, 2.0)})
    for form in (reporting.to_plain, reporting.to_markdown, reporting.to_html, lambda t: shown(t, 200)):
        assert "Claims" not in form(given) and "x2 bpb" not in form(given)
    assert "probe" not in reporting.to_csv(given) and json.loads(reporting.to_json(given))["claims"] == []


def test_every_form_shows_what_was_claimed_and_found(positions):
    for form in (reporting.to_plain, reporting.to_markdown, reporting.to_html, lambda t: shown(t, 200)):
        text = " ".join(form(positions).split())
        assert "2 reproduced, 1 not reproduced, 1 cannot tell." in text
        assert "of 3, 0.15 may be expected to miss it by chance" in text
        for said in ("a is better than b in bpb on x2", "Press et al. 2022", "without 1 of 3 pairs (no bpb on x2)"):
            assert said in text
    assert 'id="part-claims"' in reporting.to_html(
        positions
    ) and "What was claimed, and what came out" in reporting.to_html(positions)
    assert "a \\| b \\<i>" in reporting.to_markdown(positions) and "a | b &lt;i&gt;" in reporting.to_html(positions)
    assert "Claim: a is better than b in bpb on x2 (Press et al. 2022" in to_latex(positions)


def test_json_holds_every_figure(positions):
    first, second, third, fourth = json.loads(reporting.to_json(positions))["claims"]
    own = stats.ttest_1samp([-0.1, -0.11], 0).confidence_interval(0.95)
    assert (first["low"], first["high"]) == (pytest.approx(own.low), pytest.approx(own.high))
    assert {key: first[key] for key in ("row", "is", "than", "on", "of", "better", "n", "planned", "missing")} == {
        "row": "a", "is": "better", "than": "b", "on": "x2", "of": "bpb", "better": "lower", "n": 2, "planned": 3,
        "missing": {"no bpb on x2": 1},
    }  # fmt: skip
    assert first["differences"] == {"0": pytest.approx(-0.1), "1": pytest.approx(-0.11)}
    assert [each["word"] for each in (first, second, third, fourth)] == [
        "reproduced", "not reproduced", "reproduced", "cannot tell",
    ]  # fmt: skip
    assert (fourth["mean"], fourth["low"], fourth["missing"]) == (None, None, {"no decoding speed": 3})


def test_what_was_written_by_an_earlier_version_is_read(tmp_path):
    folder(tmp_path, {"a": scores(1.0)})
    assert reporting.read(tmp_path, "sweep").claims == () == reporting.read(tmp_path, "sweep").notes


@pytest.mark.parametrize("spoiled", [{"row": "c"}, {"is": "bigger"}, {"least": "much"}])
def test_a_record_that_was_spoiled_by_hand_is_one_fault(tmp_path, spoiled):
    folder(tmp_path, {"a": scores(1.0), "b": scores(2.0)}, claims=[claim().record() | spoiled])
    with pytest.raises(zoo.SpecError, match="comparison.json cannot be read"):
        reporting.read(tmp_path, "sweep")


def test_all_claims_on_one_page(positions, tmp_path):
    same = {"a": [None] * 3, "b": [None] * 3}  # the runs of the first comparison
    folder(tmp_path, same, name="silent")
    folder(tmp_path, same, name="an other", claims=[claim("same", most=0.9).record()])
    console = Console(file=(tmp_path / "shown").open("w+"))
    assert reporting.main(tmp_path, [], "claims", console) == 0
    text = (tmp_path / "claims.md").read_text()
    console.file.seek(0)
    assert console.file.read() == text
    assert text.splitlines()[0] == "# Claims: 3 reproduced, 1 not reproduced, 1 cannot tell"
    head, _, *rows = markdown_rows(text)
    assert head == ["claim", "source", "difference [95 %]", "seeds", "found", "comparison"] and len(rows) == 5
    links = {
        t.attrs["href"]
        for line in MarkdownIt().enable("table").parse(text)
        for t in line.children or ()
        if t.type == "link_open"
    }
    assert links == {"sweep/report.md", "an%20other/report.md"}
    assert "of 4, 0.2 may" in text
    reporting.main(tmp_path, ["sweep"], "claims", console)
    assert "an other" not in (tmp_path / "claims.md").read_text()
    with pytest.raises(zoo.SpecError, match="there are no claims in silent"):
        reporting.main(tmp_path, ["silent"], "claims", console)


def test_large_numbers_have_no_decimals():
    assert [format_signed(value) for value in (0.03, -0.0004, 99.5, 1234.6, -52_428_800.0)] == [
        "+0.030", "-0.0004", "+99.500", "+1,235", "-52,428,800",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "said, words",
    [
        (claim(), "a is better than b in bpb on test"),
        (claim("worse", least=0.02), "a is worse than b in bpb on test by more than 0.02 bits per byte"),
        (claim(most=0.5), "a is better than b in bpb on test by less than 0.5 bits per byte"),
        (claim(least=0.02, most=0.5, on="x2"), "a is better than b in bpb on x2 by 0.02 to 0.5 bits per byte"),
        (claim("same", most=0.1), "a is as good as b in bpb on test, to within 0.1 bits per byte"),
        (
            claim("same", on="x2", than_on="x1", most=1.0),
            "a on x2 is as good as b on x1 in bpb, to within 1 bits per byte",
        ),
        (claim(of="decode"), "a is better than b in decoding speed"),
    ],
)
def test_a_claim_in_words(said, words):
    assert said.words == words


# How it is read


def read(tmp_path, claims, base=PROBED, body=TWO):
    return comparison(tmp_path, f"{body}claims: {claims}\n", base=base).claims


def test_what_is_not_written_is_filled_in(tmp_path):
    assert read(tmp_path, "[{row: b, is: better}]") == (
        Claim("b", "better", "a", "bpb", "lower", "bits per byte", "test", "test"),
    )
    [probe] = read(tmp_path, "[{row: a, is: worse, than: a, on: x4, than_on: x1, of: loss, least: 0.1, source: me}]")
    assert probe == Claim("a", "worse", "a", "loss", "lower", "nats per token", "x4", "x1", 0.1, None, "me")
    [speed] = read(tmp_path, "[{row: b, is: same, of: decode, most: 5}]")
    assert speed == Claim("b", "same", "a", "decode", "higher", "tokens/s", None, None, None, 5)
    [copied] = comparison(tmp_path, TWO + "baseline: b\nclaims: [{row: a, is: better}]").claims
    assert (copied.than, copied.of, copied.better) == ("b", "accuracy", "higher")


@pytest.mark.parametrize(
    "written, said",
    [
        ("{row: a, is: better, than: c}", "claim.than is 'c'; it should be one of a, b"),
        ("{row: gpt, is: better}", "claim.row is 'gpt'; it should be one of a, b"),
        ("{row: b, is: beter}", "claim.is is 'beter'; it should be one of better, worse, same; did you mean 'better'?"),
        ("{row: b, is: true}", "claim.is is true; it should be one of better, worse, same"),
        ("{row: b}", "claim needs 'is', one of better, worse, same"),
        ("{is: better}", "claim needs 'row', one of a, b"),
        ("{row: b, is: better, surce: x}", "claim has no option 'surce'; did you mean 'source'?"),
        ("{row: b, is: better, on: x8}", "on is 'x8'; it should be one of test, x1, x2, x4"),
        ("{row: b, is: better, on: dev}", "on is 'dev'; it should be one of test, x1, x2, x4"),
        ("{row: b, is: better, than_on: x3}", "than_on is 'x3'; it should be one of test, x1, x2, x4"),
        ("{row: b, is: better, of: los}", "of is 'los'; it should be one of bpb, loss, perplexity, decode,"),
        ("{row: b, is: better, of: decode, on: x1}", "decode is of a whole run, and of no split; drop 'on'"),
        ("{row: a, is: better}", "row 'a' is compared with itself; write another 'than', or another 'than_on'"),
        ("{row: b, is: better, than: b, on: x2, than_on: x2}", "row 'b' is compared with itself"),
        ("{row: b, is: better, than: b, of: decode}", "row 'b' is compared with itself"),
        ("{row: b, is: same}", "a claim of 'same' needs 'most'"),
        ("{row: b, is: same, most: null}", "a claim of 'same' needs 'most'"),
        ("{row: b, is: same, least: 1, most: 2}", "what is the same differs by no least; write 'most'"),
        ("{row: b, is: better, least: 0.2, most: 0.1}", "least is 0.2 and most 0.1; least should be below most"),
        ("{row: b, is: better, least: 0.2, most: 0.2}", "least is 0.2 and most 0.2; least should be below most"),
        ("{row: b, is: better, least: true}", "least is true; it should be a number above 0, in the unit"),
        ("{row: b, is: better, least: .nan}", "least is .nan; it should be a number above 0"),
        ("{row: b, is: better, most: .inf}", "most is .inf; it should be a number above 0"),
        ("{row: b, is: better, most: much}", "most is 'much'; it should be a number above 0"),
        ("{row: b, is: better, least: -0.1}", "least is -0.1; it should be a number above 0"),
        ("{row: b, is: better, source: 3}", "source is 3; it should be text"),
        ("{row: b, is: better, source: null}", "source is null; it should be text"),
        ("better", "claim is 'better'; it should be a mapping"),
    ],
)
def test_what_cannot_be_claimed_is_said(tmp_path, written, said):
    [text] = faults(lambda: read(tmp_path, f"[{written}]"))
    assert said in text and "zoo.yaml:" in text or ".yaml:" in text


def test_all_faults_come_at_once_each_where_it_stands(tmp_path):
    body = """rows: {a: {model: gpt2-like}, b: {model: lama-like}}
claims:
  - {row: c, is: bettr, of: sped}
  - {row: b, is: better, leest: 1}
seeds: 0
"""
    found = faults(lambda: comparison(tmp_path, body, base=PROBED))
    for said in ("lama-like", "row is 'c'", "is is 'bettr'", "of is 'sped'", "no option 'leest'", "seeds is 0"):
        assert any(said in each for each in found), said


@pytest.mark.parametrize("written", ["{}", "[]", "{row: b, is: better}", "null"])
def test_claims_are_a_list(tmp_path, written):
    [text] = faults(lambda: read(tmp_path, written))
    assert "should be a list of at least one" in text


def test_a_row_on_another_task_must_have_the_split_and_the_metric(tmp_path):
    body = """rows:
  a: {model: gpt2-like}
  b: {model: gpt2-like, task: {name: language-modeling, tokenizer: byte, length: 16}}
  m: {model: bert-like, task: {name: masked-language-modeling, tokenizer: byte}}
"""
    [text] = faults(lambda: read(tmp_path, "[{row: a, is: better, than: b, on: x2}]", body=body.rpartition("  m:")[0]))
    assert "row 'b' has no x2; say with than_on where it is scored" in text
    [claimed] = read(
        tmp_path, "[{row: a, is: better, than: b, on: x2, than_on: test}]", body=body.rpartition("  m:")[0]
    )
    assert (claimed.on, claimed.than_on) == ("x2", "test")
    loss = PROBED.replace("tokenizer: byte", "tokenizer: char")
    texts = faults(lambda: read(tmp_path, "[{row: a, is: better, than: m, of: accuracy}]", base=loss, body=body))
    assert any("of is 'accuracy'; it should be one of loss, perplexity, decode" in text for text in texts)
    [text] = faults(lambda: read(tmp_path, "[{row: a, is: better, than: m, of: loss}]", base=loss, body=body))
    assert "'a' and 'm' are scored on different tasks or data, so no loss tells them apart" in text
    [speed] = read(tmp_path, "[{row: a, is: better, than: m, of: speed}]", base=loss, body=body)
    assert speed.better == "higher"


def test_a_row_that_is_refused_can_be_claimed_about(tmp_path):
    body = "model: {}\nvary: {attention: [mha, lstm], position: [none, alibi]}\n"
    [claimed] = comparison(tmp_path, body + 'claims: [{row: "lstm, alibi", is: better}]').claims
    assert (claimed.row, claimed.than) == ("lstm, alibi", "mha, none")


CLAIMS = """[{row: b, is: better, on: x4, least: 0.02, most: 0.05, source: 'Press et al. 2022'},
  {row: a, is: worse, on: x4, than_on: x1}, {row: b, is: same, of: decode, most: 10}]"""


def test_what_config_prints_reads_back(tmp_path):
    body = f"{TWO}claims: {CLAIMS}\n"
    first = comparison(tmp_path, body, base=PROBED)
    path = write(tmp_path, dump({"comparisons": {"c": first.plain()}}), "again.yaml")
    again = read_comparison(open_library(path), "c")
    assert again.claims == first.claims and again.plain() == first.plain()
    assert len(first.claims) == 3 and set(first.plain()["claims"][0]) == set(KEYS)


def test_claims_change_no_run_and_reach_the_record(tmp_path):
    path = write(tmp_path, f"comparisons:\n  c:\n    model: gpt2-like\n    vary: {{position: [none, rope]}}\n"
                           f"{''.join(f'    {line}' for line in PROBED.strip().splitlines(True))}\n")  # fmt: skip
    claimed = path.with_name("claimed.yaml")
    claimed.write_text(path.read_text() + "    claims: [{row: rope, is: better, on: x4, source: me}]\n")
    documents = []
    for file in (path, claimed):
        library = open_library(file)
        write_comparison(read_comparison(library, "c"), Prepared(library), tmp_path / "runs", str(file))
        documents.append(json.loads((tmp_path / "runs" / "c" / "comparison.json").read_text()))
    assert [row["runs"] for row in documents[0]["rows"]] == [row["runs"] for row in documents[1]["rows"]]
    assert documents[0]["claims"] == []
    assert documents[1]["claims"] == [
        {"row": "rope", "is": "better", "than": "none", "on": "x4", "than_on": "x4", "of": "bpb", "source": "me",
         "better": "lower", "unit": "bits per byte"}
    ]  # fmt: skip
    assert documents[1]["notes"] == [
        "The same tokens of test, the last 8 of each window, are scored in windows of 16 (x1), 32 (x2) and 64 (x4) tokens; "
        "16 were trained on"
    ]
    assert reporting.read(tmp_path / "runs", "c").claims == read_comparison(open_library(claimed), "c").claims


def test_the_schema_knows_claims():
    validator = jsonschema.Draft202012Validator(schema(own_registry()))

    def fine(written):
        base = {"model": {}, "task": "copy", "train": {"steps": 3}}
        return validator.is_valid({"comparisons": {"c": base | {"claims": written}}})

    whole = {"row": "b", "is": "better", "than": "a", "on": "x4", "than_on": "x1", "of": "bpb", "least": 1, "most": 2.5}
    assert fine([whole | {"source": "me"}]) and fine([{"row": "b", "is": "same", "most": 1}])
    for wrong in ([], {}, [{"row": "b"}], [{"is": "same"}], [whole | {"is": "bigger"}], [whole | {"least": 0}],
                  [whole | {"least": True}], [whole | {"than": 3}], [whole | {"least": "much"}]):  # fmt: skip
        assert not fine(wrong), wrong
