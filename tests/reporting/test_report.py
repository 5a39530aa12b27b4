"""The report, from folders to every form that it leaves in."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys

import markdown_it
import pytest
from rich.console import Console
from support.tables import BPB, folder, markdown_rows, run, shown, table, write

import zoo
from zoo import numbers, reporting
from zoo.reporting import Mean, Row, Run
from zoo.reporting.forms.columns import columns
from zoo.reporting.forms.terminal import fit
from zoo.reporting.judging.curves import make_curve as curve_of
from zoo.reporting.pictures.canvas import spread
from zoo.reporting.text import spell_choices


def rendered(text: str) -> list[str]:
    """The first column of a Markdown table as a reader sees it, by a parser that is not ours."""
    tokens = markdown_it.MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    rows = [tokens[number + 2] for number, token in enumerate(tokens) if token.type == "tr_open"]
    return ["".join(child.content for child in cell.children if child.type.startswith("text")) for cell in rows]


def test_finite_scores_ascend_and_all_else_comes_last(tmp_path):
    scores = [3.0, 2.0, 1.0, float("nan"), 1.0, 2.0, 3.0]
    given = table(tmp_path, {f"v{i}": [run(0, score)] for i, score in enumerate(scores)})
    assert [row.name for row in given.rows] == ["v2", "v4", "v1", "v5", "v0", "v6", "v3"]
    assert given.rows[-1].status == "diverged" and given.rows[-1].reason == "no finite bpb on test"


def test_higher_may_be_better(tmp_path):
    rows = {"low": [run(0, 0.1)], "none": [None], "high": [run(0, 0.9)]}
    given = table(tmp_path, rows, metric=BPB | {"better": "higher"})
    assert [row.name for row in given.rows] == ["high", "low", "none"]


def test_a_diverged_run_neither_ranks_nor_enters_a_mean(tmp_path):
    lost = run(1, 0.001, "diverged", reason="loss is NaN\nat step 40")
    rows = {"good": [run(0, 2.0), run(1, 2.2)], "half": [run(0, 3.0), lost, run(2, 5.0)], "bad": [lost]}
    good, half, bad = table(tmp_path, rows, baseline="good").rows
    assert (good.name, half.name, bad.name) == ("good", "half", "bad")
    assert half.test == Mean(4.0, pytest.approx(2**0.5), 2)
    assert (half.status, half.done, half.reason) == ("2/3 done, 1/3 diverged", 2, lost[0]["reason"])
    assert half.difference == Mean(1.0, None, 1)  # only seed 0 is done in both
    assert bad.test is None and bad.difference is None and bad.status == "diverged"


def test_every_ending_has_its_status_and_reason(tmp_path):
    rows = {
        "refused": "kernel 'x' does not support softcap",
        "not run": [None, None],
        "running": [run(0, None, "running")],
        "interrupted": [run(0, None, "interrupted", reason="ctrl-c")],
        "mixed": [run(0, None, "failed", reason="a"), run(1, None, "diverged", reason="b"), None],
    }
    found = {row.name: (row.status, row.reason) for row in table(tmp_path, rows).rows}
    assert found == {
        "refused": ("refused", "kernel 'x' does not support softcap"),
        "not run": ("not run", None),
        "running": ("running", None),
        "interrupted": ("interrupted", "ctrl-c"),
        "mixed": ("1/3 failed, 1/3 diverged, 1/3 not run", "seed 0: a; seed 1: b"),
    }


def test_differences_are_paired_by_seed(tmp_path):
    base = [run(0, 1.0), run(1, 2.0), run(2, 4.0)]
    other = [run(2, 4.1), run(0, 1.3), run(1, 2.2), run(7, 99.0)]  # another order, and a seed that the baseline lacks
    given = {row.name: row for row in table(tmp_path, {"base": base, "other": other}, baseline="base").rows}
    assert given["base"].difference is None
    assert given["other"].difference.mean == pytest.approx(0.2)
    assert given["other"].difference.sd == pytest.approx(0.1)  # of .1 .3 .2; unpaired it would be 1.5 or more
    assert given["other"].difference.n == 3


def test_a_reference_row_stands_against_every_seed(tmp_path):
    rows = {"base": [run(0, 2.0), run(1, 2.2), run(2, 2.4)], "ref": [run(0, 1.2, train=None)]}
    ref, base = table(tmp_path, rows, baseline="base").rows
    assert ref.reference and not base.reference
    assert ref.difference == Mean(pytest.approx(-1.0), pytest.approx(0.2), 3)
    base = table(tmp_path, rows, baseline="ref").rows[1]
    assert base.difference == Mean(pytest.approx(1.0), pytest.approx(0.2), 3)


def test_a_reference_that_has_not_run_is_one_all_the_same(tmp_path):
    waiting = run(0, None, "not run", train=None, spec={"reference": "n-gram"})
    base, ref = table(tmp_path, {"base": [run(0, 2.0), run(1, 2.2)], "ref": [waiting]}, baseline="base").rows
    assert ref.reference and not base.reference
    assert "2 seeds" in reporting.to_plain(reporting.read(tmp_path, "sweep"))  # not 1 to 2


def test_one_seed_has_no_sd(tmp_path):
    row = table(tmp_path, {"a": [run(0, 2.0)]}).rows[0]
    assert row.test == Mean(2.0, None, 1)
    assert "±" not in reporting.to_plain(table(tmp_path, {"a": [run(0, 2.0)]}))


def test_dev_chose_and_test_reports(tmp_path):
    row = table(tmp_path, {"a": [run(0, 2.0, dev=1.5), run(1, 2.2, dev=1.7)]}).rows[0]
    assert (row.test.mean, row.dev.mean) == (pytest.approx(2.1), pytest.approx(1.6))


def test_a_broken_record_is_a_failed_run(tmp_path):
    folder(tmp_path, {"a": [run(0, 1.0)], "b": [run(0, 2.0)]})
    write(tmp_path / "0000000000000000" / "run.json", '{"status": "do')
    rows = reporting.read(tmp_path, "sweep").rows
    assert [row.status for row in rows] == ["done", "failed"] and "its folder cannot be read" in rows[1].reason


def test_an_unfinished_last_line_of_a_curve_is_left_out(tmp_path):
    folder(tmp_path, {"a": [run(0, 1.0, curve=[{"kind": "dev", "step": 0, "bpb": 8.0, "loss": None}])]})
    with (tmp_path / "0000000000000000" / "metrics.jsonl").open("a") as file:
        file.write('{"kind": "train", "step": 5, "loss": 1}\n{"kind": "dev", "step": 10, "bp')
    [row] = reporting.read(tmp_path, "sweep").rows
    assert [(step, point["bpb"], "loss" in point) for step, point in row.runs[0].curve] == [(0, 8.0, False)]


@pytest.mark.parametrize("rows", [{}, {"a": []}, {"a": [None]}, {"a": [run(0, 1.0)]}, {"a": "no"}])
def test_any_number_of_rows_and_runs_will_do(tmp_path, rows):
    given = table(tmp_path, rows, baseline="a")
    for form in (
        reporting.to_plain,
        reporting.to_markdown,
        reporting.to_csv,
        reporting.to_json,
        lambda given: shown(given, 80),
    ):
        assert all(name in form(given) for name in rows)
    assert len(reporting.write(given, tmp_path / "there", say=lambda line: None)) == 5


def test_an_unknown_comparison_names_those_that_are_there(tmp_path):
    folder(tmp_path, {}, name="positions")
    folder(tmp_path, {}, name="norms")
    with pytest.raises(zoo.SpecError) as error:
        reporting.read(tmp_path, "position")
    assert "no comparison 'position'" in str(error.value) and "did you mean 'positions'?" in str(error.value)
    assert "norms, positions" in str(error.value)
    with pytest.raises(zoo.SpecError, match="zoo run FILE"):
        reporting.main(tmp_path / "empty", [], "plain")


def test_a_broken_comparison_is_a_fault(tmp_path):
    write(tmp_path / "sweep" / "comparison.json", '{"format": 9}')
    with pytest.raises(zoo.SpecError, match="format 9"):
        reporting.read(tmp_path, "sweep")


NAMES = ["1e5", "007", "20200407_2", "rope|ntk", "=1+1", "@x", "+a", "NaN-test", "Infinity", "[red]x[/red]", "__init__",
         "a*b*c", "<b>", r"back\|slash", "$x_1$", "None", "nan", "&lt;", "d_model", "a__b__", "[x](y)",
         "café 表"]  # fmt: skip


def test_names_are_printed_as_written(tmp_path):
    given = table(tmp_path, {name: [run(0, 1.0)] for name in NAMES})
    names = [line.split("  ")[0] for line in reporting.to_plain(given).splitlines() if line.endswith("done")]
    assert names == NAMES
    assert all(name in shown(given, 120) for name in NAMES)
    assert [row["name"] for row in json.loads(reporting.to_json(given))["rows"]] == NAMES


@pytest.mark.parametrize("form", [reporting.to_plain, reporting.to_markdown])
def test_names_that_are_all_numbers_stay_texts(tmp_path, form):
    names = ["1e5", "007", "20200407_2"]  # tabulate by itself prints 100000 and 7
    text = form(table(tmp_path, {name: [run(0, 1.0)] for name in names}))
    assert [re.match(r"[| ]*(\S+)", line).group(1) for line in text.splitlines() if "done" in line] == names


def test_markdown_keeps_its_columns_and_shows_names_as_written(tmp_path):
    text = reporting.to_markdown(table(tmp_path, {name: [run(0, 1.0)] for name in NAMES}))
    head, rule, *rows = markdown_rows(text)
    assert len(rows) == len(NAMES) and {len(row) for row in [head, rule, *rows]} == {len(head)}
    assert {"1e5", "007", r"rope\|ntk", "=1+1", "NaN-test", "d_model"} <= {row[0] for row in rows}
    assert rendered(text)[1:] == NAMES


def test_a_message_of_many_lines_stays_on_one(tmp_path):
    reason = "Traceback:\r\n  line | 2\n\nValueError:\r\x1b[31mno\t<x>"
    given = table(tmp_path, {"a": [run(0, 1.0)], "b": [run(0, None, "failed", reason=reason)]})
    rows = markdown_rows(reporting.to_markdown(given))
    assert len(rows) == 4 and {len(row) for row in rows} == {len(rows[0])}
    assert rows[-1][-1] == r"failed: Traceback: line \| 2 ValueError: [31mno \<x>"
    assert "failed: Traceback: line | 2 ValueError: [31mno <x>\n" in reporting.to_plain(given)
    assert "b: failed: Traceback: line | 2 ValueError: [31mno <x>\n" in shown(given, 120)
    assert json.loads(reporting.to_json(given))["rows"][1]["reason"] == reason


def test_a_long_reason_is_cut_in_tables_only(tmp_path):
    given = table(tmp_path, {"a": [run(0, None, "failed", reason="x" * 1000)]})
    assert "x" * 190 in reporting.to_plain(given) and "x" * 200 not in reporting.to_plain(given)
    assert "x" * 1000 in reporting.to_csv(given) and "x" * 1000 in reporting.to_json(given)


def test_csv_is_safe_in_a_spreadsheet_and_reads_back(tmp_path):
    given = table(tmp_path, {**{name: [run(0, 1.5), run(1, 2.5)] for name in NAMES}, "b": "a,\n=b"}, baseline="1e5")
    rows = list(csv.DictReader(io.StringIO(reporting.to_csv(given))))
    assert [row["variant"] for row in rows[:-1]] == [f"'{name}" if name[0] in "=@+" else name for name in NAMES]
    assert len(reporting.to_csv(given).splitlines()) == len(NAMES) + 2
    assert (rows[0]["test_mean"], rows[0]["test_n"], rows[0]["parameters"]) == ("2.0", "2", "165504")
    assert rows[1]["difference_mean"] == "0.0" and rows[0]["difference_mean"] == ""
    assert (rows[-1]["status"], rows[-1]["reason"]) == ("refused", "a, =b")


def test_a_negative_number_is_no_formula(tmp_path):
    given = table(tmp_path, {"a": [run(0, 2.0)], "b": [run(0, 1.5)]}, baseline="a")
    assert next(csv.DictReader(io.StringIO(reporting.to_csv(given))))["difference_mean"] == "-0.5"


def test_json_is_strict_and_keeps_texts(tmp_path):
    infinite = run(1, float("inf"), "diverged", reason="loss is NaN, then Infinity")
    differs = {"note": "Infinity", "x": float("inf")}
    given = table(tmp_path, {"NaN-test": [run(0, float("nan")), infinite], "b": {"differs": differs}})

    def refuse(name):
        raise AssertionError(f"bare {name}")

    document = json.loads(reporting.to_json(given), parse_constant=refuse)
    row, other = document["rows"]
    assert (row["name"], row["status"], row["test"]) == ("NaN-test", "diverged", None)
    assert [(run["status"], run["test"]) for run in row["runs"]] == [("diverged", {}), ("diverged", {})]
    assert "loss is NaN, then Infinity" in row["reason"]
    assert other["differs"] == {"note": "Infinity", "x": None}


def test_numbers_are_rounded_for_people(tmp_path):
    rows = {"a": [run(0, 1.8634, loss=2.5), run(1, 1.8694, loss=2.7)], "b": [run(0, 1.9), run(1, 1.91)]}
    head, _, a, b = markdown_rows(reporting.to_markdown(table(tmp_path, rows, baseline="a")))
    assert dict(zip(head, a, strict=True)) == {
        "variant": "a", "what differs": "position: a", "parameters": "165,504", "FLOPs/token": "0.33 M",
        "test bpb": "1.866 ± 0.004", "test loss": "2.600 ± 0.141", "difference [95 %]": "baseline", "p": "", "verdict": "", "epochs": "4.9",
        "tokens/s": "31,200", "peak memory": "212.1 MiB", "KV/token": "1.0 KiB", "status": "2/2 done",
    }  # fmt: skip
    b = dict(zip(head, b, strict=True))
    assert b["difference [95 %]"] == "+0.039 [+0.013, +0.064]"  # .0366 and .0406, and t is 12.706
    assert (b["p"], b["verdict"]) == ("0.5", "cannot tell: run 4 more seeds")


@pytest.mark.parametrize(
    "form, value, text",
    [
        (numbers.score, 0.0, "0.000"), (numbers.score, 0.00004, "4e-05"), (numbers.score, -0.0123, "-0.012"),
        (numbers.signed, -0.5, "-0.500"), (numbers.signed, 0.0, "0.000"), (numbers.signed, 0.0123, "+0.012"),
        (numbers.at_most, 0.0121, "0.013"), (numbers.at_most, 0.012, "0.012"), (numbers.at_most, 0.00031, "0.0004"),
        (numbers.at_most, 0.0, "0.000"), (numbers.chance, 0.03125, "0.031"), (numbers.chance, 1.0, "1"),
        (numbers.chance, None, ""),
        (numbers.flops, 331_008, "0.33 M"), (numbers.flops, 12_345_678, "12.3 M"), (numbers.flops, 2.5e9, "2.50 G"),
        (numbers.flops, 4096, "4.10 k"), (numbers.flops, 12, "12"), (numbers.flops, 0, "0"), (numbers.flops, None, ""),
        (numbers.size, 512, "512 B"), (numbers.size, 1000, "1000 B"), (numbers.size, 1024, "1.0 KiB"),
        (numbers.size, 3 * 1024**3, "3.0 GiB"),
        (numbers.rate, 123_456, "123,000"), (numbers.rate, 4.56, "4.6"), (numbers.epochs, 0.034, "0.034"),
        (numbers.count, 1e9, "1,000,000,000"),
    ],
)  # fmt: skip
def test_units(form, value, text):
    assert form(value) == text


def test_a_choice_reads_like_yaml():
    choice = {"position": {"name": "rope", "base": 1e4}, "share": None, "norm": ["a", {"name": "b"}], "on": True}
    assert spell_choices(choice) == "position: rope (base: 10000.0), share: null, norm: [a, b], on: true"


def test_the_caption_says_how_the_numbers_came_about(tmp_path):
    rows = {"base": [run(s, 2.0 + s) for s in range(3)], "other": [run(s, 2.5) for s in range(3)]}
    text = reporting.to_plain(table(tmp_path, rows, baseline="base"))
    assert text.startswith("sweep: language-modeling\n")
    assert "bpb in bits per byte, lower is better; selected by best dev, reported on test." in text
    assert "Text sha256 3fa4b1c23fa4, 3 seeds, 4.9 epochs." in text
    assert (
        "Differences are to base, paired by seed. In brackets a 95 % interval; p is exact, by flipping signs;" in text
    )
    assert "'no difference' is within 0.030 bpb, 1 % of the baseline's." in text
    assert "An exact test on 3 paired seeds cannot reach p < 0.05 (its smallest p is 0.25); it takes 6." in text
    assert "Variants from transformer-zoo 0.1.0." in text


@pytest.mark.parametrize("n_seeds, least", [(1, "1"), (5, "0.0625"), (6, None)])
def test_too_few_seeds_are_said_to_be_too_few(tmp_path, n_seeds, least):
    rows = {name: [run(s, 2.0) for s in range(n_seeds)] for name in "ab"}
    text = reporting.to_plain(table(tmp_path, rows, baseline="a"))
    assert (f"smallest p is {least})" in text) if least else ("exact test" not in text)


def test_one_row_is_compared_with_nothing(tmp_path):
    text = reporting.to_plain(table(tmp_path, {"a": [run(0, 2.0)]}, baseline="a"))
    assert "exact test" not in text and "Differences" not in text


def test_a_baseline_without_a_result_is_named(tmp_path):
    text = reporting.to_plain(table(tmp_path, {"a": [run(0, 2.0)], "b": [None]}, baseline="b"))
    assert "No differences: the baseline b has no result." in text


def test_factorisation_and_kernel_are_named_where_they_are_news(tmp_path):
    def model(asked, ran, way):
        return {"kernel": {"requested": asked, "effective": ran}, "factorisation": way}

    same = table(tmp_path, {"a": [run(0, 1.0)], "b": [run(0, 1.0)]})
    assert "Factorisation" not in reporting.to_plain(same) and "Kernel" not in reporting.to_plain(same)
    rows = {
        "a": [run(0, 1.0, model=model("fast", ["slow path"], "left to right"))],
        "b": [run(0, 2.0, model=model(None, ["fast"], "independent"))],
    }
    text = reporting.to_plain(table(tmp_path, {"a": rows["a"]}))
    assert "Kernel: asked for fast, ran slow path (every model)." in text
    text = reporting.to_plain(table(tmp_path, rows))
    assert "Factorisation: left to right (a); independent (b)." in text
    assert text.count("Kernel:") == 1 and "Kernel: asked for fast, ran slow path (a)." in text


def test_rows_on_different_texts_are_pointed_out(tmp_path):
    rows = {"a": [run(0, 1.0)], "b": [run(0, 1.0, data={"sha256": "0" * 64})]}
    assert "NOT the same text in every row: sha256 3fa4b1c23fa4 000000000000" in reporting.to_plain(
        table(tmp_path, rows)
    )
    rows = {"a": [run(0, 1.0, data={"sha256": ""})]}
    assert "sha256" not in reporting.to_plain(table(tmp_path, rows))


def test_runs_on_different_machines_are_pointed_out(tmp_path):
    here, there = {"cores": 2}, {"cores": 64}
    same = {"a": [run(0, 1.0, machine=here), run(1, 1.0, machine=here), None]}
    assert "NOT the same" not in reporting.to_plain(table(tmp_path, same))
    mixed = {"a": [run(0, 1.0, machine=here), run(1, 1.0, machine=there)]}
    assert "NOT the same machine in every run." in reporting.to_plain(table(tmp_path, mixed))


def test_a_column_that_says_nothing_is_left_out(tmp_path):
    rows = {"a": [run(0, 1.0, train=None, model={"parameters": 7})], "b": {"differs": {}}}
    head = markdown_rows(reporting.to_markdown(table(tmp_path, rows)))[0]
    assert head == ["variant", "what differs", "parameters", "test bpb", "status"]


def test_loss_stands_once_where_it_ranks(tmp_path):
    given = table(tmp_path, {"a": [run(0, 1.0, loss=2.0)]}, metric={"name": "loss", "better": "lower", "unit": "nats"})
    assert markdown_rows(reporting.to_markdown(given))[0].count("test loss") == 1


LONG = {"position": {"name": "rope", "base": 500000.0}, "norm": "layernorm", "residual": "post-norm", "ffn": "relu"}


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 160, 200])
def test_the_terminal_shows_whole_columns_at_any_width(tmp_path, width):
    rows = {
        "llama-like": [run(s, 2.0 + s / 100, loss=3.0) for s in range(3)],
        "gpt2-like": [run(0, 2.1, loss=3.0), run(1, None, "diverged", reason="loss is NaN")],
        "ref": [run(0, 1.6, train=None, model={})],
    }
    folder(tmp_path, rows, baseline="llama-like")
    document = json.loads((tmp_path / "sweep" / "comparison.json").read_text())
    document["rows"][1]["differs"] = LONG
    write(tmp_path / "sweep" / "comparison.json", json.dumps(document))
    given = reporting.read(tmp_path, "sweep")
    text = shown(given, width)
    assert max(map(len, text.splitlines())) <= width
    every = columns(given)
    chosen = fit(every, given.rows, width)
    left_out = [column for column in every if column not in chosen]
    heads = [column.head for column in chosen]
    head_line = next(line for line in text.splitlines() if line.startswith("variant"))
    assert re.split(r"\s{2,}", head_line.strip()) == heads
    for column in chosen:
        cells = [column.text(row) for row in given.rows]
        mark = {"commas": ", ", "words": " "}.get(column.breaks, "\n")
        assert all(phrase in text for cell in cells for phrase in cell.split(mark))
    assert len(heads) + len(left_out) == 14
    assert ("do not fit this width" in text) == bool(left_out)
    if width >= 80:
        assert {"variant", "test bpb", "difference [95 %]", "verdict", "status"} <= set(heads)
    if width == 200:
        assert not left_out


def test_a_long_name_is_folded_and_whole(tmp_path):
    name = "attention:gqa(kv_heads=2)+position:rope(base=500000.0)+norm:rmsnorm"
    text = shown(table(tmp_path, {name: [run(0, 1.0)]}), 80)
    lines = text.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("attention"))
    assert "".join(line[:28].strip() for line in lines[start : start + 3]) == name


def test_write_leaves_every_form_and_nothing_else(tmp_path):
    points = [{"kind": "dev", "step": step, "bpb": 3.0 - step / 100} for step in (0, 50, 100)]
    given = table(tmp_path, {"a|b": [run(s, 2.0, curve=points) for s in range(2)], "$r_$": [run(0, 1.6, train=None)]})
    paths = reporting.write(given, tmp_path / "sweep")
    assert [path.name for path in paths] == [
        "report.md", "report.txt", "report.csv", "report.json", "report.html", "curves.png",
    ]  # fmt: skip
    assert {path.name for path in (tmp_path / "sweep").iterdir()} == {"comparison.json", *(path.name for path in paths)}
    assert "![Curves on dev](curves.png)" in paths[0].read_text()
    before = [path.read_bytes() for path in paths]
    assert before[-1].startswith(b"\x89PNG")
    assert [path.read_bytes() for path in reporting.write(given, tmp_path / "sweep")] == before


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    given = table(tmp_path, {"a": [run(0, 2.0)]})
    reporting.write(given, tmp_path / "sweep", say=lambda line: None)
    before = {path.name: path.read_bytes() for path in (tmp_path / "sweep").iterdir()}

    def full(*_):
        raise OSError("disk full")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    with pytest.raises(OSError, match="disk full"):
        reporting.write(given, tmp_path / "sweep", say=lambda line: None)
    assert {path.name: path.read_bytes() for path in (tmp_path / "sweep").iterdir()} == before


def test_without_matplotlib_a_line_says_so(tmp_path, monkeypatch):
    given = table(tmp_path, {"a": [run(0, 2.0, curve=[{"kind": "dev", "step": 0, "bpb": 3.0}])]})
    write(tmp_path / "sweep" / "curves.png", "of an earlier run")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    said = []
    paths = reporting.write(given, tmp_path / "sweep", said.append)
    assert said == ["no picture: matplotlib is missing; pip install 'transformer-zoo[plots]'"]
    assert len(paths) == 5 and not (tmp_path / "sweep" / "curves.png").exists()
    assert "curves.png" not in paths[0].read_text()


def test_a_curve_is_the_mean_of_its_healthy_seeds():
    def seed(number, status, *values):
        return Run(number, "", status, curve=tuple((10 * i, {"bpb": value}) for i, value in enumerate(values)))

    runs = (seed(0, "done", 4.0, 2.0, 1.0), seed(1, "done", 6.0, 4.0), seed(2, "diverged", 5.0, 90.0))
    curve = curve_of(Row("a", {}, runs, "done"), "bpb")
    assert (curve.steps, curve.mean, curve.low, curve.high) == ((0, 10), (5.0, 3.0), (4.0, 2.0), (6.0, 4.0))
    assert curve.lost == (((0, 5.0), (10, 90.0)),)


@pytest.mark.parametrize(
    "places, moved",
    [
        ([0.0, 5.0], [0.0, 5.0]),
        ([5.0, 5.0], [4.5, 5.5]),  # both give way alike
        ([4.0, 4.1, 4.2], [3.1, 4.1, 5.1]),
        ([-3.0, 0.0], [0.0, 1.0]),
        ([10.0, 99.0], [9.0, 10.0]),
    ],
)
def test_labels_give_way_as_little_as_it_takes(places, moved):
    assert spread(places, 1.0, 0.0, 10.0) == pytest.approx(moved)


def test_main_prints_and_writes(tmp_path):
    folder(tmp_path, {"a": [run(0, 2.0)]}, name="one")
    folder(tmp_path, {"b": [run(0, 2.0)]}, name="two")
    console = Console(width=80, file=io.StringIO())
    reporting.main(tmp_path, [], "markdown", console)
    printed = console.file.getvalue()
    assert "# one:" in printed and "# two:" in printed
    assert (tmp_path / "one" / "report.md").read_text() in printed
    reporting.main(tmp_path, ["two"], "terminal", console)
    assert console.file.getvalue()[len(printed) :].startswith("two: language-modeling")


def test_a_table_is_redrawn_without_torch(tmp_path):
    folder(tmp_path, {"a": [run(0, 2.0, curve=[{"kind": "dev", "step": 0, "bpb": 3.0}])]})
    code = (
        "import sys; from pathlib import Path; from zoo import reporting as report\n"
        f"report.main(Path({str(tmp_path)!r}), ['sweep'], 'terminal')\n"
        "assert 'torch' not in sys.modules and 'zoo_plugins' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert (tmp_path / "sweep" / "curves.png").exists()


def test_what_was_done_to_the_data_is_said_once(tmp_path):
    data = {
        "sha256": "ab" * 32,
        "train_tokens": 9,
        "vocab_size": 9,
        "notes": ["test: 3 of 9 sources are cut at 5 tokens"],
    }
    folder(tmp_path, {"a": [run(0, 2.0, data=data), run(1, 2.1, data=data)], "b": [run(0, 2.2, data=data)]})
    text = reporting.to_markdown(reporting.read(tmp_path, "sweep"))
    assert text.count("Data: test: 3 of 9 sources are cut at 5 tokens.") == 1
