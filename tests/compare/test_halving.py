"""Rows dropped early: short runs with seeds of their own rank them on dev, and the best go on."""

import json
import textwrap

import pytest
from click.testing import CliRunner
from support.comparisons import BASE, comparison
from support.files import faults, write
from support.tables import markdown_rows
from support.trials import document, opened, score

from zoo import reporting
from zoo.cli import main
from zoo.compare.comparison import warnings
from zoo.compare.halving import count_rounds
from zoo.compare.prepared import Prepared
from zoo.compare.tuning_rules import Halving
from zoo.execute.merge import find_missing, merge
from zoo.execute.shard import Shard
from zoo.execute.stages import plan_stages, write_comparison, write_trials
from zoo.reporting.reading import ordinal

NAMES = "relu gelu relu2 swiglu geglu reglu glu".split()
DEV = dict(zip(NAMES, (0.1, 0.7, 0.4, 0.6, 0.5, 0.3, 0.2), strict=True))
"""The baseline is the worst of all; two thirds of the others go after each round."""
ROWS = f"model: {{}}\nvary: {{ffn: [{', '.join(NAMES)}]}}\nbaseline: relu\nseeds: 2\n"
BODY = (
    ROWS.replace("seeds: 2", "seeds: 2\ntrain: {steps: 18, warmup: 4, eval_every: 7}")
    + "halving: {rounds: 3, factor: 3}\n"
)
SHORT = BASE.replace("train: {steps: 3}\n", "")


def read(tmp_path, body=BODY):
    return opened(tmp_path, body, base=SHORT)


def done(job):
    score(job.run, DEV[job.run.read().spec["model"]["ffn"]["name"]])


def go(tmp_path, end=done, body=BODY):
    found, library = read(tmp_path, body)
    out = []
    for jobs in plan_stages(found, Prepared(library), tmp_path / "runs", "a.yaml"):
        out.append(jobs)
        for job in jobs:
            end(job)
    return out


def names(jobs):
    return [job.name for job in jobs]


def spec(job):
    return job.run.read().spec


def test_the_best_third_goes_on_and_the_baseline_always(tmp_path):
    first, second, last = go(tmp_path)
    assert names(first) == [f"{name} · round 1" for name in NAMES]
    assert names(second) == ["relu · round 2", "gelu · round 2", "swiglu · round 2"]
    assert names(last) == ["relu · 0", "gelu · 0", "relu · 1", "gelu · 1"]


def test_a_round_is_a_short_run_of_its_own(tmp_path):
    """9 rounds into one: 2, 6 and 18 steps, with warm-up and scores on dev at the same place, and other seeds."""
    trains = [[spec(job)["train"] for job in jobs] for jobs in go(tmp_path)]
    assert [{(t["steps"], t["warmup"], t["eval_every"]) for t in each} for each in trains] == [
        {(2, 1, 1)}, {(6, 2, 3)}, {(18, 4, 7)},
    ]  # fmt: skip
    seeds = [{run["seed"] for row in document(tmp_path)["rows"] for run in rounds(row, n)} for n in range(2)]
    assert seeds == [{1000}, {1000}]
    assert {run["seed"] for row in document(tmp_path)["rows"] for run in row["runs"]} == {0, 1}


def rounds(row, number):
    return [run for one in row["halving"]["rounds"][number : number + 1] for run in one["runs"]]


def test_the_mean_over_the_seeds_of_a_round_decides(tmp_path):
    def end(job):
        name, seed = spec(job)["model"]["ffn"]["name"], job.run.read().seed
        score(job.run, {"gelu": (0.9, 0.1), "swiglu": (0.6, 0.6)}.get(name, (0.3, 0.3))[seed % 2])

    _, second, last = go(tmp_path, end, BODY.replace("factor: 3", "factor: 3, seeds: 2"))
    assert [name for name in names(last) if name.endswith("0")] == ["relu · 0", "swiglu · 0"]
    assert len(second) == 6 and names(second)[:2] == ["relu · round 2 · 1000", "gelu · round 2 · 1000"]


@pytest.mark.parametrize("status", ["diverged", "failed"])
def test_a_row_without_a_score_goes_whatever_it_was(tmp_path, status):
    def end(job):
        gone = {"status": status, "reason": "for a reason"} if "swiglu" in job.name else {}
        done(job)
        job.run.update(**gone)

    _, second, last = go(tmp_path, end)
    assert names(second) == ["relu · round 2", "gelu · round 2", "geglu · round 2"]
    table = reporting.read(tmp_path / "runs", "c")
    row = next(row for row in table.rows if row.name == "swiglu")
    assert (row.status, row.reason) == ("dropped after 2 steps", f"{status}: for a reason")


def test_who_has_no_score_is_not_kept_for_lack_of_others(tmp_path):
    def end(job):
        done(job)
        job.run.update(status="diverged")

    first, last = go(tmp_path, end)
    assert len(first) == 7 and names(last) == ["relu · 0", "relu · 1"], "nobody but the baseline is left"


def test_nothing_is_dropped_before_every_run_of_a_round_has_ended(tmp_path):
    found, library = read(tmp_path)
    jobs = write_trials(found, Prepared(library), tmp_path / "runs", "a.yaml")
    for job in jobs[:-1]:
        done(job)
    assert names(write_trials(found, Prepared(library), tmp_path / "runs", "a.yaml")) == names(jobs)
    assert write_comparison(found, Prepared(library), tmp_path / "runs", "a.yaml") == []
    assert {row["halving"]["rounds"][0]["dev"] for row in document(tmp_path)["rows"]} == {None}
    done(jobs[-1])
    assert len(write_trials(found, Prepared(library), tmp_path / "runs", "a.yaml")) == 7 + 3


def test_two_shards_drop_what_one_machine_drops(tmp_path):
    (tmp_path / "a").mkdir(), (tmp_path / "b").mkdir()
    whole = {job.run.id for jobs in go(tmp_path / "a") for job in jobs}
    found, library = read(tmp_path / "b")
    every, out = [], tmp_path / "b/runs"
    for turn in range(3):
        folders = [tmp_path / f"b/{turn}-{i}" for i in (1, 2)]
        for i, folder in enumerate(folders, 1):
            if turn:
                merge(folder, [out])
            for jobs in plan_stages(found, Prepared(library), folder, "a.yaml", Shard(i, 2)):
                for job in (job for job in jobs if not job.run.finished):
                    every.append(job.run.id)
                    done(job)
        assert bool(find_missing(out, merge(out, folders))) == (turn < 2)
    assert len(every) == len(whole) and set(every) == whole
    assert document(tmp_path / "a")["rows"] == document(tmp_path / "b")["rows"]


def test_a_dropped_row_is_an_outcome_and_no_number(tmp_path):
    go(tmp_path)
    table = reporting.read(tmp_path / "runs", "c")
    text = reporting.to_markdown(table)
    status = {line[0]: line[-1] for line in markdown_rows(text)[2:]}
    assert status == {
        "relu": "2/2 done", "gelu": "2/2 done", "swiglu": "dropped after 6 steps: 2nd of 2 on dev",
        "geglu": "dropped after 2 steps: 3rd of 6 on dev", "relu2": "dropped after 2 steps: 4th of 6 on dev",
        "reglu": "dropped after 2 steps: 5th of 6 on dev", "glu": "dropped after 2 steps: 6th of 6 on dev",
    }  # fmt: skip
    assert {row.name for row in table.rows if row.test or row.dev or row.difference} == {"relu", "gelu"}
    assert "- swiglu: no verdict: dropped after 6 steps, 2nd of 2 on dev." in text
    assert (
        "of those beside the baseline, the best 1/3 on dev went on, after 2 steps of 6 rows, after 6 steps of 2 rows. "
        "Each round is a run of its own with seed 1000. This favours variants that learn fast. Verdicts are on the rows "
        "that are left, and corrected over these alone; the 5 dropped are not shown to be worse."
    ) in text
    found = json.loads(reporting.to_json(table))
    assert {row["name"]: row["halving"]["dropped"] for row in found["rows"]} == {
        name: name not in ("relu", "gelu") for name in NAMES
    }
    assert "dropped after 6 steps" in reporting.to_html(table) and "<skipped" in reporting.FORMATS["junit"].render(
        table
    )


def test_slots_are_not_averaged_over_what_is_left(tmp_path):
    body = BODY.replace("vary: {", "vary: {norm: [rmsnorm, layernorm], ").replace("baseline: relu\n", "")
    go(tmp_path, lambda job: score(job.run, len(job.name) / 100), body)
    assert (
        "No slot is averaged over others: which settings are left was decided by their scores."
        in reporting.to_markdown(reporting.read(tmp_path / "runs", "c"))
    )


def test_how_many_are_left_at_most():
    assert count_rounds(Halving(3, 3, (0,)), 9) == [9, 3, 1] and count_rounds(Halving(3, 3, (0,)), 10) == [10, 4, 2]
    assert count_rounds(Halving(2, 2, (0,)), 5) == [5, 3] and count_rounds(Halving(5, 2, (0,)), 3) == [3, 2, 1]
    assert count_rounds(Halving(3, 3, (0,)), 1) == [1]


def test_a_plan_says_what_it_takes_at_most(tmp_path):
    """In units of one run of 18 steps: 7 of 2, 3 of 6 and 4 whole ones, all rows as wide."""
    path = write(tmp_path, "comparisons:\n  c:\n" + textwrap.indent(SHORT + BODY, "    "))
    words = ["plan", str(path), "--out", str(tmp_path / "runs"), "--no-time"]
    said = CliRunner().invoke(main, words).stdout
    assert "at most 4 runs and 10 in rounds of halving before them, " in said
    go(tmp_path)
    said = CliRunner().invoke(main, words).stdout
    assert "\n4 runs and 10 in rounds of halving before them, " in said and "all of them have ended" in said
    left = {line.split()[0]: line.split()[-2:] for line in said.splitlines() if line.split()[0] in NAMES}
    assert [name for name, (runs, _) in left.items() if runs != "0"] == ["relu", "gelu"]


def test_a_seed_of_the_report_among_those_of_the_rounds_is_warned_of(tmp_path):
    (said,) = warnings(comparison(tmp_path, ROWS + "halving: {seeds: [1]}"))
    assert said == "seed 1 chooses rows and is scored with them; let rounds have others"
    assert warnings(comparison(tmp_path, ROWS + "halving: {seeds: 2}")) == []


def test_the_rule_as_it_is_written_out(tmp_path):
    found = comparison(tmp_path, ROWS + "halving: {seeds: 2}")
    assert found.plain()["halving"] == {"rounds": 3, "factor": 3, "seeds": [1000, 1001]}


def test_rows_that_agree_agree_in_every_round(tmp_path):
    body = "model: {}\nvary: {train.batch_size: [4, 8, 16]}\ntrain: {steps: 16}\nmatch: tokens\nhalving: {rounds: 2, factor: 4}\n"
    found, library = read(tmp_path, body)
    jobs = write_trials(found, Prepared(library), tmp_path / "runs", "a.yaml")
    assert [(t["batch_size"], t["steps"]) for job in jobs if (t := spec(job)["train"])] == [(4, 4), (8, 2), (16, 1)]


@pytest.mark.parametrize(
    "body, said",
    [
        ("halving: 3", "11:14: halving is 3; it should be a mapping"),
        ("halving: {round: 3}", "11:15: halving has no option 'round'; did you mean 'rounds'?"),
        ("halving: {rounds: 1}", "11:23: halving.rounds is 1; it should be an integer of at least 2 and at most 1000"),
        ("halving: {factor: 1.5}", "11:23: halving.factor is 1.5; it should be an integer of at least 2 and at most 1000"),
        ("halving: {}\ntune: {lr: [1, 2]}",
         "11:5: beside 'tune' there can be no 'halving': rows would be dropped before their settings are chosen"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_halving(tmp_path, body, said):
    (line,) = faults(lambda: comparison(tmp_path, ROWS + body))
    assert line == f"a.yaml:{said}"


def test_too_few_steps_to_divide(tmp_path):
    found, library = read(tmp_path, BODY.replace("steps: 18", "steps: 8"))
    (line,) = faults(lambda: write_trials(found, Prepared(library), tmp_path / "runs", "a.yaml"))
    assert line.endswith("row 'relu' has 8 steps, and halving would divide them by 9")


def test_ranks_as_they_are_read():
    assert [ordinal(n) for n in (1, 2, 3, 4, 11, 12, 13, 21, 112, 122)] == (
        "1st 2nd 3rd 4th 11th 12th 13th 21st 112th 122nd".split()
    )


def test_from_a_file_to_what_is_left_as_a_user_runs_it(tmp_path):
    """Real processes; what is done is not repeated."""
    body = (
        SHORT + "models: [{ffn: relu}, {ffn: gelu}, {ffn: relu2}]\ntrain: {steps: 2}\nhalving: {rounds: 2, factor: 2}\n"
    )
    path = write(tmp_path, "comparisons:\n  c:\n" + textwrap.indent(body, "    "))
    words = ["run", str(path), "--out", str(tmp_path / "runs"), "--workers", "2"]
    first = CliRunner().invoke(main, words)
    assert first.exit_code == 0, first.output
    rows = document(tmp_path)["rows"]
    assert [len(row["runs"]) for row in rows] in ([1, 1, 0], [1, 0, 1])
    stamps = {p: p.stat().st_mtime_ns for p in tmp_path.glob("runs/*/metrics.jsonl")}
    assert len(stamps) == 5 and CliRunner().invoke(main, words).exit_code == 0
    assert {p: p.stat().st_mtime_ns for p in tmp_path.glob("runs/*/metrics.jsonl")} == stamps
