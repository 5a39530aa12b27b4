"""The pictures beside a report: when there is one, what it is drawn from, and that none costs the report."""

from __future__ import annotations

import sys

import pytest
from support.tables import run, table

from zoo import reporting
from zoo.reporting import pictures
from zoo.reporting.drawing import Scale
from zoo.reporting.judging.bars import make_row_bars
from zoo.reporting.judging.pareto import find_fronts
from zoo.reporting.judging.probes import collect_probes
from zoo.reporting.judging.trials import collect_trials
from zoo.reporting.pictures import PICTURES
from zoo.reporting.pictures.bars import WORDS, describe_marks, fold
from zoo.reporting.pictures.canvas import NoPicture
from zoo.reporting.pictures.curves import curve_picture
from zoo.reporting.pictures.front import gather

CURVE = [{"kind": "dev", "step": step, "bpb": 3.0 - step / 100} for step in (0, 50, 100)]


def scored(*scores, probes=(), parameters=100, curve=CURVE, **parts):
    """A row's runs, one for each score; `probes` are the slopes by which further splits are worse."""
    out = []
    for seed, score in enumerate(scores):
        given, _ = run(seed, score, model={"parameters": parameters}, curve=curve, **parts)
        splits = {f"x{n}": {"bpb": score + n * slope} for n, slope in enumerate(probes)}
        out.append((given | {"metrics": given["metrics"] | splits}, curve))
    return out


def tuning(dev, chosen=None, edge=(), **more):
    trials = [{"values": {"train.lr": lr}, "runs": [{"seed": 9, "id": "x"}], "status": "done" if score else "diverged",
               "reason": None, "dev": score} for lr, score in dev.items()]  # fmt: skip
    return {"trials": trials, "chosen": {"train.lr": chosen}, "edge": dict.fromkeys(edge, "largest"), **more}


def make_table(tmp_path, rows, tunings=None, **document):
    given = table(tmp_path, rows, **document)
    for row in given.rows:
        object.__setattr__(row, "tuning", (tunings or {}).get(row.name, {}))
    return given


def files(tmp_path, given):
    said = []
    paths = reporting.write(given, tmp_path / "sweep", said.append)
    there = {path.name for path in (tmp_path / "sweep").iterdir() if path.suffix == ".png"}
    assert there == {path.name for path in paths if path.suffix == ".png"}
    assert all((tmp_path / "sweep" / name).read_bytes().startswith(b"\x89PNG") for name in there)
    return there, paths[0].read_text(), said


TWO = {"a": scored(2.0, 2.1, probes=(0.0, 0.1)), "b": scored(2.2, 2.2, probes=(0.0, 0.2), parameters=50)}
TRIED = {name: tuning({1e-3: 2.5, 4e-3: 2.1, 1.6e-2: None}, 4e-3) for name in TWO}


def test_a_table_that_has_it_all_has_every_picture(tmp_path):
    there, text, said = files(tmp_path, make_table(tmp_path, TWO, TRIED, baseline="a"))
    assert there == set(PICTURES) and not said
    assert [line for line in text.splitlines() if line.startswith("![")] == [
        "![Differences with their intervals](effects.png)", "![Curves on dev](curves.png)",
        "![Scores on further splits](probes.png)", "![Scores on dev by what was tried](sensitivity.png)",
        "![Quality against cost](pareto.png)",
    ]  # fmt: skip


@pytest.mark.parametrize("rows, baseline, expected", [
    ({"a": scored(2.0, curve=())}, "a", set()),
    ({"a": scored(2.0), "b": scored(2.1)}, None, {"curves.png"}),
    ({"a": scored(2.0), "b": scored(2.1)}, "a", {"curves.png", "effects.png"}),
    ({"a": scored(2.0, curve=()), "b": scored(2.1, curve=(), parameters=50)}, None, {"pareto.png"}),
    ({"a": scored(2.0, curve=(), probes=(0.1,))}, "a", {"probes.png"}),
    ({"a": scored(2.0), "lost": [run(0, None, "diverged", curve=CURVE)], "not": [None]}, "a", {"curves.png"}),
], ids=["one row", "no baseline", "one seed", "costs", "probes", "diverged"])  # fmt: skip
def test_a_picture_that_says_nothing_is_not_there(tmp_path, rows, baseline, expected):
    files(tmp_path, make_table(tmp_path, TWO, TRIED, baseline="a"))
    there, text, said = files(tmp_path, make_table(tmp_path, rows, baseline=baseline))
    assert there == expected and text.count("![") == len(expected) and not said


def test_one_that_cannot_be_drawn_is_said_and_costs_no_other(tmp_path, monkeypatch):
    given = make_table(tmp_path, TWO, TRIED, baseline="a")
    files(tmp_path, given)

    def fails(table, path):
        path.write_bytes(b"half of it")
        raise RuntimeError("no ink")

    monkeypatch.setitem(pictures.PICTURES, "pareto.png", PICTURES["pareto.png"]._replace(draw=fails))
    there, text, said = files(tmp_path, given)
    assert there == set(PICTURES) - {"pareto.png"} and said == ["pareto.png could not be drawn: RuntimeError: no ink"]
    assert "pareto.png" not in text


def test_without_matplotlib_it_is_said_once(tmp_path, monkeypatch):
    given = make_table(tmp_path, TWO, TRIED, baseline="a")
    files(tmp_path, given)
    for name in ("matplotlib", "matplotlib.figure", "matplotlib.backends.backend_agg"):
        monkeypatch.setitem(sys.modules, name, None)
    there, _, said = files(tmp_path, given)
    assert not there and said == ["no picture: matplotlib is missing; pip install 'transformer-zoo[plots]'"]


def test_they_are_the_same_every_time(tmp_path):
    given = make_table(tmp_path, TWO, TRIED, baseline="a")
    files(tmp_path, given)
    before = {name: (tmp_path / "sweep" / name).read_bytes() for name in PICTURES}
    files(tmp_path, given)
    assert before == {name: (tmp_path / "sweep" / name).read_bytes() for name in PICTURES}


def test_twenty_rows_with_long_and_odd_names_are_drawn(tmp_path):
    names = [
        f"attention:gqa(kv_heads={n})+position:rope(base=500000.0)+norm:rmsnorm $\\frac{n}$\n<b>" for n in range(20)
    ]
    rows = {name: scored(2.0 + n, 2.1 + n, probes=(0.1, n), parameters=n + 1) for n, name in enumerate(names)}
    there, *_, said = files(tmp_path, make_table(tmp_path, rows, {n: TRIED["a"] for n in names}, baseline=names[0]))
    assert there == set(PICTURES) and not said


# what is drawn


def test_no_two_verdicts_share_a_mark():
    assert len({(mark, filled) for mark, _, filled in WORDS.values()}) == len(WORDS) == 4
    assert len({colour for _, colour, _ in WORDS.values()}) == 4


def test_every_verdict_has_a_mark(tmp_path):
    wide = [0.0, 0.1, 0.2, 0.3, 0.1, 0.2, 0.1, 0.0]
    rows = {"base": scored(*(2 + w for w in wide))}
    for name, by in (("up", 0.1), ("down", -0.1)):
        rows[name] = scored(*(2 + w + by * (1 + w) for w in wide))
    rows["level"] = scored(*(2 + w + 0.001 * (-1) ** n for n, w in enumerate(wide)))
    rows["open"] = scored(*(2 + 3 * w for w in reversed(wide)))
    given = make_table(tmp_path, rows, baseline="base")
    assert {bar.name: bar.verdict.word for bar in make_row_bars(given)} == {
        "up": "worse", "down": "better", "level": "no difference", "open": "cannot tell",
    }  # fmt: skip
    assert {bar.verdict.word for bar in make_row_bars(given)} == set(WORDS)
    assert "effects.png" in files(tmp_path, given)[0]


def test_rows_without_a_verdict_are_named_below(tmp_path):
    rows = {
        "a": scored(2.0),
        "b": scored(2.1),
        "lost": [run(0, None, "diverged")],
        "not": [None],
        "ref": scored(3.0, train=None),
    }
    given = make_table(tmp_path, rows, baseline="a")
    assert describe_marks(given)[1:] == ["no verdict: lost, not"]
    assert describe_marks(make_table(tmp_path, {"a": scored(2.0), "b": scored(2.1)}, baseline="a"))[1:] == []


@pytest.mark.parametrize("name", ["short", "a name of " + "many words " * 12, "unbroken" * 20, "", "two\nlines"])
def test_a_name_takes_two_lines_at_most(name):
    lines = fold(name)
    assert len(lines) <= 2 and all(len(line) <= 46 for line in lines)


def test_the_front_steps_from_the_cheapest_to_the_best(tmp_path):
    rows = {name: scored(score, parameters=cost) for name, score, cost in
            [("small", 3.0, 1), ("mid", 2.0, 5), ("worse", 2.5, 7), ("large", 1.0, 9)]}  # fmt: skip
    front = find_fronts(make_table(tmp_path, rows))["parameters"]
    assert front.line == [(1, 3.0), (5, 3.0), (5, 2.0), (9, 2.0), (9, 1.0)]
    assert [point.number for point in front.points] == [1, 2, 3, 4] and set(front.best) == {"small", "mid", "large"}


def test_points_that_lie_together_get_one_label(tmp_path):
    rows = {name: scored(score, parameters=cost) for name, score, cost in
            [("a", 1.0, 100), ("b", 1.001, 101), ("c", 1.5, 100), ("d", 2.0, 200)]}  # fmt: skip
    front = find_fronts(make_table(tmp_path, rows))["parameters"]
    found = list(gather(front, Scale(100, 200), Scale(1.0, 2.0)))
    assert found == [((0.01, pytest.approx(0.001)), [1, 2]), ((0.0, 0.5), [3]), ((1.0, 1.0), [4])]


def test_probes_keep_their_order_and_their_gaps(tmp_path):
    rows = {"a": scored(2.0, 2.2, probes=(0, 1, 2)), "b": scored(3.0, probes=(0, 1, 2)), "c": scored(4.0)}
    del rows["b"][0][0]["metrics"]["x1"]
    a, b = collect_probes(make_table(tmp_path, rows))
    assert (a.places, a.mean, a.low, a.high) == (
        (0, 1, 2), pytest.approx((2.1, 3.1, 6.1)), pytest.approx((2.0, 3.0, 6.0)), pytest.approx((2.2, 3.2, 6.2)),
    )  # fmt: skip
    assert (b.places, b.mean) == ((0, 2), pytest.approx((3.0, 7.0)))


def test_sensitivity_is_the_best_at_each_value_with_what_was_lost(tmp_path):
    found = tuning({1e-3: 2.5, 4e-3: 2.1, 1.6e-2: None}, 4e-3, edge=["train.lr"])
    found["trials"].append(found["trials"][0] | {"dev": 2.4})
    drawn = tuning({1e-3: 2.5, 2e-3: 2.4}, 2e-3, drawn={"by": "chance"})
    for trial in drawn["trials"]:
        trial["values"] = trial["values"] | {"train.warmup": 5}
    given = make_table(tmp_path, TWO, {"a": found, "b": drawn})
    (a, b), only = collect_trials(given)["train.lr"], set(collect_trials(given))
    assert dict(a.best) == {1e-3: 2.4, 4e-3: 2.1} and (a.chosen, a.edge, a.lost, a.joined) == (
        4e-3,
        True,
        (1.6e-2,),
        True,
    )
    assert (b.lost, b.joined, b.edge) == ((), False, False) and only == {"train.lr"}


def test_the_page_has_the_same_pictures(tmp_path):
    page = reporting.to_html(make_table(tmp_path, TWO, TRIED, baseline="a"))
    for head in ("Differences", "Training", "Further splits", "Sensitivity", "Quality and cost"):
        assert f">{head}</h2>" in page
    assert "b, x1: 2.400" in page and "a, x1: 2.150, from 2.100 to 2.200" in page
    assert "Further splits" not in reporting.to_html(make_table(tmp_path, {"a": scored(2.0)}, baseline="a"))


def test_nothing_to_draw_is_no_picture(tmp_path):
    with pytest.raises(NoPicture, match="no run has a curve yet"):
        curve_picture(make_table(tmp_path, {"a": scored(2.0, curve=())}), tmp_path / "curves.png")
