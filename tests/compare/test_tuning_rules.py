"""Trials whose values are drawn: what Optuna would draw itself, whoever asks, in whatever order they end."""

import json
import math
import sys
import textwrap

import pytest
from click.testing import CliRunner
from support.comparisons import BASE, comparison
from support.files import faults, write
from support.trials import document, opened, score

from zoo import reporting
from zoo.cli import main
from zoo.compare.comparison import warnings
from zoo.compare.prepared import Prepared
from zoo.execute.merge import find_missing, merge
from zoo.execute.shard import Shard
from zoo.execute.stages import plan_stages, write_trials

ARMS = "models: [{ffn: relu}, {ffn: gelu}]\nseeds: 2\n"
SPAN = "lr: {from: 1e-4, to: 1e-1, scale: log}"
TUNE = f"tune: {{trials: 7, per_round: 3, {SPAN}, warmup: {{from: 0, to: 3}}}}\n"
SPACE = ("lr", "warmup")


@pytest.fixture
def optuna():
    return pytest.importorskip("optuna", reason="the package 'optuna' is not installed")


def values(record):
    train = record.spec["train"]
    return {path: train[path] for path in SPACE}


def dev(record):
    """A smooth score with one best point, which differs between the rows."""
    found, best = values(record), {"relu": -1.5, "gelu": -3.5}[record.spec["model"]["ffn"]["name"]]
    return 0.9 - 0.1 * abs(math.log10(found["lr"]) - best) - 0.01 * found["warmup"]


def done(job):
    score(job.run, dev(job.run.read()))


def lost(job):
    """High rates diverge, as one of the first three is."""
    status = "done" if values(job.run.read())["lr"] < 3e-3 else "diverged"
    score(job.run, dev(job.run.read()), status)


def go(tmp_path, body=ARMS + TUNE, end=done, order=list, out="runs", shard=None):
    """Every stage, its jobs ended in some order; the jobs of each."""
    found, library = opened(tmp_path, body)
    out = []
    for jobs in plan_stages(found, Prepared(library), tmp_path / "runs", "a.yaml", shard or Shard()):
        out.append([job.run.id for job in jobs])
        for job in order(jobs):
            end(job)
    return out


def tried(tmp_path):
    """What every row has tried, in order."""
    return {row["name"]: [trial["values"] for trial in row["tuning"]["trials"]] for row in document(tmp_path)["rows"]}


def asked(optuna, tmp_path, row, sampler, sizes):
    """The values that a study fed by hand suggests, given what the folders of the row's trials say."""
    made = optuna.distributions
    space = {"lr": made.FloatDistribution(1e-4, 1e-1, log=True), "warmup": made.IntDistribution(0, 3)}
    study = optuna.create_study(direction="maximize", sampler=sampler)
    trials, out = iter(row["tuning"]["trials"]), []
    for size in sizes:
        batch = [study.ask(space) for _ in range(size)]
        out += [trial.params for trial in batch]
        for trial, known in zip(batch, trials):
            record = json.loads((tmp_path / "runs" / known["runs"][0]["id"] / "run.json").read_text())
            if record["status"] == "done":
                study.tell(trial, record["best"]["dev"]["accuracy"])
            else:
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
    return out


@pytest.mark.parametrize("end", [done, lost], ids=["all have scores", "some have none"])
def test_values_are_those_of_a_study_fed_by_hand(tmp_path, optuna, end):
    go(tmp_path, end=end)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    statuses = set()
    for row in document(tmp_path)["rows"]:
        sampler = optuna.samplers.TPESampler(seed=1000, n_startup_trials=3)
        assert asked(optuna, tmp_path, row, sampler, (3, 3, 1)) == tried(tmp_path)[row["name"]]
        statuses |= {trial["status"] for trial in row["tuning"]["trials"]}
    assert statuses == ({"done"} if end is done else {"done", "diverged"})


def test_random_values_are_asked_for_at_once(tmp_path, optuna):
    stages = go(tmp_path, ARMS + TUNE.replace("per_round: 3", "sampler: random"))
    assert [len(jobs) for jobs in stages] == [14, 4]
    for row in document(tmp_path)["rows"]:
        assert (
            asked(optuna, tmp_path, row, optuna.samplers.RandomSampler(seed=1000), (7,)) == tried(tmp_path)[row["name"]]
        )


def test_all_rows_have_as_many_trials_and_begin_with_the_same(tmp_path, optuna):
    stages = go(tmp_path)
    assert [len(jobs) for jobs in stages] == [6, 6, 2, 4]
    relu, gelu = tried(tmp_path).values()
    assert relu[:3] == gelu[:3] and relu[3:6] != gelu[3:6] and len(relu) == len(gelu) == 7
    for row in document(tmp_path)["rows"]:
        best = max(row["tuning"]["trials"], key=lambda trial: trial["dev"])
        assert row["tuning"]["chosen"] == best["values"]
        assert {run["seed"] for trial in row["tuning"]["trials"] for run in trial["runs"]} == {1000}
        assert [run["seed"] for run in row["runs"]] == [0, 1]


def test_the_order_in_which_they_end_does_not_matter(tmp_path, optuna):
    (tmp_path / "a").mkdir(), (tmp_path / "b").mkdir()
    one, two = go(tmp_path / "a"), go(tmp_path / "b", order=lambda jobs: jobs[::-1])
    assert one == two


def test_nothing_is_drawn_while_a_trial_of_the_round_is_to_come(tmp_path, optuna):
    found, library = opened(tmp_path, ARMS + TUNE)
    jobs = write_trials(found, Prepared(library), tmp_path / "runs", "a.yaml")
    for job in jobs[:-1]:
        done(job)
    again = write_trials(found, Prepared(library), tmp_path / "runs", "a.yaml")
    assert [job.run.id for job in again] == [job.run.id for job in jobs], "of no row: all go on together"
    assert all(row["runs"] == [] and row["tuning"]["chosen"] is None for row in document(tmp_path)["rows"])
    assert {trial["dev"] for row in document(tmp_path)["rows"] for trial in row["tuning"]["trials"]} == {None}


def test_who_is_stopped_between_rounds_draws_the_same(tmp_path, optuna):
    (tmp_path / "a").mkdir(), (tmp_path / "b").mkdir()
    whole = go(tmp_path / "a")
    found, library = opened(tmp_path / "b", ARMS + TUNE)
    for stop in range(4):
        parts = plan_stages(found, Prepared(library), tmp_path / "b/runs", "a.yaml")
        for job in [job for job in next(parts) if not job.run.finished][: 1 + stop]:
            done(job)
    assert {run for jobs in go(tmp_path / "b") for run in jobs} == {run for jobs in whole for run in jobs}
    assert document(tmp_path / "a")["rows"] == document(tmp_path / "b")["rows"]


def test_a_trial_that_failed_is_tried_once_in_a_run(tmp_path, optuna):
    def failing(job):
        score(job.run, dev(job.run.read()), "failed" if values(job.run.read())["warmup"] == 3 else "done")

    first = go(tmp_path, end=failing)
    every = [run for jobs in first for run in jobs]
    assert len(every) == len(set(every))
    statuses = [trial["status"] for row in document(tmp_path)["rows"] for trial in row["tuning"]["trials"]]
    assert "failed" in statuses and None not in statuses
    found, library = opened(tmp_path, ARMS + TUNE)
    again = write_trials(found, Prepared(library), tmp_path / "runs", "a.yaml")
    assert sum(not job.run.finished for job in again) == statuses.count("failed"), "and again in the next"


def test_two_shards_draw_what_one_machine_draws(tmp_path, optuna):
    (tmp_path / "a").mkdir(), (tmp_path / "b").mkdir()
    whole = go(tmp_path / "a")
    found, library = opened(tmp_path / "b", ARMS + TUNE)
    every, out = [], tmp_path / "b/runs"
    for turn in range(4):
        folders = [tmp_path / f"b/{turn}-{i}" for i in (1, 2)]
        for i, folder in enumerate(folders, 1):
            if turn:
                merge(folder, [out])
            for jobs in plan_stages(found, Prepared(library), folder, "a.yaml", Shard(i, 2)):
                for job in jobs:
                    if not job.run.finished:
                        every.append(job.run.id)
                        done(job)
        said = find_missing(out, merge(out, folders))
        assert bool(said) == (turn < 3)
        assert all(
            "what ffn=" in line and line.endswith(f"becomes, 'zoo run' with --out {out} finds out") for line in said
        )
    assert sorted(every) == sorted(run for jobs in whole for run in jobs), "and none of them twice"
    assert document(tmp_path / "a")["rows"] == document(tmp_path / "b")["rows"]


def test_a_trial_is_the_run_that_it_is_in_a_grid(tmp_path, optuna):
    go(tmp_path, ARMS + "tune: {trials: 3, sampler: random, lr: [1e-3, 2e-3, 4e-3]}\n")
    drawn = {trial["values"]["lr"]: trial["runs"] for trial in document(tmp_path)["rows"][0]["tuning"]["trials"]}
    found, library = opened(tmp_path, ARMS + "tune: {lr: [1e-3, 2e-3, 4e-3]}\n")
    write_trials(found, Prepared(library), tmp_path / "runs", "a.yaml")
    grid = {trial["values"]["lr"]: trial["runs"] for trial in document(tmp_path)["rows"][0]["tuning"]["trials"]}
    assert drawn and all(grid[lr] == runs for lr, runs in drawn.items())


def test_lists_and_ranges_side_by_side(tmp_path, optuna):
    tune = "{trials: 12, sampler: random, warmup: {from: 1, to: 3, scale: log}, clip: {from: 1, to: 2}, "
    tune += "optimizer.weight_decay: {from: 0, to: 1}, optimizer: [adamw, {eps: 1e-6}], schedule: [constant, cosine]}"
    found, library = opened(tmp_path, f"model: {{}}\ntune: {tune}\n")
    specs = [
        job.run.read().spec["train"] for job in write_trials(found, Prepared(library), tmp_path / "runs", "a.yaml")
    ]
    assert {spec["warmup"] for spec in specs} == {1, 2, 3} and {type(spec["warmup"]) for spec in specs} == {int}
    assert all(type(spec["clip"]) is float and 1 <= spec["clip"] <= 2 for spec in specs), (
        "the setting is no whole number"
    )
    assert len({spec["optimizer"]["weight_decay"] for spec in specs}) == 12, "the whole optimizer is put in before it"
    assert {spec["optimizer"]["eps"] for spec in specs} == {1e-8, 1e-6}
    assert {s if isinstance(s := spec["schedule"], str) else s["name"] for spec in specs} == {"constant", "cosine"}
    plain = found.plain()["tune"]
    assert plain["optimizer"] == ["adamw", {"eps": 1e-6}] and plain["clip"] == {"from": 1, "to": 2, "scale": "linear"}
    assert (plain["trials"], plain["sampler"], plain["per_round"], plain["seeds"]) == (12, "random", 12, [1000])


def test_trials_are_of_the_matched_steps(tmp_path, optuna):
    body = "model: {}\nvary: {train.batch_size: [4, 8]}\nmatch: tokens\n" + TUNE
    found, library = opened(tmp_path, body, base=BASE.replace("steps: 3", "steps: 40"))
    jobs = write_trials(found, Prepared(library), tmp_path / "runs", "a.yaml")
    assert {(r["train"]["batch_size"], r["train"]["steps"]) for job in jobs if (r := job.run.read().spec)} == {
        (4, 40), (8, 20),
    }  # fmt: skip


def test_a_value_near_the_end_of_its_range_is_told(tmp_path, optuna):
    """5 % of 1e-4 to 1e-1 on its logarithm is up to 1.41e-4, and of 0 to 3 is 0.15."""
    go(tmp_path, end=lambda job: score(job.run, 1 - values(job.run.read())["lr"]), body=ARMS + TUNE.replace("7", "20"))
    for row in document(tmp_path)["rows"]:
        lr = row["tuning"]["chosen"]["lr"]
        assert lr < 1.41e-4 and row["tuning"]["edge"]["lr"] == "low"
        assert ("warmup" in row["tuning"]["edge"]) == (row["tuning"]["chosen"]["warmup"] in (0, 3))
    text = reporting.to_markdown(reporting.read(tmp_path / "runs", "c"))
    assert f"lr {lr:g} is at the low end of its range; a better may lie beyond." in text


def test_a_report_says_what_was_searched_and_how(tmp_path, optuna):
    go(tmp_path, end=lost)
    table = reporting.read(tmp_path / "runs", "c")
    text = reporting.to_markdown(table)
    gone = sum(trial["dev"] is None for row in document(tmp_path)["rows"] for trial in row["tuning"]["trials"])
    assert (
        "Tuned: lr from 0.0001 to 0.1 on a log scale, warmup from 0 to 3; 7 trials for every row, drawn by tpe of "
        f"Optuna {optuna.__version__}, 3 at once, chosen on dev with seed 1000; {gone} of 14 trials ended without a score."
    ) in text
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if " of 7 " in line]
    for row in document(tmp_path)["rows"]:
        found = sorted((trial["dev"] for trial in row["tuning"]["trials"] if trial["dev"] is not None), reverse=True)
        name, best, _, worst, scored, chosen = next(line for line in lines if line[0] == row["name"])
        assert (best, worst) == (f"{found[0]:.3f}", f"{found[-1]:.3f}") and scored == f"{len(found)} of 7"
        assert chosen == ", ".join(f"{path} {value:g}" for path, value in row["tuning"]["chosen"].items())


def test_a_plan_counts_trials_that_are_not_drawn_yet(tmp_path, optuna):
    path = write(
        tmp_path, "comparisons:\n  c:\n" + textwrap.indent(BASE + ARMS + TUNE.replace("7,", "7, seeds: 2,"), "    ")
    )
    said = CliRunner().invoke(main, ["plan", str(path), "--out", str(tmp_path / "runs"), "--no-time"]).stdout
    assert "4 runs and 28 trials before them, " in said
    flops = said[said.index("before them, ") :].split("FLOPs")[0]
    grid = BASE + ARMS + "tune: {lr: [1, 2, 3, 4, 5, 6, 7], seeds: 2}"
    write(tmp_path, "comparisons:\n  c:\n" + textwrap.indent(grid, "    "))
    said = CliRunner().invoke(main, ["plan", str(path), "--out", str(tmp_path / "runs"), "--no-time"]).stdout
    assert "4 runs and 28 trials " + flops in said


def test_a_seed_of_the_report_among_those_of_the_trials_is_warned_of(tmp_path, optuna):
    (said,) = warnings(comparison(tmp_path, f"model: {{}}\ntune: {{trials: 2, {SPAN}, seeds: [1]}}\nseeds: 3"))
    assert said.startswith("seed 1 chooses settings")


WRONG = [
    ("{lr: {from: 1, to: 2}}", "8:12: beside 'lr' there should be 'trials', how many values are drawn"),
    ("{lr: [1], sampler: tpe}", "8:21: beside 'sampler' there should be 'trials', how many values are drawn"),
    ("{trials: 2}", "8:11: tune names no setting; it should have one at least"),
    ("{trails: 2, lr: [1]}", "8:12: tune has no 'trails'; did you mean 'trials'?"),
    ("{trials: 0, lr: [1]}", "8:20: tune.trials is 0; it should be an integer of at least 1 and at most 1000"),
    ("{trials: 2, per_round: 1.5, lr: [1]}", "8:34: tune.per_round is 1.5; it should be an integer of at least 1 and at most 1000"),
    ("{trials: 2, sampler: tpa, lr: [1]}", "8:32: tune.sampler is 'tpa'; it should be one of tpe, random; did you mean 'tpe'?"),
    ("{trials: 2, lr: {from: 2}}", "8:27: tune.lr needs 'to', a number"),
    ("{trials: 2, lr: {from: 2, to: 1}}", "8:27: from is 2 and to 1; from should be below to"),
    ("{trials: 2, lr: {from: x, to: 1}}", "8:34: tune.lr.from is 'x'; it should be a number"),
    ("{trials: 2, lr: {from: 0, to: 1, scale: log}}", "8:34: from is 0; on a log scale it should be above 0"),
    ("{trials: 2, lr: {from: 1, to: 2, scale: lag}}",
     "8:51: tune.lr.scale is 'lag'; it should be one of linear, log; did you mean 'log'?"),
    ("{trials: 2, lr: {form: 1, to: 2}}", "8:27: tune.lr needs 'from', a number"),
    ("{trials: 2, lr: {from: -1, to: 2}}", "8:34: train.lr is -1; it should be a number above 0"),
    ("{trials: 2, warmup: {from: 0, to: 2.5}}", "8:45: train.warmup is 2.5; it should be an integer"),
    ("{trials: 2, optimizer.decay: {from: 0, to: 1}}", "8:41: optimizer 'adamw' has no option 'decay'"),
]  # fmt: skip


@pytest.mark.parametrize("body, said", WRONG, ids=[body for body, _ in WRONG])
def test_what_is_wrong_in_what_is_drawn(tmp_path, monkeypatch, body, said):
    monkeypatch.setattr("zoo.compare.tuning_rules.find_spec", lambda name: name == "optuna")  # reading needs none
    lines = faults(lambda: comparison(tmp_path, f"model: {{}}\ntune: {body}"))
    assert lines[0].startswith(f"a.yaml:{said}") and len(lines) == len(set(lines))


def test_where_optuna_is_not_installed(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    (line,) = faults(lambda: comparison(tmp_path, f"model: {{}}\n{TUNE}"))
    assert line == "a.yaml:8:12: drawn trials need Optuna: pip install 'transformer-zoo[tune]'"
    found, library = opened(tmp_path, ARMS + "tune: {lr: [1, 2]}\n")
    assert len(write_trials(found, Prepared(library), tmp_path / "runs", "a.yaml")) == 4, "a grid does without"


def test_the_schema_takes_what_the_reader_takes():
    jsonschema = pytest.importorskip("jsonschema", reason="the package 'jsonschema' is not installed")
    from zoo.compare.schema import schema
    from zoo.declare.library import own_registry

    whole = schema(own_registry())
    check = jsonschema.Draft202012Validator({"$ref": "#/$defs/comparison/properties/tune", "$defs": whole["$defs"]})
    span = {"from": 1e-4, "to": 1e-2, "scale": "log"}
    for good in ({"trials": 3, "lr": span}, {"trials": 3, "lr": [1e-3], "optimizer.eps": span, "sampler": "random"},
                 {"lr": [1e-3], "seeds": 2}, {"trials": 9, "per_round": 3, "optimizer": ["adamw"]}):  # fmt: skip
        assert check.is_valid(good), good
    for bad in ({"lr": span}, {"trials": 3}, {"trials": 3, "seeds": 1}, {"trials": 0, "lr": span}, {"seeds": 1},
                {"trials": 3, "lr": {"from": 1}}, {"sampler": "tpe", "lr": [1e-3]}, {"trials": 3, "schedule": span}):  # fmt: skip
        assert not check.is_valid(bad), bad


def test_from_a_file_to_a_choice_as_a_user_runs_it(tmp_path, optuna):
    """Real processes; the second trial is drawn when the first has ended, and nothing is done twice."""
    body = (
        BASE.replace("steps: 3", "steps: 2, eval_every: 2")
        + f"model: {{}}\ntune: {{trials: 2, per_round: 1, {SPAN}}}\n"
    )
    path = write(tmp_path, "comparisons:\n  c:\n" + textwrap.indent(body, "    "))
    words = ["run", str(path), "--out", str(tmp_path / "runs"), "--workers", "1"]
    first = CliRunner().invoke(main, words)
    assert first.exit_code == 0, first.output
    (row,) = document(tmp_path)["rows"]
    assert [trial["status"] for trial in row["tuning"]["trials"]] == ["done"] * 2 and len(row["runs"]) == 1
    assert (
        json.loads((tmp_path / "runs" / row["runs"][0]["id"] / "run.json").read_text())["spec"]["train"]["lr"]
        == (row["tuning"]["chosen"]["lr"])
    )
    stamps = {p: p.stat().st_mtime_ns for p in tmp_path.glob("runs/*/metrics.jsonl")}
    assert len(stamps) == 3 and CliRunner().invoke(main, words).exit_code == 0
    assert {p: p.stat().st_mtime_ns for p in tmp_path.glob("runs/*/metrics.jsonl")} == stamps
