"""Rows over several tasks, against numbers worked out by hand and scipy's own trimmed mean and bootstrap."""

import io
import json

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image
from rich.console import Console
from scipy import stats
from support.tables import folder, markdown_rows, run

from zoo import SpecError, reporting
from zoo import statistics as ours
from zoo.cli import main
from zoo.reporting.judging.across import average_tasks, split_by_task
from zoo.reporting.overviews import aggregate

BPB = {"name": "bpb", "better": "lower", "unit": "bits per byte"}
ACCURACY = {"name": "accuracy", "better": "higher", "unit": "share of tokens"}
LM = {"base": [2.2, 2.0, 1.8, 2.0], "tall": [2.0, 1.9, 1.8, 1.9], "wide": [2.2, 2.1, 2.0, 2.1]}
RECALL = {"base": [0.4, 0.5, 0.6, 0.5], "tall": [0.5, 0.6, 0.6, 0.7], "wide": [0.4, 0.5, 0.5, 0.5]}
GAINS = {"tall": [[0.1, 0.05, 0.0, 0.05], [0.2, 0.2, 0.0, 0.4]], "wide": [[0.0, -0.05, -0.1, -0.05], [0, 0, -0.2, 0]]}
"""By hand, on the first and on the second."""


def given(score, metric, seed):
    """A run with this score, or that ended in this way."""
    if score is None or isinstance(score, tuple):
        return run(seed, **dict(zip(("status", "reason"), score, strict=True))) if score else None
    return run(seed, metrics={"dev": {metric["name"]: score}, "test": {metric["name"]: score}})


def compared(out, name, scores, metric, first, *, seeds=0, **document):
    """A comparison whose rows have these scores, by seed from `seeds` on."""
    rows = {row: found if isinstance(found, dict | str) else
            [given(score, metric, seeds + n) for n, score in enumerate(found)]
            for row, found in scores.items()}  # fmt: skip
    document = {"baseline": "base", "task": name, "metric": metric} | document
    folder(out, rows, name=name, first=100 * first, **document)
    return reporting.read(out, name)


def two(out, lm=LM, recall=RECALL, **document):
    return [compared(out, "lm", lm, BPB, 1, **document), compared(out, "recall", recall, ACCURACY, 2, **document)]


def lines(tables):
    return {line.name: line for line in average_tasks(tables).lines}


@pytest.mark.parametrize("row", GAINS)
def test_gains_are_shares_of_the_baselines_mean_and_more_is_better(tmp_path, row):
    line = lines(two(tmp_path))[row]
    assert [list(cell.gains.values()) for cell in line.cells] == [pytest.approx(task) for task in GAINS[row]]
    assert line.gain.value == pytest.approx(stats.trim_mean(np.concatenate(GAINS[row]), 0.25))
    assert line.improvement.value == {"tall": (0.875 + 0.875) / 2, "wide": (0.125 + 0.375) / 2}[row]


def test_the_interval_is_that_of_scipys_bootstrap_of_pairs(tmp_path):
    noise = np.random.default_rng(5)
    hard = noise.normal(0, 0.2, 8)  # what both runs of a seed share, and an unpaired bootstrap would add
    scores = {"base": 2 + hard, "tall": 1.9 + hard + noise.normal(0, 0.02, 8)}
    lm, recall = scores, {row: values / 4 for row, values in scores.items()}
    found = lines(two(tmp_path, lm, recall))["tall"].gain

    def middle(a, b, c, d, axis=-1):
        gains = (b - a) / -scores["base"].mean(), (d - c) / (scores["base"].mean() / 4)
        return stats.trim_mean(np.concatenate(gains, -1), 0.25, axis=-1)

    class Paired:
        """Both sides of a task by one choice of seeds."""

        def __call__(self, first, second, axis=-1):
            return middle(lm["base"][first], lm["tall"][first], recall["base"][second], recall["tall"][second])

    t = stats.t.ppf(0.025, 14) * np.sqrt(8 / 7)
    theirs = stats.bootstrap(
        (np.arange(8), np.arange(8)), Paired(), method="percentile", confidence_level=1 - 2 * stats.norm.cdf(t),
        n_resamples=20_000, rng=2, vectorized=True,
    )  # fmt: skip
    slack = 0.25 * theirs.standard_error
    assert found.low == pytest.approx(theirs.confidence_interval.low, abs=slack)
    assert found.high == pytest.approx(theirs.confidence_interval.high, abs=slack)
    unpaired = 0.2 / 2 * np.sqrt(2 / 8)
    assert found.high - found.low < unpaired


def test_a_task_weighs_no_more_for_its_seeds(tmp_path):
    lm = {"base": [2.0] * 4, "tall": [1.8] * 4}
    recall = {"base": [0.5] * 12, "tall": [0.45] * 11 + [0.4]}
    line = lines(two(tmp_path, lm, recall))["tall"]
    assert line.gain.value == pytest.approx(stats.trim_mean([0.1] * 12 + [-0.1] * 11 + [-0.2], 0.25), abs=0.005)
    assert line.improvement.value == 0.5


def test_seeds_may_be_others_on_each_task(tmp_path):
    tables = [compared(tmp_path, "lm", LM, BPB, 1), compared(tmp_path, "recall", RECALL, ACCURACY, 2, seeds=40)]
    assert lines(tables)["tall"].gain == lines(two(tmp_path / "same"))["tall"].gain
    assert list(lines(tables)["tall"].cells[1].gains) == [40, 41, 42, 43]


def test_the_order_of_the_comparisons_changes_no_figure(tmp_path):
    tables = two(tmp_path)
    assert lines(tables)["tall"].gain == lines(tables[::-1])["tall"].gain


def test_ranks_are_by_task_and_equal_rows_share_theirs(tmp_path):
    recall = RECALL | {"wide": RECALL["base"]}
    found = lines(two(tmp_path, recall=recall))
    ranks = {name: [cell.rank for cell in line.cells] for name, line in found.items()}
    assert ranks == {"tall": [1, 1], "base": [2, 2.5], "wide": [3, 2.5]}
    assert found["wide"].rank == 2.75
    assert list(found) == ["tall", "base", "wide"]  # the best first


LOST = {
    "diverged": [0.6, 0.5, ("diverged", "loss is nan"), 0.7],
    "killed": [0.6, 0.5, ("failed", "killed by signal 9"), 0.7],
    "refused": "it cannot be built",
    "failed": [("failed", "no")] * 4,
}


@pytest.mark.parametrize("how", LOST)
def test_a_row_that_lacks_runs_has_its_rate_and_no_number(tmp_path, how):
    tables = two(tmp_path, recall=RECALL | {"tall": LOST[how]})
    line = lines(tables)["tall"]
    assert (line.gain, line.improvement, line.rank, line.cells[1].mean) == (None, None, None, None)
    assert how in line.cells[1].status and ("1/4" in line.cells[1].status) == (len(set(map(str, LOST[how]))) == 4)
    assert line.cells[0].mean == pytest.approx(0.05)
    found = aggregate(tables)
    row = next(row for row in json.loads(found.files["json"])["rows"] if row["name"] == "tall")
    assert row["gain"] is None and row["tasks"][1]["gain"] is None and row["tasks"][1]["lacking"] is True
    assert "since runs have no score: tall." in found.files["md"]
    [cells] = [cells for cells in markdown_rows(found.files["md"]) if cells[0] == "tall"]
    assert cells[1] == "lacks runs" and how in cells[-1] and lines(tables)["wide"].cells[1].rank == 2


def test_runs_to_come_take_no_number_away_and_are_told(tmp_path):
    tables = two(tmp_path, recall=RECALL | {"tall": [0.6, 0.5, 0.6, None]})
    line = lines(tables)["tall"]
    assert line.gain.value and len(line.cells[1].gains) == 3
    assert "Runs of tall are still to come" in aggregate(tables).files["md"]


def test_rows_that_are_not_everywhere_are_named(tmp_path):
    found = average_tasks(two(tmp_path, lm=LM | {"odd": LM["tall"]}))
    assert found.elsewhere == {"odd": ("lm",)} and "odd" not in [line.name for line in found.lines]
    assert "not here: odd (lm)" in aggregate(found.tables).files["md"]


def test_a_reference_is_held_against_every_seed_and_has_no_rank(tmp_path):
    tables = []
    for first, (name, metric, scores) in enumerate([("lm", BPB, LM), ("recall", ACCURACY, RECALL)], 1):
        bar = run(0, metrics={"test": {metric["name"]: sum(scores["base"]) / 4}}, train=None)
        rows = {row: [given(score, metric, n) for n, score in enumerate(some)] for row, some in scores.items()}
        folder(tmp_path, rows | {"bar": [bar]}, name=name, first=100 * first, baseline="base", metric=metric)
        tables.append(reporting.read(tmp_path, name))
    line = lines(tables)["bar"]
    assert line.reference and line.rank is None and len(line.cells[0].gains) == 4
    assert line.cells[0].mean == pytest.approx(0.0)
    assert "bar (reference)" in aggregate(tables).files["md"]


def test_two_seeds_of_a_task_give_no_interval(tmp_path):
    tables = two(tmp_path, recall={row: scores[:2] for row, scores in RECALL.items()})
    line = lines(tables)["tall"]
    assert (line.gain.low, line.gain.high, line.improvement.low) == (None, None, None)
    said = aggregate(tables).files["md"]
    assert "A gain without an interval" in said and "In brackets" not in said


FAULTS = {
    "only lm": lambda out: two(out)[:1],
    "there is none": lambda out: [],
    "judged by different baselines: lm by base, recall by wide": lambda out: [
        two(out)[0], compared(out, "recall", RECALL, ACCURACY, 2, baseline="wide")],
    "recall: the baseline 'base' scores 0 accuracy": lambda out: two(out, recall=RECALL | {"base": [0.0] * 4}),
    "recall: the baseline 'base' is 3/4 done, 1/4 diverged": lambda out: two(
        out, recall=RECALL | {"base": [0.5, 0.4, 0.5, ("diverged", "loss is nan")]}),
    "recall: the baseline 'base' has no score": lambda out: two(out, recall=RECALL | {"base": [None] * 4}),
    "no row but the baseline 'base' stands in all": lambda out: two(
        out, recall={"base": RECALL["base"], "odd": RECALL["tall"]}),
    "lm and again share runs": lambda out: [two(out)[0], compared(out, "again", LM, BPB, 1)],
}  # fmt: skip


@pytest.mark.parametrize("text", FAULTS)
def test_what_cannot_be_averaged_is_refused(tmp_path, text):
    with pytest.raises(SpecError) as error:
        average_tasks(FAULTS[text](tmp_path))
    assert text in str(error.value)


def test_all_faults_come_at_once(tmp_path):
    lm = LM | {"base": [None] * 4}
    tables = [compared(tmp_path, "lm", lm, BPB, 1), compared(tmp_path, "recall", RECALL, ACCURACY, 2, baseline="wide")]
    with pytest.raises(SpecError) as error:
        average_tasks(tables)
    assert len(error.value.faults) == 2


def test_other_parts_under_one_name_are_told_and_other_sizes_are_not(tmp_path):
    tables = two(tmp_path)
    path = tmp_path / "recall" / "comparison.json"
    document = json.loads(path.read_text())
    document["rows"][1]["differs"] |= {"shape.d_ff": "99", "task": "another"}
    path.write_text(json.dumps(document))
    assert "NOT the same" not in aggregate([tables[0], reporting.read(tmp_path, "recall")]).files["md"]
    document["rows"][1]["differs"]["position"] = "taller"
    path.write_text(json.dumps(document))
    text = aggregate([tables[0], reporting.read(tmp_path, "recall")]).files["md"]
    assert "NOT the same in every comparison: tall (lm: position: tall; recall: position: taller)" in text


def crossed(out, axis="task", values=("copy", "recall")):
    """One comparison of variants on tasks."""
    scores = {values[0]: RECALL, values[1]: {row: [s / 2 for s in some] for row, some in RECALL.items()}}
    rows, cells = {}, {}
    for task, found in scores.items():
        for row, some in found.items():
            rows[f"{task}, {row}"] = [given(score, ACCURACY, n) for n, score in enumerate(some)]
            for record, _ in rows[f"{task}, {row}"]:
                record["model"]["parameters"] += 1000 * len(rows)
            cells[f"{task}, {row}"] = {axis: task, "position": row}
    folder(out, rows, name="crossed", cells=cells, baseline=f"{values[0]}, base", metric=ACCURACY)
    return reporting.read(out, "crossed")


def test_a_comparison_whose_task_varies_is_taken_apart(tmp_path):
    table = crossed(tmp_path)
    parts = split_by_task(table)
    assert [part.name for part in parts] == ["crossed (copy)", "crossed (recall)"]
    found = average_tasks([table])
    assert [line.name for line in found.lines] == ["tall", "base", "wide"] and found.baseline == "base"
    assert [cell.mean for cell in found.lines[0].cells] == [pytest.approx(0.2)] * 2  # each to its own task's baseline
    assert split_by_task(crossed(tmp_path / "b", "task.pairs", ("4", "8")))[1].name == "crossed (pairs=8)"
    [whole] = split_by_task(crossed(tmp_path / "c", "task.tokenizer"))  # the same text is scored
    assert whole.name == "crossed"


def test_a_table_of_several_tasks_holds_no_row_against_another_tasks_baseline(tmp_path):
    table = crossed(tmp_path)
    apart = [row.name for row in table.rows if row.name.startswith("recall")]
    assert len(apart) == 3 and not any(table.differences(row) for row in table.rows if row.name in apart)
    said = reporting.to_markdown(table)
    assert "NOT one task: there are 2," in said and "compares within each" in said
    verdicts = json.loads(reporting.to_json(table))["verdicts"]
    assert len(verdicts) == 2 and all(line.startswith("copy, ") for line in verdicts)
    effects = json.loads(reporting.to_json(table))["effects"]
    assert [effect["values"] for effect in effects["main"]] == [{"position": "tall"}, {"position": "wide"}]
    assert effects["main"][0]["settings"] == 2 and len(effects["interactions"]) == 2
    assert {mark for row in json.loads(reporting.to_json(table))["rows"] for mark in row["pareto"]} == set()


def test_tokenizers_of_one_text_are_rows_like_others(tmp_path):
    table = crossed(tmp_path, "task.tokenizer")
    assert len(json.loads(reporting.to_json(table))["verdicts"]) == 5 and "NOT one task" not in reporting.to_markdown(
        table
    )
    assert {mark for row in json.loads(reporting.to_json(table))["rows"] for mark in row["pareto"]} == {"parameters"}


def test_a_comparison_in_which_the_task_alone_varies_is_refused(tmp_path):
    rows = {name: [given(0.5, ACCURACY, 0)] for name in ("copy", "recall")}
    folder(tmp_path, rows, name="one", cells={"copy": {"task": "copy"}, "recall": {"task": "recall"}}, baseline="copy")
    with pytest.raises(SpecError, match="only its task varies"):
        average_tasks([reporting.read(tmp_path, "one")])


def test_the_command_prints_one_table_and_writes_its_forms(tmp_path):
    two(tmp_path)
    result = CliRunner().invoke(main, ["report", "--out", str(tmp_path), "--format", "aggregate", "lm", "recall"])
    assert result.exit_code == 0, result.output
    assert result.stdout.count("variant") == 1 and "+10.00 [" in result.stdout
    document = json.loads((tmp_path / "aggregate.json").read_text())
    assert document["baseline"] == "base" and [task["name"] for task in document["tasks"]] == ["lm", "recall"]
    tall = document["rows"][0]
    assert tall["gain"]["value"] == pytest.approx((0.05 + 0.05 + 0.1 + 0.2) / 4)
    assert [each["gain"] for each in tall["tasks"][0]["gains"]] == pytest.approx(GAINS["tall"][0])
    table = markdown_rows((tmp_path / "aggregate.md").read_text())
    assert table[0][4:] == ["lm", "recall"] and table[2][4:] == ["+5.00 (1)", "+20.00 (1)"]
    with Image.open(tmp_path / "aggregate.png") as picture:
        assert len(set(picture.convert("RGB").get_flattened_data())) > 50
    assert not (tmp_path / "lm" / "report.md").exists()


@pytest.mark.parametrize(
    "more, text", [(["lm"], "only lm"), (["--baseline", "{out}"], "no earlier report"), (["lmm"], "did you mean 'lm'?")]
)
def test_the_command_refuses_with_a_line_and_2(tmp_path, more, text):
    two(tmp_path)
    more = [each.format(out=tmp_path) for each in more]
    result = CliRunner().invoke(main, ["report", "--out", str(tmp_path), "--format", "aggregate", *more])
    assert (result.exit_code, result.stdout) == (2, "") and text in result.stderr


def test_names_are_escaped(tmp_path):
    name = "a|b <img src=x> [bold]\n*c*"
    tables = two(tmp_path, LM | {name: LM["tall"]}, RECALL | {name: RECALL["tall"]})
    found = aggregate(tables)
    assert len({len(cells) for cells in markdown_rows(found.files["md"])[:6]}) == 1
    assert "<img" not in found.files["md"].replace("\\<img", "")
    console = Console(width=120, file=io.StringIO(), color_system=None)
    console.print(found.shown)
    assert "[bold]" in console.file.getvalue()


def covered(effects, experiments, seeds=6):
    """How often the interval of a row's gain holds what it gains with any seed, on tasks with unlike metrics."""
    hits = 0
    every = np.random.default_rng(0).standard_normal((len(effects), 100_000))
    truth = stats.trim_mean((np.array(effects)[:, None] + 0.02 * every).ravel(), 0.25)
    for number in range(experiments):
        noise = np.random.default_rng(number)
        shares = [effect + 0.02 * noise.standard_normal(seeds) for effect in effects]
        bases = [1 + 0.02 * noise.standard_normal(seeds) for _ in effects]
        gains = [list(share / base.mean()) for share, base in zip(shares, bases, strict=True)]
        low, high = ours.stratified_bootstrap(gains)
        hits += low <= truth <= high
    return hits / experiments


def test_the_noise_of_the_mean_that_gains_are_shares_of_costs_no_cover(monkeypatch):
    monkeypatch.setattr(ours, "RESAMPLES", 1000)
    assert abs(covered((0.05, 0.1, -0.02), 300) - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 300)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "effects, least", [((0.05, 0.05), 0.93), ((0.05, 0.1, -0.02), 0.93), ((0.0, 0.3, 0.02, 0.05), 0.91)]
)
def test_the_interval_of_a_gain_covers_in_many_experiments(effects, least, monkeypatch):
    """Less, as the docs say, where one task lies so far from the others that its own spread does not count."""
    monkeypatch.setattr(ours, "RESAMPLES", 2000)
    assert least <= covered(effects, 2000) <= 0.97
