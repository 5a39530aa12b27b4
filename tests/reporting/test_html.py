"""The page: what a reader, a screen reader and a hostile name make of it, by a parser and by a browser not ours."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from support.pages import HOSTILE, curve, sweep
from support.tables import folder, run, table

from zoo import reporting
from zoo.declare.library import open_library
from zoo.reporting import to_html
from zoo.reporting.drawing import Scale
from zoo.reporting.forms.columns import columns
from zoo.reporting.forms.markup import Markup, tag
from zoo.reporting.forms.plots import thin

EMPTY = {"input", "meta", "link", "br", "img"}


class Page(HTMLParser):
    """Elements in order, each with its attributes, its text and the elements that it is in."""

    def __init__(self, text: str):
        super().__init__(convert_charrefs=True)
        self.open, self.found = [], []
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, name, attributes):
        assert len({key for key, _ in attributes}) == len(attributes), f"an attribute twice: {attributes}"
        element = {"tag": name, "text": "", "in": [other["tag"] for other in self.open], **dict(attributes)}
        self.found.append(element)
        if name not in EMPTY:
            self.open.append(element)

    def handle_startendtag(self, name, attributes):
        self.handle_starttag(name, attributes)
        self.open.pop()

    def handle_endtag(self, name):
        assert self.open.pop()["tag"] == name

    def handle_data(self, data):
        for element in self.open:
            element["text"] += data

    def all(self, name, **attributes):
        wanted = {key.replace("_", "-").removesuffix("-"): value for key, value in attributes.items()}
        return [e for e in self.found if e["tag"] == name and wanted.items() <= e.items()]


def shares(page, row):
    """The interval and the mean of a row in the picture of differences, as shares of its width."""
    at = next(n for n, e in enumerate(page.found) if e["tag"] == "span" and e["text"] == row and "ol" in e["in"])
    inside = []
    for element in page.found[at + 1 :]:
        if element["tag"] == "li":
            break
        inside.append(element)
    [line] = [e for e in inside if e.get("class") == "interval"]
    [mean] = [e for e in inside if "mean" in e.get("class", "")]
    [zero] = [e for e in inside if e.get("class") == "zero"]
    return [float(text.rstrip("%")) for text in (line["x1"], mean["cx"], line["x2"], zero["x1"])]


def test_the_verdict_comes_first_then_the_table_then_how_it_came_about(tmp_path):
    page = Page(to_html(sweep(tmp_path)))
    heads = [e["text"] for e in page.found if e["tag"] == "h2"]
    assert heads == [
        "Verdict", "Claims", "Results", "Differences", "Training", "Further splits", "Quality and cost", "Method", "Every run",
    ]  # fmt: skip
    first = next(e for e in page.found if e["tag"] == "li")
    assert first["text"].startswith("better: better than base by 0.2")
    assert [e["text"].split(":")[0] for e in page.all("li") if "verdict" in e.get("class", "")] == []


def test_headings_go_down_one_level_at_a_time(tmp_path):
    levels = [int(e["tag"][1]) for e in Page(to_html(sweep(tmp_path))).found if re.fullmatch("h[1-6]", e["tag"])]
    assert levels.count(1) == 1 and all(b - a <= 1 for a, b in zip(levels, levels[1:]))


def test_tables_and_pictures_say_what_they_are(tmp_path):
    page = Page(to_html(sweep(tmp_path)))
    assert page.all("html", lang="en") and page.all("title")[0]["text"] == "sweep: language-modeling"
    assert len(page.all("caption")) == len(page.all("table"))
    assert all(e.get("scope") in ("row", "col") for e in page.all("th"))
    areas = page.all("svg", class_="area")
    assert areas and all(e["role"] == "group" and e["aria-label"] for e in areas)
    identities = [e["id"] for e in page.found if "id" in e and e["tag"] != "script"]
    assert len(set(identities)) == len(identities)
    assert {e["aria-labelledby"] for e in page.found if "aria-labelledby" in e} <= set(identities)


def test_every_cell_is_that_of_the_other_forms(tmp_path):
    given = sweep(tmp_path)
    page = Page(to_html(given))
    start = next(n for n, e in enumerate(page.found) if e.get("id") == "results")
    cells = []
    for element in page.found[start + 1 :]:
        if element["tag"] == "table":
            break
        if element["tag"] in ("td", "th"):
            cells.append(element["text"])
    expected = [column.head for column in columns(given)]
    expected += [column.text(row) for row in given.rows for column in columns(given)]
    assert sorted(cells) == sorted(expected)


@pytest.mark.parametrize("where", ["row", "comparison", "reason", "task", "differs", "metric", "version", "file"])
def test_no_name_becomes_markup(tmp_path, where):
    def named(at):
        return HOSTILE if at == where else at

    rows = {
        "base": [run(s, 2.0 + s / 100, curve=curve(2.0), versions={"python": named("version")}) for s in range(3)],
        named("row"): [run(s, 1.9 + s / 90, curve=curve(1.9)) for s in range(3)],
        "lost": [run(0, None, "failed", reason=named("reason"))],
    }
    metric = {"name": "bpb", "better": "lower", "unit": named("metric")}
    document = {"task": named("task"), "metric": metric, "file": named("file"), "baseline": "base"}
    folder(tmp_path, rows, **document)
    path = tmp_path / "sweep" / "comparison.json"
    held = json.loads(path.read_text())
    held["rows"][1]["differs"] = {named("differs"): {"name": named("differs"), "x": named("differs")}}
    path.write_text(json.dumps(held))
    text = to_html(replace(reporting.read(tmp_path, "sweep"), name=named("comparison")))
    page = Page(text)
    shown = page.all("main")[0]["text"]
    assert HOSTILE in shown or (where == "file" and HOSTILE in shlex.split(page.all("pre")[0]["text"]))
    assert not page.all("img") and len(page.all("script")) == 1 and len(page.all("style")) == 1
    assert not [key for e in page.found for key in e if key.startswith("on")]
    assert text.count("<!--") == 0 and text.count("</script") == 1 and text.count("</title") == len(page.all("title"))


def test_markup_escapes_unless_it_is_markup():
    assert tag("b", "<i>", Markup("<i></i>"), title='"<') == '<b title="&quot;&lt;">&lt;i&gt;<i></i></b>'
    assert tag("p", "a\x1b[31m\x00\u2028b", hidden=True, id=None, class_="x") == '<p hidden class="x">a[31m b</p>'


def test_the_page_loads_nothing_and_its_policy_says_so(tmp_path):
    page = Page(to_html(sweep(tmp_path)))
    [policy] = page.all("meta", http_equiv="Content-Security-Policy")
    assert policy["content"].startswith("default-src 'none'; style-src 'sha256-")
    assert not [e for e in page.found if e.get("src") or e.get("href") or e.get("style")]


@pytest.mark.parametrize("better", ["lower", "higher"])
def test_an_interval_lies_where_the_difference_does(tmp_path, better):
    metric = {"name": "bpb", "better": better, "unit": ""}
    text = to_html(sweep(tmp_path, metric=metric))
    page = Page(text)
    for row, side in {"better": -1, "worse": 1}.items():
        low, mean, high, zero = shares(page, row)
        assert low < mean < high and (mean - zero) * side > 0 and (low - zero) * side > 0 and (high - zero) * side > 0
    low, _, high, zero = shares(page, "close")
    assert low < zero < high
    sides = [e["text"] for e in page.all("span", class_="sides")][0]
    assert sides == ("← betterworse →" if better == "lower" else "← worsebetter →")


def test_places_in_the_picture_are_the_numbers_of_the_report(tmp_path):
    given = sweep(tmp_path)
    page = Page(to_html(given))
    entries = {row["name"]: row["verdict"] for row in json.loads(reporting.to_json(given))["rows"]}
    low_b, mean_b, high_b, zero = shares(page, "better")
    unit = (zero - mean_b) / -entries["better"]["mean"]
    for row in ("better", "worse", "close"):
        drawn = [(place - zero) / unit for place in shares(page, row)[:3]]
        assert drawn == pytest.approx([entries[row][key] for key in ("low", "mean", "high")], abs=1e-4)


def test_an_interval_beyond_the_picture_is_cut_and_marked(tmp_path):
    rows = {"base": [run(0, 2.0), run(1, 2.0)], "wide": [run(0, 2.1), run(1, 1.9)]}
    page = Page(to_html(table(tmp_path, rows, baseline="base")))
    low, mean, high, zero = shares(page, "wide")
    assert (low, high) == (0, 100) and mean == zero
    assert [e["text"] for e in page.all("text", class_="cut")] == ["‹", "›"]


def test_words_do_not_hang_on_colour(tmp_path):
    page = Page(to_html(sweep(tmp_path)))
    said = {e["text"].split("+")[0].split("-0")[0].strip() for e in page.all("span", class_="said")}
    assert "better" in said and "worse" in said
    assert {e["class"] for e in page.all("circle") if "mean" in e["class"]} == {"mean sure point", "mean open point"}


def test_a_line_out_of_view_is_said_to_be_so(tmp_path):
    page = Page(to_html(sweep(tmp_path)))
    said = [e["text"] for e in page.all("li") if "data-row" in e and e["data-row"] == "lost"]
    assert said == ["lost 6.000, diverged, out of view"]
    dots = [e for e in page.all("circle") if "point" in e["class"]]
    assert dots and all(0 <= float(e["cy"].rstrip("%")) <= 100 for e in dots if "mean" not in e["class"])


def test_a_value_to_sort_by_stands_where_there_is_one(tmp_path):
    page = Page(to_html(sweep(tmp_path)))
    cells = [e for e in page.all("td", class_="number")]
    assert all(("data-value" in e) == (e["text"] != "") or e["text"] == "baseline" for e in cells)
    assert "100000" in [e.get("data-value") for e in cells if e["text"] == "100,000"]


def test_the_json_holds_what_the_page_shows(tmp_path):
    given = sweep(tmp_path, file="my file.yaml", sets=["train.steps=10"])
    document = json.loads(reporting.to_json(given), parse_constant=lambda name: pytest.fail(name))
    page = to_html(given)
    assert document["rows"][0]["runs"][0]["curve"][-1] == {"step": 100, "bpb": pytest.approx(1.8)}
    assert document["method"]["seeds"] == list(range(6))
    assert document["method"]["commands"][0] == "zoo run 'my file.yaml' sweep --set train.steps=10"
    shown = Page(page).all("pre")[0]["text"].splitlines()
    assert shown == document["method"]["commands"]
    assert document["method"]["plugins"][0]["parts"] == ["position: p"]
    assert document["method"]["text"][0]["sha256"] in page


def test_a_library_knows_what_was_set(tmp_path):
    path = tmp_path / "zoo.yaml"
    path.write_text("comparisons: {mine: {model: gpt2-like, task: language-modeling, train: {steps: 5}}}")
    sets = ["train.steps=7", "seeds=[1, 2]"]
    assert open_library(path, name="mine", overrides=sets).overrides == sets
    assert open_library(path).overrides == []


def test_a_slot_has_a_sentence(tmp_path):
    cells = {f"{p}, {n}": {"position": p, "norm": n} for p in "ab" for n in "cd"}
    rows = {name: [run(s, 2 + (name[0] == "b") + 0.1 * s * (name[0] == "b")) for s in range(3)] for name in cells}
    given = table(tmp_path, rows, cells=cells, baseline="a, c", test="paired-t")
    said = [e["text"] for e in Page(to_html(given)).all("li")]
    [slot] = [text for text in said if text.startswith("position: b in place of a, over 2 settings of the rest: ")]
    assert "worse by 1.100 bpb (95 % interval +0.852 to +1.348, p = " in slot


def test_trials_are_drawn_and_the_chosen_one_is_the_largest_dot(tmp_path):
    trials = [{"values": {"train.lr": lr}, "status": "done", "dev": dev, "runs": []}
              for lr, dev in ((1e-3, 2.2), (3e-3, 2.0), (1e-2, 2.1), (3e-2, None))]  # fmt: skip
    tuning = {"trials": trials, "chosen": {"train.lr": 3e-3}, "edge": {}, "reason": None}
    folder(tmp_path, {"a": [run(0, 2.0)], "b": [run(0, 2.1)]})
    path = tmp_path / "sweep" / "comparison.json"
    document = json.loads(path.read_text())
    document["rows"][0]["tuning"] = tuning
    path.write_text(json.dumps(document))
    page = Page(to_html(reporting.read(tmp_path, "sweep")))
    assert "train.lr, as tried for each row" in [e["text"] for e in page.all("h3")]
    dots = {e["text"]: e["r"] for e in page.all("circle") if "train.lr" in e["text"]}
    assert dots == {
        "a, train.lr 0.001: 2.200": "3",
        "a, train.lr 0.003: 2.000, chosen": "6",
        "a, train.lr 0.01: 2.100": "3",
    }


@pytest.mark.parametrize("rows", [{}, {"a": []}, {"a": [None]}, {"a": [run(0, 1.0)]}, {"a": "no"},
                                  {"a": [run(0, 0.0)], "b": [run(0, 0.0)]}])  # fmt: skip
def test_any_number_of_rows_has_a_page(tmp_path, rows):
    page = Page(to_html(table(tmp_path, rows, baseline="a")))
    assert all(name in page.all("main")[0]["text"] for name in rows)


def test_twenty_rows_of_six_seeds_stay_small(tmp_path):
    points = [{"kind": "dev", "step": step, "bpb": 3 + 1 / (1 + step)} for step in range(0, 5000, 25)]
    rows = {f"variant number {n}": [run(s, 2 + n / 50 + s / 99, curve=points) for s in range(6)] for n in range(20)}
    text = to_html(table(tmp_path, rows, baseline="variant number 0"))
    assert len(text.encode()) < 500_000
    Page(text)


def test_write_leaves_a_page(tmp_path):
    reporting.write(sweep(tmp_path), tmp_path / "sweep", say=lambda line: None)
    assert (tmp_path / "sweep" / "report.html").read_text() == to_html(reporting.read(tmp_path, "sweep"))


def test_the_command_prints_it_without_torch(tmp_path):
    sweep(tmp_path)
    code = (
        "import sys; from click.testing import CliRunner; from zoo.cli import main\n"
        f"found = CliRunner().invoke(main, ['report', 'sweep', '--format', 'html', '--out', {str(tmp_path)!r}])\n"
        "assert found.exit_code == 0 and 'torch' not in sys.modules, found.output\n"
        "print(found.stdout)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == (tmp_path / "sweep" / "report.html").read_text().strip()


@pytest.mark.parametrize(
    "low, high, log, labels",
    [
        (0, 10, False, ["0", "2", "4", "6", "8", "10"]),
        (-0.013, 0.034, False, ["-0.01", "0.00", "0.01", "0.02", "0.03"]),
        (3.288, 3.297, False, ["3.288", "3.290", "3.292", "3.294", "3.296"]),
        (0, 0.1, False, ["0.00", "0.02", "0.04", "0.06", "0.08", "0.10"]),
        (-1e-4, 1e-4, False, ["-0.00010", "-0.00005", "0.00000", "0.00005", "0.00010"]),
        (0.0009, 0.04, True, ["0.001", "0.002", "0.005", "0.010", "0.020"]),
        (1e6, 6e6, False, ["1.00 M", "2.00 M", "3.00 M", "4.00 M", "5.00 M", "6.00 M"]),
    ],
)
def test_ticks_are_round_and_told_apart(low, high, log, labels):
    scale = Scale(low, high, log)
    found = scale.labels()
    assert [name for _, name in found] == labels
    assert all(-1e-9 <= share <= 1 + 1e-9 for share, _ in found)


def test_a_long_series_keeps_its_ends():
    assert thin(range(1000), 5) == [0, 250, 500, 749, 999] and thin([1, 2], 5) == [1, 2]
