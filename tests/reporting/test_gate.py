"""A report compared to an earlier one: what fails a job, what does not, and what is not compared at all."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
from typing import NamedTuple
from xml.etree import ElementTree

import markdown_it
import pytest
from click.testing import CliRunner
from rich.console import Console
from scipy import stats
from support.tables import BPB, folder, markdown_rows, run, shown, table, write

import zoo
from zoo import reporting
from zoo.cli import main
from zoo.reporting.forms import ci
from zoo.reporting.forms.latex import tex
from zoo.reporting.judging import baseline
from zoo.reporting.judging.gate import compare_all

NOISE = [0.02, -0.01, 0.015, -0.02, 0.01, 0.0, -0.015, 0.005]  # larger between seeds than what is looked for
SEEDS = [2.0, 2.4, 1.8, 2.2, 2.6, 1.9, 2.1, 2.3]
HIGHER = {"name": "bpb", "better": "higher", "unit": "bits per byte"}


def rows(shift: float = 0.0, name: str = "a", seeds=range(8), **parts) -> dict:
    """One row that is `shift` away from what it was, give or take noise; the seeds differ by ten times as much."""
    noise = [0.1 * NOISE[s] if shift else 0.0 for s in range(8)]
    return {name: [run(s, SEEDS[s] + shift + noise[s], **parts) for s in seeds]}


class Gated(NamedTuple):
    """A table, and how it stands against an earlier one."""

    table: reporting.Table
    gate: reporting.Gate | None = None


def render(form: str, given: Gated) -> str:
    return reporting.FORMATS[form].render(*given)


def compare_reports(tmp_path, then: dict, now: dict, fail_on="regression", threshold=None, **document) -> Gated:
    """The table of `now`, compared to a baseline file made of `then`."""
    reporting.save_baseline(table(tmp_path / "then", then, **document), tmp_path / "base.json")
    given = {"sweep": table(tmp_path / "now", now, **document)}
    asked = reporting.Against(tmp_path / "base.json", fail_on, threshold)
    return Gated(given["sweep"], compare_all(given, asked, tmp_path / "now")["sweep"])


def kinds_of(given: Gated) -> dict[str, str]:
    return {change.name: change.kind for change in given.gate.changes}


@pytest.mark.parametrize(
    "better, shift, code", [("lower", 0.1, 1), ("lower", -0.1, 0), ("higher", -0.1, 1), ("higher", 0.1, 0)]
)
def test_worse_is_what_the_metric_says(tmp_path, better, shift, code):
    given = compare_reports(tmp_path, rows(), rows(shift), metric=BPB | {"better": better})
    assert given.gate.code == code and kinds_of(given) == {"a": "regression" if code else "no regression"}
    [change] = given.gate.changes
    assert f"{'worse' if code else 'better'} by 0.100 bpb" in str(change)


def test_figures_are_those_of_scipy_on_pairs(tmp_path):
    [change] = compare_reports(tmp_path, rows(), rows(0.1)).gate.changes
    d = [0.1 + 0.1 * noise for noise in NOISE]
    low, high = stats.ttest_1samp(d, 0).confidence_interval()
    exact = stats.permutation_test((d,), lambda x, axis: x.mean(axis=axis), permutation_type="samples", vectorized=True)
    assert (change.verdict.low, change.verdict.high) == pytest.approx((low, high))
    assert change.verdict.p == pytest.approx(exact.pvalue) and change.verdict.p == 2 / 2**8


def test_seeds_are_paired_whatever_their_order(tmp_path):
    """Unpaired, a difference of 0.1 would drown in what seeds differ by."""
    shuffled = {"a": rows(0.1)["a"][::-1]}
    assert compare_reports(tmp_path, rows(), shuffled).gate.code == 1
    assert stats.ttest_ind(SEEDS, [s + 0.1 for s in SEEDS]).pvalue > 0.4


@pytest.mark.parametrize(
    "threshold, kind, said",
    [
        (0.05, "regression", "regression: worse by 0.100 bpb, beyond the threshold of 0.050"),
        (0.1003, "cannot tell", "worse by 0.100 bpb, and cannot tell whether beyond the threshold of 0.100"),
        (0.2, "no regression", "worse by 0.100 bpb, within the threshold of 0.200"),
    ],
)
def test_a_regression_is_beyond_the_threshold(tmp_path, threshold, kind, said):
    given = compare_reports(tmp_path, rows(), rows(0.1), threshold=threshold)
    assert kinds_of(given) == {"a": kind} and said in str(given.gate.changes[0])
    assert given.gate.code == (kind == "regression")
    assert compare_reports(tmp_path, rows(), rows(0.1), "unclear", threshold).gate.code == (kind != "no regression")


def test_a_regression_is_beyond_its_interval(tmp_path):
    """A large mean that chance may have made."""
    noisy = {"a": [run(s, SEEDS[s] + (1.0 if s < 2 else -0.05)) for s in range(8)]}
    given = compare_reports(tmp_path, rows(), noisy, threshold=0.01)
    assert kinds_of(given) == {"a": "cannot tell"} and "cannot tell: run" in str(given.gate.changes[0])
    assert [compare_reports(tmp_path, rows(), noisy, on, 0.01).gate.code for on in reporting.FAIL_ON] == [0, 1, 0]


def test_the_threshold_is_stated_and_where_it_comes_from(tmp_path):
    def first_note(**more):
        return compare_reports(tmp_path, rows(), rows(), **more).gate.notes[0]

    assert "threshold of 0.022 (1 % of the earlier mean over rows)" in first_note()
    assert "threshold of 0.022 (1 % of a's earlier score)" in first_note(baseline="a")
    assert "threshold of 0.300 (the comparison's margin)" in first_note(margin=0.3)
    assert "threshold of 0.004 (as given)" in first_note(margin=0.3, threshold=0.004)
    assert "Times are not compared" in first_note()


def test_few_seeds_cannot_find_a_regression_and_that_is_said(tmp_path):
    given = compare_reports(tmp_path, rows(seeds=range(5)), rows(0.5, seeds=range(5)))
    assert kinds_of(given) == {"a": "cannot tell"} and given.gate.code == 0
    assert "No regression can be found in any row, however large: it takes 6 paired seeds." in given.gate.notes
    assert compare_reports(tmp_path, rows(seeds=range(5)), rows(0.5, seeds=range(5)), test="paired-t").gate.code == 1


def test_holm_is_over_the_rows(tmp_path):
    """At 6 seeds p is 0.031: one row alone is a regression, and not one of two."""
    then, now = (rows(shift, seeds=range(6)) for shift in (0.0, 0.1))
    assert compare_reports(tmp_path, then, now).gate.code == 1
    other = rows(name="b", seeds=range(6))
    assert kinds_of(compare_reports(tmp_path, then | other, now | other)) == {"a": "cannot tell", "b": "no regression"}


def test_nothing_changed(tmp_path):
    given = compare_reports(tmp_path, rows(), rows(), "unclear")
    assert given.gate.code == 0 and given.gate.summary == "no regression"
    assert "a: no difference larger than 0.000" in str(given.gate.changes[0])


def test_rows_come_and_go_by_name(tmp_path):
    then, now = rows() | rows(name="old"), rows() | rows(name="new")
    given = compare_reports(tmp_path, then, now)
    assert given.gate.lines[1:4] == [
        "old: was there, and is not in this comparison.",
        given.gate.lines[2],
        "new: new.",
    ] and given.gate.lines[2].startswith("a: no difference")  # fmt: skip
    assert given.gate.summary == "no regression, 1 row gone"
    assert [compare_reports(tmp_path, then, now, on).gate.code for on in reporting.FAIL_ON] == [0, 1, 0]


def test_a_run_that_failed_or_is_missing_is_another_code(tmp_path):
    for lost in (run(7, None, "failed", reason="no luck"), None, run(7, None, "interrupted")):
        now = {"a": [*rows()["a"][:7], lost]}
        given = compare_reports(tmp_path, rows(), now)
        assert given.gate.code == 3 and kinds_of(given) == {"a": "failed"}
        assert "no difference larger than 0.000" in str(given.gate.changes[0])
        assert compare_reports(tmp_path, rows(), now, "never").gate.code == 0
    assert "1/8 interrupted" in str(given.gate.changes[0])
    both = rows(0.1) | {"b": [run(0, None, "failed", reason="no luck")]}
    assert compare_reports(tmp_path, rows() | rows(name="b"), both).gate.code == 1  # the worse news


def test_a_row_that_is_refused_now_has_failed(tmp_path):
    given = compare_reports(tmp_path, rows() | rows(name="b"), rows() | {"b": "kernel cannot"})
    assert given.gate.code == 3 and "b: refused: kernel cannot." in given.gate.lines
    assert compare_reports(tmp_path, rows() | {"b": "no"}, rows() | {"b": "no"}).gate.code == 0


def test_seeds_that_diverge_now_are_a_regression(tmp_path):
    now = {"a": [*rows()["a"][:6], run(6, None, "diverged"), run(7, None, "diverged")]}
    given = compare_reports(tmp_path, rows(), now)
    assert given.gate.code == 1
    assert "a: regression: 2 of 8 seeds that had a score diverged; no difference" in str(given.gate.changes[0])
    assert compare_reports(tmp_path, now, now).gate.code == 0  # they did so before
    assert "seeds 6, 7 had no score" in compare_reports(tmp_path, now, rows()).gate.notes[-1]
    gone = {"a": [run(s, None, "diverged") for s in range(8)]}
    assert compare_reports(tmp_path, gone | rows(name="b"), gone | rows(name="b"), "unclear").gate.code == 0


def test_a_reference_has_no_noise(tmp_path):
    def one(score):
        return {"n": [run(0, score, train=None)]}

    then = rows() | one(1.6)
    assert compare_reports(tmp_path, then, rows() | one(1.61)).gate.code == 0
    given = compare_reports(tmp_path, then, rows() | one(1.7))
    assert given.gate.code == 1 and str(given.gate.changes[0]) == "n: regression: a reference, worse by 0.100 bpb."
    assert "n: a reference, the same as before." in compare_reports(tmp_path, then, then).gate.lines
    assert "after Holm" not in given.gate.notes[0]


def test_the_worst_comes_first(tmp_path):
    then = {name: rows()["a"] for name in "abcde"}
    now = {
        "a": rows()["a"],
        "b": rows(0.1)["a"],
        "c": rows(0.3)["a"],
        "d": rows(-0.1)["a"],
        "e": [run(0, None, "failed")],
    }
    assert list(kinds_of(compare_reports(tmp_path, then, now)).items()) == [
        ("c", "regression"), ("b", "regression"), ("e", "failed"), ("a", "no regression"), ("d", "no regression"),
    ]  # fmt: skip


def test_what_cannot_be_compared_is_refused_with_all_reasons(tmp_path):
    reporting.save_baseline(table(tmp_path / "then", rows() | rows(name="b")), tmp_path / "base.json")
    other = {"data": {"sha256": "0" * 64}}
    folder(tmp_path / "now", rows(**other) | rows(name="b", **other), task="another", metric=HIGHER)
    code, text = invoke("report", "--out", tmp_path / "now", "--baseline", tmp_path / "base.json")
    assert code == 2 and text.splitlines() == [
        f"{tmp_path}/base.json: the task was language-modeling and is another",
        f"{tmp_path}/base.json: the metric was bpb (bits per byte, lower is better) and is bpb (bits per byte, higher is better)",
        f"{tmp_path}/base.json: a, b: the data had sha256 3fa4b1c23fa4 and has 000000000000",
    ]  # fmt: skip
    assert not (tmp_path / "now" / "sweep" / "report.md").exists()


def spec(**values):
    task = {"name": "copy", "data": {"files": "x"}} | values.pop("task", {})
    return {"spec": {"task": task, "train": {"steps": 9} | values}}


def test_the_options_of_the_task_are_the_task(tmp_path):
    longer = spec(task={"length": 9})
    with pytest.raises(zoo.SpecError, match=r"base.json: a: task.length was not there and is 9$"):
        compare_reports(tmp_path, rows(**spec()), rows(**longer))
    moved = spec(task={"data": {"files": "y"}})
    assert compare_reports(tmp_path, rows(**spec()), rows(**moved)).gate.code == 0  # the same text in another place
    with pytest.raises(zoo.SpecError, match="task.data.files was x and is y"):
        compare_reports(tmp_path, rows(data={"sha256": ""}, **spec()), rows(data={"sha256": ""}, **moved))


def test_a_row_that_is_trained_is_not_held_against_a_reference(tmp_path):
    with pytest.raises(zoo.SpecError, match="a: it was trained and is a reference"):
        compare_reports(tmp_path, rows(), {"a": [run(0, 2.0, train=None)]})
    with pytest.raises(zoo.SpecError, match="no row of this comparison is in it; it has a"):
        compare_reports(tmp_path, rows(), rows(name="b"))


def test_settings_and_seeds_that_differ_are_named(tmp_path):
    then, now = rows(versions={"torch": "1"}, **spec()), rows(versions={"torch": "2"}, **spec(steps=18, lr=1.0))
    given = compare_reports(tmp_path, then | rows(name="b"), {"a": now["a"][1:]} | rows(name="b"))
    assert given.gate.notes[-1] == (
        "NOT the same as before: train.lr was not there, is 1.0 (a); train.steps was 9, is 18 (a); versions.torch was 1, "
        "is 2 (a); seeds 0, 1, 2, 3, 4, 5, 6, 7 then and 1, 2, 3, 4, 5, 6, 7 now (a)."
    )  # fmt: skip
    assert "7 paired seeds" in str(given.gate.changes[0]) + str(given.gate.changes[1])


def test_no_seed_in_common(tmp_path):
    given = compare_reports(tmp_path, rows(seeds=range(4)), rows(seeds=range(4, 8)), "unclear")
    assert given.gate.code == 1 and "a: cannot tell: no seed has a score on both sides." in given.gate.lines


def invoke(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(main, [*map(str, words)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


def test_the_command_and_its_codes(tmp_path):
    folder(tmp_path / "then", rows())
    base = tmp_path / "ci" / "sweep.json"
    assert invoke("baseline", "update", tmp_path / "then", "sweep", "--to", base)[0] == 0
    folder(tmp_path / "same", rows())
    folder(tmp_path / "worse", rows(0.1))
    folder(tmp_path / "less", {"a": rows()["a"][:7] + [run(7, None, "failed", reason="x")]})
    for place in (base, base.parent):
        for name, code in {"same": 0, "worse": 1, "less": 3}.items():
            assert invoke("report", "--out", tmp_path / name, "--baseline", place)[0] == code
    assert invoke("report", "--out", tmp_path / "worse", "--baseline", base, "--fail-on", "never")[0] == 0
    assert invoke("report", "--out", tmp_path / "worse", "--baseline", base, "--threshold", "0.5")[0] == 0
    invoke("report", "--out", tmp_path / "then")
    assert invoke("report", "--out", tmp_path / "worse", "--baseline", tmp_path / "then")[0] == 1
    assert (
        invoke("report", "--out", tmp_path / "worse", "--baseline", tmp_path / "then" / "sweep" / "report.json")[0] == 1
    )
    assert "regression" in (tmp_path / "worse" / "sweep" / "report.md").read_text()


@pytest.mark.parametrize(
    "words, said",
    [
        (["--fail-on", "never"], "--fail-on needs --baseline"),
        (["--threshold", "1"], "--threshold needs --baseline"),
        (["--baseline", "nowhere"], "does not exist"),
        (["--baseline", "{base}", "--threshold", "nan"], "nan should be a number from 0 up"),
        (["--baseline", "{base}", "--threshold", "-1"], "-1 should be a number from 0 up"),
        (["--baseline", "{base}", "--fail-on", "always"], "'always' is not one of"),
        (["--baseline", "{out}"], "is this comparison's own report"),
        (["--baseline", "{out}/../out/sweep/../sweep/report.json"], "is this comparison's own report"),
        (["--baseline", "{out}/sweep/comparison.json"], "could not compare reports"),
        (["--baseline", "{base}", "sweep", "two"], "holds one comparison, and not 2"),
        (["--baseline", "{empty}"], "holds no earlier report of 'sweep' (looked for sweep/report.json, sweep.json"),
    ],
)
def test_bad_input_is_code_2(tmp_path, words, said):
    out, base, empty = tmp_path / "out", tmp_path / "base.json", tmp_path / "empty"
    reporting.save_baseline(table(out, rows()), base)
    reporting.write(reporting.read(out, "sweep"), out / "sweep", say=lambda line: None)
    empty.mkdir()
    code, text = invoke("report", "--out", out, *(word.format(out=out, base=base, empty=empty) for word in words))
    assert code == 2 and said in " ".join(text.split()) and "Traceback" not in text


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "{", '{"format": 9}', '{"format": 1}', '{"format": 1, "rows": {}}', "null", "NaN"]
)
def test_a_file_that_is_no_baseline(tmp_path, text):
    write(tmp_path / "base.json", text)
    with pytest.raises(zoo.SpecError, match="base.json is no report to compare to"):
        baseline.load_baseline(tmp_path / "base.json")


@pytest.mark.parametrize("score", ["NaN", "Infinity", "null", '"x"', "1e999"])
def test_a_score_that_is_none(tmp_path, score):
    reporting.save_baseline(table(tmp_path, rows()), tmp_path / "base.json")
    text = (tmp_path / "base.json").read_text().replace('"0": 2.0', f'"0": {score}')
    write(tmp_path / "base.json", text)
    with pytest.raises(zoo.SpecError, match="is no report to compare to"):
        baseline.load_baseline(tmp_path / "base.json")


def test_the_file_is_the_same_whatever_the_order(tmp_path):
    """Rows and seeds in another order, and other times, are no news to a version control."""
    one = rows(**spec()) | rows(name="b", **spec(lr=1.0))
    two = {name: one[name][::-1] for name in "ba"}
    slow = {
        name: [(record | {"train": {"seconds": 9.0}}, curve) for record, curve in runs] for name, runs in two.items()
    }
    for name, given in {"one": one, "two": two, "slow": slow}.items():
        reporting.save_baseline(table(tmp_path / name, given), tmp_path / f"{name}.json")
    texts = {name: (tmp_path / f"{name}.json").read_text() for name in ("one", "two", "slow")}
    assert texts["one"] == texts["two"] == texts["slow"]
    document = json.loads(texts["one"], parse_constant=pytest.fail)
    assert document["settings"] == {"task.data.files": "x", "task.name": "copy", "train.steps": 9}
    assert document["rows"]["b"]["settings"] == {"train.lr": 1.0} and list(document["rows"]) == ["a", "b"]
    assert "seconds" not in texts["one"] and len(texts["one"]) < 2000
    assert baseline.load_baseline(tmp_path / "one.json").rows["b"].settings["train.steps"] == 9


def test_an_incomplete_table_is_no_baseline_unless_asked_for(tmp_path):
    folder(tmp_path / "runs", rows() | {"b": [None]})
    words = ["baseline", "update", tmp_path / "runs", "sweep", "--to", tmp_path / "base.json"]
    code, text = invoke(*words)
    assert code == 3 and "b: not run" in text and not (tmp_path / "base.json").exists()
    assert invoke(*words, "--allow-failures")[0] == 0 and (tmp_path / "base.json").exists()
    folder(tmp_path / "none", {"b": [None]})
    code, text = invoke(
        "baseline", "update", tmp_path / "none", "sweep", "--to", tmp_path / "x.json", "--allow-failures"
    )
    assert code == 2 and "no score yet" in text


def test_a_report_is_a_baseline_too(tmp_path):
    given = table(tmp_path / "then", rows(**spec()) | rows(name="b"))
    write(tmp_path / "report.json", reporting.to_json(given))
    reporting.save_baseline(given, tmp_path / "base.json")
    one, two = (baseline.load_baseline(tmp_path / name) for name in ("report.json", "base.json"))
    assert one.rows == two.rows and one.metric == two.metric


NAMES = ["a|b", "<b>&amp;", "x]]>y", '"q"', "'s'", "@someone", "see #12", "GH-7", r"\input{x}", "$x_1$", "100%", "~^{}", "[x]", "*b*",
         "a\x00\x1bb", "\ufffe\uffff", "two\nlines", "--opt", "-1", "café ± …", "<!-- x -->", "a__b__"]  # fmt: skip


def hostile(tmp_path, *, gated=True) -> Gated:
    then = {name: rows()["a"] for name in NAMES}
    now = {name: rows(0.3 if number % 2 else 0.0)["a"] for number, name in enumerate(NAMES)}
    now |= {NAMES[0]: [run(0, None, "failed", reason="<x> & ]]>\x00 @you")]}
    return compare_reports(tmp_path, then, now, test="paired-t") if gated else Gated(table(tmp_path, now))


@pytest.mark.parametrize("gated", [True, False])
def test_junit_is_xml_with_a_case_for_each_row(tmp_path, gated):
    given = hostile(tmp_path, gated=gated)
    root = ElementTree.fromstring(render("junit", given))
    [suite] = root
    cases = {case.get("name"): case for case in suite}
    assert len(cases) == len(NAMES) and {"<b>&amp;", "x]]>y", "ab", "\ufffd\ufffd", "two lines"} <= set(cases)
    count = {kind: len(root.findall(f".//{kind}")) for kind in ("failure", "error", "skipped")}
    assert count == {"failure": 11 if gated else 0, "error": 1, "skipped": 0}
    for element in (root, suite):
        assert [int(element.get(n)) for n in ("tests", "failures", "errors", "skipped")] == [
            len(NAMES),
            *count.values(),
        ]
    assert "<x> & ]]> @you" in cases["a|b"].find("error").get("message")
    if gated:
        assert "worse by 0.300 bpb" in cases["<b>&amp;"].find("failure").get("message")


def test_junit_says_what_cannot_be_told(tmp_path):
    few = range(3)
    for fail_on, kind in {"regression": "skipped", "unclear": "failure", "never": "skipped"}.items():
        now = rows(0.3, seeds=few)
        given = compare_reports(
            tmp_path, rows(seeds=few) | rows(name="gone", seeds=few), now | {"no": "refused"}, fail_on
        )
        suite = ElementTree.fromstring(render("junit", given))[0]
        assert [(case.get("name"), case[0].tag) for case in suite] == [
            ("a", kind), ("no", "skipped"), ("gone", kind),
        ]  # fmt: skip


def test_a_summary_shows_names_and_calls_nobody(tmp_path):
    given = hostile(tmp_path)
    text = render("github", given)
    lines = markdown_rows(text)
    assert len(lines) == len(NAMES) + 2 and {len(line) for line in lines} == {len(lines[0])}
    assert not re.search(r"[@#]\w", text) and "GH-7" not in text
    html = markdown_it.MarkdownIt("commonmark").enable("table").render(text)
    assert "@<!-- -->someone" in html and "&lt;b&gt;" in html and "<b>" not in html and "<!-- x -->" not in html
    assert text.splitlines()[2].startswith("**Compared to ") and "11 regressions, 1 row failed" in text


@pytest.mark.parametrize("form, limit", [("github", 1024 * 1024), ("comment", 65_536)])
def test_a_long_summary_is_cut_and_says_so(tmp_path, form, limit):
    many = {f"row {number} {'ä' * 400}": [run(0, 2.0)] for number in range(900)}
    given = table(tmp_path, many)
    text = reporting.FORMATS[form].render(given, None)
    assert len(reporting.to_markdown(given).encode()) > limit >= len(text.encode()) > 0.95 * limit
    assert text.endswith("**Cut here**, for no more is shown in this place; `report.md` has all of it.\n")
    assert text.rpartition("\n\n**Cut")[0].endswith("|")
    assert ci.cut("short", 100) == "short" and ci.cut("é" * 200, 300).encode().decode().endswith("of it.\n")


def test_latex_escapes_what_tex_reads(tmp_path):
    text = render("latex", hostile(tmp_path))
    body = text[text.index(r"\midrule") : text.index(r"\bottomrule")].splitlines()[1:]
    width = len(re.search(r"begin\{tabular\}\{([lr]+)\}", text)[1])
    assert len(body) == len(NAMES)
    for line in body:
        assert line.endswith(r" \\") and len(re.findall(r"(?<!\\)&", line)) == width - 1
        assert not re.search(r"(?<!\\)[#%_]|[~<>|\x00-\x1f]", line)
    assert r"\textbackslash{}input\{x\}" in text and r"100\%" in text and r"\$x\_1\$" in text
    assert r"$\pm$" in text and "-{}-opt" in text and text.count("{") == text.count("}")
    assert tex("-0.1 [-0.2, +0.3]") == "$-$0.1 {[}$-$0.2, +0.3{]}" and tex("pre-norm-2") == "pre-norm-2"


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="pdflatex is not installed")
def test_latex_compiles(tmp_path):
    body = render("latex", hostile(tmp_path)).replace("\ufffe\uffff", "")
    write(
        tmp_path / "t.tex",
        f"\\documentclass{{article}}\\usepackage{{booktabs}}\\begin{{document}}{body}\\end{{document}}",
    )
    subprocess.run(["pdflatex", "-halt-on-error", "t.tex"], cwd=tmp_path, check=True, capture_output=True)


@pytest.mark.parametrize(
    "shift, message, colour",
    [(0.0, "no regression", "28783d"), (0.1, "1 regression", "cb2431"), (-0.1, "no regression", "28783d")],
)
def test_the_badge_says_how_it_stands(tmp_path, shift, message, colour):
    given = compare_reports(tmp_path, rows(), rows(shift))
    endpoint = json.loads(render("shields", given))
    assert endpoint == {"schemaVersion": 1, "label": "zoo", "message": message, "color": colour, "isError": shift > 0}
    picture = ElementTree.fromstring(render("badge", given))
    assert picture.get("aria-label") == f"zoo sweep: {message}" and f"#{colour}" in render("badge", given)
    assert len(render("badge", given)) < 1024


def test_a_badge_of_no_baseline_counts_runs(tmp_path):
    given = Gated(table(tmp_path, {'"><script>': [run(0, 1.0), None]}, name='x"><script>'))
    assert json.loads(render("shields", given))["message"] == "1 of 2 runs done"
    assert "<script>" not in render("badge", given)
    assert ElementTree.fromstring(render("badge", given)).get("aria-label") == 'zoo x"><script>: 1 of 2 runs done'


def test_every_form_says_how_the_table_stands(tmp_path):
    given = compare_reports(tmp_path, rows(), rows(0.1))
    said = "worse by 0.100 bpb, beyond the threshold of 0.022"
    assert said in shown(given.table, 200, given.gate)
    assert all(said in render(form, given) for form in ("plain", "markdown", "latex", "junit"))
    head, line, *_ = render("csv", given).splitlines()
    assert head.endswith(",earlier") and line.endswith(",regression")
    earlier = json.loads(render("json", given))["earlier"]
    assert (earlier["code"], earlier["threshold"], earlier["rows"][0]["became"]) == (
        1,
        pytest.approx(0.021625),
        "regression",
    )
    assert json.loads(reporting.to_json(table(tmp_path / "x", rows())))["earlier"] is None


def test_forms_that_are_one_document_take_one_comparison(tmp_path):
    folder(tmp_path, rows(), name="one")
    folder(tmp_path, rows(), name="two")
    console = Console(file=io.StringIO())
    with pytest.raises(zoo.SpecError, match="junit is one document for one comparison; name one of one, two"):
        reporting.main(tmp_path, [], "junit", console)
    reporting.main(tmp_path, ["two"], "junit", console)
    assert ElementTree.fromstring(console.file.getvalue())[0].get("name") == "two"


def test_times_are_no_part_of_it(tmp_path):
    fast, slow = ({"train": {"seconds": s, "tokens_per_second": 1 / s, "epochs": 1.0}} for s in (1.0, 99.0))
    assert compare_reports(tmp_path, rows(**fast), rows(**slow), "unclear").gate.code == 0
