"""Verdicts, effects and fronts: from folders to words, each figure against scipy or a count by hand."""

import csv
import io
import itertools
import json
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats
from support.files import write
from support.tables import BPB, markdown_rows, run, shown, table

import zoo
from zoo import reporting
from zoo.compare.comparison import read_comparison
from zoo.declare.library import open_library
from zoo.reporting.judging.effects import judge_effects
from zoo.reporting.judging.pareto import find_best
from zoo.reporting.judging.verdict import describe_rows, findings, rule

BASE = [1.90, 1.98, 1.86, 2.01, 1.93, 1.95, 1.88, 1.99]
NOISE = [0.001, -0.002, 0.002, 0.0, -0.001, 0.003, -0.003, 0.001]
"""Seeds differ by far more than an arm from its baseline: unpaired, nothing could be told here."""


def arm(shift, noise=NOISE, base=BASE):
    return [run(seed, score + shift + e) for seed, (score, e) in enumerate(zip(base, noise))]


def verdicts_of(given):
    return {name: finding.phrase for name, finding in findings(given).items()}


def test_every_row_has_its_words(tmp_path):
    rows = {"same": arm(0.0), "worse": arm(0.03), "base": arm(0, [0] * 8), "better": arm(-0.03)}
    rows["noisy"] = arm(0.03, [40 * e for e in NOISE])
    given = table(tmp_path, rows, baseline="base")
    found = findings(given)
    assert list(found) == ["better", "same", "worse", "noisy"]  # the best first
    words = verdicts_of(given)
    assert (words["better"], words["worse"]) == ("better", "worse")
    assert words["same"] == "no difference larger than 0.002"  # the interval ends at .00185, and is rounded up
    assert words["noisy"] == f"cannot tell: run {found['noisy'].verdict.more} more seeds"
    theirs = stats.ttest_rel([r["metrics"]["test"]["bpb"] for r, _ in rows["better"]], BASE)
    bounds = theirs.confidence_interval(0.95)
    verdict = found["better"].verdict
    assert (verdict.low, verdict.high) == (pytest.approx(bounds.low), pytest.approx(bounds.high))
    assert (verdict.n, verdict.p, verdict.p_holm) == (8, 2 / 256, 4 * 2 / 256)


def test_a_metric_may_be_better_when_higher(tmp_path):
    given = table(
        tmp_path, {"base": arm(0, [0] * 8), "more": arm(0.03), "less": arm(-0.03)},
        baseline="base", metric=BPB | {"better": "higher"},
    )  # fmt: skip
    assert verdicts_of(given) == {"more": "better", "less": "worse"}
    assert findings(given)["more"].verdict.improvement == 1.0
    assert describe_rows(given)[0].startswith(
        "more: better than base by 0.030 bpb (95 % interval +0.028 to +0.032, p = "
    )


def test_sentences_stand_above_the_table_the_best_first(tmp_path):
    rows = {"base": arm(0, [0] * 8), "worse": arm(0.03), "better": arm(-0.03), "same": arm(0.0)}
    given = table(tmp_path, rows, baseline="base")
    expected = [
        "better: better than base by 0.030 bpb (95 % interval -0.032 to -0.028, p = 0.023).",
        "same: no difference larger than 0.002 (difference +0.0001 bpb, 95 % interval -0.002 to +0.002, p = 1).",
        "worse: worse than base by 0.030 bpb (95 % interval +0.028 to +0.032, p = 0.023).",
    ]
    assert describe_rows(given) == expected
    for text in (reporting.to_plain(given), reporting.to_markdown(given), shown(given, 200)):
        lines = [text.index(sentence[:30]) for sentence in expected]
        assert lines == sorted(lines) and lines[-1] < text.index("variant")


def test_the_correction_is_over_arms_and_a_reference_is_none(tmp_path):
    rows = {
        "base": arm(0, [0] * 8),
        "a": arm(-0.03),
        "b": arm(-0.02),
        "ref": [run(0, 1.0, train=None)],
        "c": [None] * 8,
    }
    given = table(tmp_path, rows, baseline="base")
    assert rule(given).arms == 2 and rule(given).fewest == 7
    assert findings(given)["a"].verdict.p_holm == 2 * 2 / 256
    assert "after Holm's correction over 2 rows" in reporting.to_plain(given)


@pytest.mark.parametrize(
    "score, phrase, sentence",
    [
        (1.0, "better than every seed", "better than every seed of base, by 0.938 bpb on average."),
        (3.0, "worse than every seed", "worse than every seed of base, by 1.062 bpb on average."),
        (1.93, "better than 4.5 of 8 seeds", "better than 4.5 of 8 seeds of base, better by 0.008 bpb on average."),
    ],
)
def test_a_reference_is_held_against_every_seed(tmp_path, score, phrase, sentence):
    """Four of the baseline's seeds are above 1.93, one is equal."""
    given = table(tmp_path, {"base": arm(0, [0] * 8), "ref": [run(0, score, train=None)]}, baseline="base")
    assert verdicts_of(given) == {"ref": phrase} and findings(given)["ref"].verdict is None
    assert describe_rows(given) == [f"ref, a reference: {sentence}"]
    row = next(row for row in json.loads(reporting.to_json(given))["rows"] if row["name"] == "ref")
    assert row["verdict"]["word"] is None and "p" not in row["verdict"]


def test_a_baseline_may_be_a_reference(tmp_path):
    given = table(tmp_path, {"a": arm(0, [0] * 8), "ref": [run(0, 1.5, train=None)]}, baseline="ref")
    finding = findings(given)["a"]
    assert (finding.phrase, finding.verdict.n, finding.planned) == ("worse", 8, 8)
    assert finding.verdict.sd == pytest.approx(stats.tstd(BASE))  # a fixed number has no spread


def ended(runs, how):
    """The runs, some of them with another end: seed to status and reason."""
    return [run(s, None, *how[s][:1], reason=how[s][1]) if s in how else r for s, r in enumerate(runs)]


def test_a_pair_without_a_score_is_lost_and_said_to_be(tmp_path):
    rows = {
        "base": ended(arm(0, [0] * 8), {0: ("diverged", "loss is NaN")}),
        "arm": ended(
            arm(-0.03), {0: ("diverged", "loss is NaN"), 3: ("failed", "killed by SIGKILL"), 5: ("running", None)}
        ),
    }
    given = table(tmp_path, rows, baseline="base")
    finding = findings(given)["arm"]
    assert (finding.planned, finding.lost, finding.verdict.n) == (8, 2, 5)  # seed 5 may still come
    [line] = describe_rows(given)
    assert line.startswith("arm: cannot tell: run 1 more seed (")
    assert line.endswith(" 2 of 8 pairs are lost to runs without a finite score; this is on the survivors only.")


def test_a_score_that_is_no_number_never_enters(tmp_path):
    for score in (float("nan"), float("inf"), None):
        given = table(tmp_path, {"base": arm(0, [0] * 8), "arm": [*arm(-0.03)[:7], run(7, score)]}, baseline="base")
        finding = findings(given)["arm"]
        assert (finding.verdict.n, finding.lost) == (7, 1) and finding.verdict.mean == pytest.approx(-0.03)


def test_every_end_is_an_outcome_with_a_rate(tmp_path):
    ends = {
        0: ("failed", "OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"),
        1: ("failed", "RuntimeError: DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
        2: ("failed", "killed by SIGKILL; the system may have run out of memory"),
        3: ("failed", "KeyError: 'x'"),
        4: ("diverged", "loss is NaN"),
        5: ("diverged", "loss is NaN"),
    }
    rows = {
        "base": arm(0, [0] * 8),
        "arm": ended(arm(0), ends),
        "gone": ended(arm(0), dict.fromkeys(range(8), ends[4])),
    }
    given = table(tmp_path, rows, baseline="base")
    row = next(row for row in given.rows if row.name == "arm")
    assert row.status == "2/8 done, 2/8 out of memory, 1/8 killed, 1/8 failed, 2/8 diverged"
    entry = next(row for row in json.loads(reporting.to_json(given))["rows"] if row["name"] == "arm")
    assert entry["outcomes"] == {"out of memory": 2, "killed": 1, "failed": 1, "diverged": 2, "done": 2}
    assert "gone: no verdict: diverged." in describe_rows(given)
    assert "8/8 diverged" in reporting.to_plain(given) and "8/8 done" in reporting.to_plain(given)


def test_arms_without_a_shared_seed_have_no_verdict(tmp_path):
    rows = {"base": arm(0, [0] * 8)[:4], "arm": ended(arm(0), dict.fromkeys(range(4), ("diverged", "NaN")))}
    assert describe_rows(table(tmp_path, rows, baseline="base")) == [
        "arm: no verdict: no seed has a score on both sides."
    ]


def test_the_margin_is_a_share_of_the_baseline_or_what_the_comparison_says(tmp_path):
    rows = {"base": arm(0, [0] * 8), "same": arm(0.0)}
    given = table(tmp_path, rows, baseline="base")
    assert rule(given).margin == pytest.approx(0.01 * np.mean(BASE)) and not rule(given).chosen
    given = table(tmp_path, rows, baseline="base", margin=0.001)
    assert verdicts_of(given)["same"].startswith("cannot tell") and "within 0.001 bpb." in reporting.to_plain(given)
    assert json.loads(reporting.to_json(given))["rule"] == {
        "test": "sign-flip", "margin": 0.001, "chosen": True, "arms": 1, "fewest": 6,
    }  # fmt: skip


def test_the_test_may_be_students(tmp_path):
    rows = {"base": arm(0, [0] * 8)[:3], "arm": arm(-0.03)[:3]}
    exact = table(tmp_path, rows, baseline="base")
    assert verdicts_of(exact) == {"arm": "cannot tell: run 3 more seeds"} and "exact test on 3" in reporting.to_plain(
        exact
    )
    student = table(tmp_path, rows, baseline="base", test="paired-t")
    assert verdicts_of(student) == {"arm": "better"}
    theirs = stats.ttest_1samp([-0.029, -0.032, -0.028], 0).pvalue
    assert findings(student)["arm"].verdict.p == pytest.approx(theirs)
    assert "p is that of a paired t-test" in reporting.to_plain(student) and "exact" not in reporting.to_plain(student)


def test_the_seeds_that_an_exact_test_takes_grow_with_the_rows(tmp_path):
    rows = {"base": arm(0, [0] * 8)[:7]} | {name: arm(-0.03)[:7] for name in "abcde"}
    given = table(tmp_path, rows, baseline="base")
    assert set(verdicts_of(given).values()) == {"cannot tell: run 1 more seed"}
    line = "An exact test on 7 paired seeds cannot reach p < 0.05 over 5 rows (its smallest p is 0.0781); it takes 8."
    assert line in reporting.to_plain(given)
    assert findings(given)["a"].verdict.p_holm == 5 * 2 / 2**7


def test_json_and_csv_have_all_figures(tmp_path):
    rows = {"base": arm(0, [0] * 8), "arm": arm(-0.03), "lost": ended(arm(0.0), {0: ("diverged", "NaN")})}
    given = table(tmp_path, rows, baseline="base")
    verdict = findings(given)["arm"].verdict
    found = {row["name"]: row["verdict"] for row in json.loads(reporting.to_json(given))["rows"]}
    assert found["base"] is None
    assert found["arm"] == {
        "word": "better", "mean": verdict.mean, "n": 8, "sd": verdict.sd, "low": verdict.low, "high": verdict.high,
        "p": verdict.p, "p_holm": verdict.p_holm, "improvement": 1.0, "detectable": verdict.detectable, "more": None,
        "bound": verdict.bound, "phrase": "better", "pairs": 8, "planned": 8, "lost": 0, "wins": None,
    }  # fmt: skip
    lines = {line["variant"]: line for line in csv.DictReader(io.StringIO(reporting.to_csv(given)))}
    assert float(lines["arm"]["difference_low"]) == verdict.low and float(lines["arm"]["p_holm"]) == verdict.p_holm
    assert (lines["arm"]["verdict"], lines["lost"]["pairs_lost"], lines["base"]["p"]) == ("better", "1", "")


def grid(tmp_path, axes, score, seeds=8, base=None, without=(), **document):
    """A table of every combination of values, `score` being a function of cell and seed; None = diverged."""
    rows, cells = {}, {}
    for values in itertools.product(*axes.values()):
        cell = dict(zip(axes, values))
        name = ", ".join(values)
        if name not in without:
            scores = [score(cell, seed) for seed in range(seeds)]
            rows[name] = [run(s, x) if x is not None else run(s, None, "diverged") for s, x in enumerate(scores)]
            cells[name] = cell
    return table(tmp_path, rows, cells=cells, baseline=base or next(iter(rows)), **document)


AXES = {"position": ("none", "rope", "alibi"), "norm": ("ln", "rms"), "ffn": ("relu", "glu")}
STEPS = {"none": 0.0, "rope": -0.05, "alibi": -0.02, "ln": 0.0, "rms": 0.0, "relu": 0.0, "glu": -0.03}


def additive(cell, seed, noise=0.001):
    """Each value adds its own; alibi and glu have something on top, and noise is the cell's own at every seed."""
    both = 0.04 if (cell.get("position"), cell.get("ffn")) == ("alibi", "glu") else 0.0
    own = np.random.default_rng([seed, *"".join(cell.values()).encode()]).standard_normal()
    return BASE[seed] + sum(STEPS[value] for value in cell.values()) + both + noise * own


def named(found):
    return {effect.name: effect for effect in found}


def test_a_slot_is_averaged_over_the_others(tmp_path):
    """Against least squares over all runs, and an interval over seeds by scipy."""
    given = grid(tmp_path, AXES, additive)
    main = named(judge_effects(given).main)
    assert set(main) == {"position: rope", "position: alibi", "norm: rms", "ffn: glu"}
    alibi, glu = main["position: alibi"], main["ffn: glu"]
    assert (alibi.contrast.settings, alibi.verdict.n) == (4, 8)  # a seed is one observation, however many runs it has
    scores = {(row.name, run.seed): run.test["bpb"] for row in given.rows for run in row.runs}
    by_seed = [
        np.mean([scores[f"alibi, {rest}", s] - scores[f"none, {rest}", s] for rest in ("ln, relu", "ln, glu", "rms, relu", "rms, glu")])
        for s in range(8)
    ]  # fmt: skip
    bounds = stats.ttest_1samp(by_seed, 0).confidence_interval(0.95)
    assert (alibi.verdict.low, alibi.verdict.high) == (pytest.approx(bounds.low), pytest.approx(bounds.high))
    means = {row.name: row.test.mean for row in given.rows}
    design = [[1, "rope" in n, "alibi" in n, "rms" in n, "glu" in n] for n in means]
    fitted = np.linalg.lstsq(np.array(design, float), np.array(list(means.values())), rcond=None)[0]
    assert [
        main[n].verdict.mean for n in ("position: rope", "position: alibi", "norm: rms", "ffn: glu")
    ] == pytest.approx(fitted[1:])
    assert (glu.phrase, alibi.phrase, main["norm: rms"].phrase[:13]) == (
        "better",
        "no difference larger than 0.001",
        "no difference",
    )


def test_two_slots_together(tmp_path):
    given = grid(tmp_path, AXES, additive)
    both = named(judge_effects(given).interactions)
    assert len(both) == 2 * 1 + 2 * 1 + 1
    odd = both["position: alibi with ffn: glu"]
    assert odd.verdict.mean == pytest.approx(0.04, abs=0.002) and odd.phrase == "worse together"
    means = {row.name: row.test.mean for row in given.rows}
    by_hand = np.mean(
        [
            means[f"alibi, {n}, glu"]
            - means[f"alibi, {n}, relu"]
            - means[f"none, {n}, glu"]
            + means[f"none, {n}, relu"]
            for n in ("ln", "rms")
        ]
    )
    assert odd.verdict.mean == pytest.approx(by_hand) and odd.contrast.settings == 2
    assert all(
        effect.phrase.startswith("no interaction larger than") for name, effect in both.items() if effect is not odd
    )


def test_a_setting_that_never_ends_well_is_left_out_and_a_seed_that_fails_is_lost(tmp_path):
    def score(cell, seed):
        gone = (cell["norm"], cell["ffn"]) == ("rms", "glu") and cell["position"] == "rope"
        return (
            None
            if gone or (cell["position"] == "rope" and cell["ffn"] == "relu" and seed == 3)
            else additive(cell, seed)
        )

    main = named(judge_effects(grid(tmp_path, AXES, score)).main)
    rope = main["position: rope"]
    assert (rope.contrast.settings, rope.verdict.n, rope.contrast.lost) == (3, 7, 1)
    assert rope.verdict.mean == pytest.approx(-0.05, abs=0.002)
    assert (main["position: alibi"].contrast.settings, main["position: alibi"].verdict.n) == (4, 8)


def test_half_of_a_grid_will_do_if_it_is_balanced(tmp_path):
    """Four of eight combinations of three slots of two values: every two values meet once."""
    axes = {"position": ("none", "rope"), "norm": ("ln", "rms"), "ffn": ("relu", "glu")}
    names = [", ".join(values) for values in itertools.product(*axes.values())]
    half = {"none, ln, relu", "none, rms, glu", "rope, ln, glu", "rope, rms, relu"}
    given = grid(tmp_path, axes, additive, without=set(names) - half)
    main = named(judge_effects(given).main)
    assert {name: effect.contrast.settings for name, effect in main.items()} == {
        "position: rope": 2,
        "norm: rms": 2,
        "ffn: glu": 2,
    }
    assert [main[n].verdict.mean for n in ("position: rope", "norm: rms", "ffn: glu")] == pytest.approx(
        [-0.05, 0, -0.03], abs=0.002
    )
    assert judge_effects(given).interactions == ()

    def score(cell, seed):
        return additive(cell, seed) if ", ".join(cell.values()) in half else None

    more = grid(tmp_path, axes, score, without=set(names) - half - {"rope, rms, glu"}, base="none, ln, relu")
    assert named(judge_effects(more).main) == main  # a row that never ended well tips no balance
    crooked = grid(
        tmp_path, axes, additive, without={"rope, rms, glu", "none, rms, glu", "rope, ln, glu", "rope, rms, relu"}
    )
    assert judge_effects(crooked).main == ()
    assert judge_effects(crooked).why_not == (
        "No slot is averaged over others: none changes alone at two settings with shared seeds."
    )
    assert judge_effects(crooked).why_not in reporting.to_plain(crooked)


def test_two_slots_that_change_together_are_not_told_apart(tmp_path):
    """Two rows on either side of both, but never one slot without the other."""
    axes = {"position": ("none", "rope"), "norm": ("ln", "rms"), "ffn": ("relu", "glu")}
    names = [", ".join(values) for values in itertools.product(*axes.values())]
    tied = {name for name in names if ("none" in name) == ("ln" in name)}
    found = judge_effects(grid(tmp_path, axes, additive, without=set(names) - tied))
    assert list(named(found.main)) == ["ffn: glu"]
    assert found.why_not.endswith("position: rope, norm: rms.")


@pytest.mark.parametrize(
    "axes, base, why",
    [
        ({"position": ("none", "rope")}, None, "only position varies, so the rows are its effects"),
        ({"position": ("none", "rope"), "norm": ("ln",)}, None, "only position varies, so the rows are its effects"),
        ({"position": ("none", "rope"), "norm": ("ln", "rms")}, "x", "the baseline x is not one of the settings"),
    ],
)
def test_why_no_slot_is_averaged(tmp_path, axes, base, why):
    assert (
        judge_effects(grid(tmp_path, axes, additive, base=base)).why_not == f"No slot is averaged over others: {why}."
    )


def test_rows_that_are_written_out_have_no_axes(tmp_path):
    """So have the records of earlier versions."""
    given = table(tmp_path, {"a": arm(0), "b": arm(0.01)}, baseline="a")
    assert judge_effects(given).why_not == "No slot is averaged over others: the rows are not made by 'vary'."
    assert "averaged" not in reporting.to_plain(given)


def test_effects_stand_under_the_table_in_every_form(tmp_path):
    given = grid(tmp_path, AXES, additive)
    text = reporting.to_markdown(given)
    small = text[text.index("## Each slot, averaged over the others") : text.index("## Two slots together")]
    head, _, *rows = markdown_rows(small)
    assert head == ["effect of", "against", "difference [95 %]", "p", "verdict", "settings", "seeds"]
    assert [row[0] for row in rows] == [effect.name for effect in judge_effects(given).main]
    assert rows[0][1] == "none" and rows[0][4] == "better"
    assert "position: alibi with ffn: glu" in reporting.to_plain(given)
    for width in (80, 120, 200):
        lines = shown(given, width).splitlines()
        assert max(map(len, lines)) <= width and any(line.startswith("ffn: glu") for line in lines)
    document = json.loads(reporting.to_json(given))["effects"]
    assert document["main"][0]["values"] == {"position": "rope"} and document["main"][0]["against"] == {
        "position": "none"
    }
    assert len(document["interactions"]) == 5 and document["why_not"] == ""


def costly(score, parameters, seconds, kv=1024, **more):
    model = {"parameters": parameters, "kv_bytes_per_token": kv}
    return [run(0, score, model=model, train={"seconds": seconds, "epochs": 1.0}, **more)]


def test_the_front_of_every_cost(tmp_path):
    rows = {
        "small": costly(2.0, 100, 9.0), "large": costly(1.8, 300, 5.0), "between": costly(2.1, 200, 4.0),
        "ref": [run(0, 1.0, train=None, model=None)], "lost": [run(0, None, "diverged")],
    }  # fmt: skip
    given = table(tmp_path, rows, baseline="small")
    assert find_best(given) == {"parameters": ["large", "small"], "train_seconds": ["large", "between"]}
    cells = dict(zip(("head", "rule", "ref", "large", "small", "between"), markdown_rows(reporting.to_markdown(given))))
    at = cells["head"].index("Pareto")
    assert [cells[name][at] for name in ("large", "small", "between", "ref")] == [
        "parameters, training time", "parameters", "training time", "",
    ]  # fmt: skip
    entry = json.loads(reporting.to_json(given))["rows"][1]
    assert entry["pareto"] == {"parameters": True, "train_seconds": True}
    higher = table(tmp_path, rows, baseline="small", metric=BPB | {"better": "higher"})
    assert find_best(higher)["parameters"] == ["between", "small"]


def test_the_front_of_decode_speed_where_that_is_known(tmp_path):
    rows = {
        name: costly(score, 1, 1.0, decode={"tokens_per_second": speed})
        for name, score, speed in (("a", 1.0, 10.0), ("b", 2.0, 20.0), ("c", 3.0, 5.0))
    }
    assert find_best(table(tmp_path, rows)) == {"decode_time": ["a", "b"]}


def test_times_of_two_machines_are_not_compared(tmp_path):
    rows = {"a": costly(1.0, 5, 9.0, machine={"cores": 2}), "b": costly(2.0, 4, 5.0, machine={"cores": 64})}
    assert set(find_best(table(tmp_path, rows))) == {"parameters"}


VARIED = """
comparisons:
  mine:
    model: llama-like
    vary: {position: [none, {name: rope, base: 500.0}], model.norm: [rmsnorm], train.lr: [1e-3, 3e-3]}
    shape: quick
    task: language-modeling
    train: {steps: 1}
    seeds: 2
    test: paired-t
    margin: 0.02
  models:
    models: [llama-like, gpt2-like]
    shape: quick
    task: language-modeling
    train: {steps: 1}
"""


def test_a_comparison_says_how_it_is_judged_and_what_each_row_is(tmp_path):
    library = open_library(write(tmp_path, VARIED))
    given = read_comparison(library, "mine")
    assert (given.test, given.margin) == ("paired-t", 0.02)
    assert given.plain()["test"] == "paired-t" and given.plain()["margin"] == 0.02
    assert given.rows[3].cell == {"position": "rope base=500.0", "norm": "rmsnorm", "train.lr": "0.003"}
    models = read_comparison(library, "models")
    assert (models.test, models.margin) == ("sign-flip", None)
    assert [row.cell for row in models.rows] == [{"model": "llama-like"}, {"model": "gpt2-like"}]


@pytest.mark.parametrize(
    "change, fault",
    [
        ("test: paired", "test is 'paired'; it should be one of sign-flip, paired-t; did you mean 'paired-t'?"),
        ("test: {a: 1}", "it should be one of sign-flip, paired-t"),
        ("margin: 0", "margin is 0; it should be a number above 0, in the unit of the metric"),
        ("margin: true", "margin is true"),
        ("margin: .inf", "it should be a number above 0"),
        ("margin: wide", "margin is 'wide'"),
    ],
)
def test_wrong_rules_are_faults(tmp_path, change, fault):
    key = change.split(":")[0]
    text = "\n".join(f"    {change}" if line.strip().startswith(f"{key}:") else line for line in VARIED.splitlines())
    with pytest.raises(zoo.SpecError) as error:
        read_comparison(open_library(write(tmp_path, text)), "mine")
    assert fault in str(error.value)


def test_only_a_report_imports_scipy():
    code = "import sys, zoo.reporting, zoo.compare.comparison; sys.exit('scipy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
