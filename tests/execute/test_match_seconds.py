"""Rows that train for as many seconds: steps that are timed by turns, solved for, and kept."""

import json
from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from support.files import faults, write
from support.tables import run, table
from support.tasks import Counting, settings, tiny

from zoo import reporting
from zoo.cli import main
from zoo.compare.comparison import read_comparison
from zoo.compare.match_budget import match_rows
from zoo.compare.prepared import Prepared
from zoo.declare.library import open_library
from zoo.declare.spec import Train
from zoo.execute import match_seconds, step_timer
from zoo.execute.merge import merge
from zoo.execute.stages import write_comparison
from zoo.record import RunRecord

FILE = """
comparisons:
  c:
    models: {models}
    shape: {{d_model: 16, n_heads: 2, n_layers: 1, max_len: 16}}
    task: {{name: copy, symbols: 4, min_length: 2, max_length: 3}}
    train: {{steps: 100, batch_size: {batch}, warmup: 10, lr: {lr}{train}}}
    seeds: {seeds}
    match: {match}
{more}
"""
THREE = "[{ffn: relu}, {ffn: swiglu}, {ffn: none}]"


class Timer:
    """Gives each row the seconds that it is told to, and remembers which rows were asked for, with how many workers."""

    def __init__(self, **seconds):
        self.seconds, self.asked = seconds, []

    def __call__(self, records, workers):
        parts = [record.spec["model"]["ffn"] for record in records]
        names = [part["name"] if isinstance(part, dict) else part for part in parts]
        self.asked.append((names, workers))
        return [self.seconds[name] for name in names]


NEVER = Timer()


def file(folder, models=THREE, match="seconds", batch=4, lr=1e-3, train="", seeds=2, more=""):
    text = FILE.format(models=models, match=match, batch=batch, lr=lr, train=train, seeds=seeds, more=more)
    return write(folder, text)


def solved(folder, timer, workers=2, why_not="", said=None, **written):
    library = open_library(file(folder, **written))
    found = read_comparison(library, "c")
    say = (lambda line: None) if said is None else said.append
    return match_seconds.match_by_seconds(
        found, Prepared(library), folder / "runs", workers, why_not=why_not, say=say, timer=timer
    )


def steps(found):
    return [row.runs[0].train.steps for row in found.rows]


def ids(found):
    return [run.id() for row in found.rows for run in row.runs]


QUICK = {"relu": 0.01, "swiglu": 0.04, "none": 0.003}


def test_steps_give_every_row_the_seconds_of_the_baseline(tmp_path):
    found = solved(tmp_path, timer := Timer(**QUICK), more="    references: [{name: n-gram}]")
    assert timer.asked == [(["relu", "swiglu", "none"], 2)]
    assert steps(found) == [100, 25, 333] and len(found.references) == 1
    assert [row.match["value"] for row in found.rows] == pytest.approx([1.0, 1.0, 0.999])
    assert [row.match["mismatch"] for row in found.rows] == pytest.approx([0, 0, -0.001])
    assert {each.train.warmup for row in found.rows for each in row.runs} == {10}
    assert found.rows[0].differs == {} and found.rows[1].differs["train.steps"] == "25"


def test_seconds_of_ones_own_and_trials_with_the_same_steps(tmp_path):
    found = solved(tmp_path, Timer(**QUICK), match="{what: seconds, to: 6}", more="    tune: {lr: [1.0, 2.0]}")
    assert steps(found) == [600, 150, 2000]
    assert [{each.train.steps for trial in row.trials for each in trial.runs} for row in found.rows] == [
        {600}, {150}, {2000},
    ]  # fmt: skip


def test_a_budget_in_tokens_is_as_many_seconds_as_its_steps(tmp_path):
    text = file(tmp_path, models="[{ffn: relu}, {ffn: swiglu}]").read_text().replace("steps: 100", "tokens: 1400")
    library = open_library(write(tmp_path, text))
    found = match_seconds.match_by_seconds(
        read_comparison(library, "c"), Prepared(library), tmp_path / "runs", 1, timer=Timer(**QUICK)
    )
    base, other = (row.match["size"] for row in found.rows)
    assert found.base.runs[0].train.tokens == 1400 and 50 < base < 200 and other == pytest.approx(base / 4, abs=1)


def test_what_was_timed_is_kept_and_the_runs_stay_what_they_are(tmp_path):
    first = solved(tmp_path, Timer(**QUICK))
    assert ids(solved(tmp_path, NEVER)) == ids(first)
    more = solved(tmp_path, NEVER, seeds=5, lr=7.0)
    assert steps(more) == steps(first) and len(more.rows[0].runs) == 5, "neither decides how long a step takes"
    assert NEVER.asked == []


def test_without_the_file_or_with_another_batch_steps_are_timed_again(tmp_path):
    before = solved(tmp_path, Timer(**QUICK))
    slow = Timer(relu=0.01, swiglu=0.05, none=0.01)
    assert steps(solved(tmp_path, slow, batch=8)) == [100, 20, 100]
    assert ids(solved(tmp_path, NEVER)) == ids(before), "and what was timed of the old ones is still there"
    (tmp_path / "runs/c/speeds.json").unlink()
    assert steps(solved(tmp_path, slow)) == [100, 20, 100] and len(slow.asked) == 2


def test_a_new_row_is_timed_beside_a_kept_one(tmp_path):
    """The machine is half as fast now: the new row stands to the baseline as it did then."""
    before = solved(tmp_path, Timer(**QUICK), models="[{ffn: relu}, {ffn: swiglu}]")
    later = Timer(relu=0.02, none=0.01)
    after = solved(tmp_path, later)
    assert later.asked == [(["relu", "none"], 2)] and steps(after) == [100, 25, 200]
    assert ids(after)[:4] == ids(before)


@pytest.mark.parametrize("change", [{"cores": 96}, {"processor": "another"}, None])
def test_another_machine_or_load_times_anew_and_says_so(tmp_path, monkeypatch, change):
    before, said, known = solved(tmp_path, Timer(**QUICK)), [], match_seconds.machine()
    workers = 2 if change else 7
    if change:
        monkeypatch.setattr(match_seconds, "machine", lambda: known | change)
    after = solved(tmp_path, Timer(relu=0.01, swiglu=0.02, none=0.01), workers, said=said)
    assert steps(after) == [100, 50, 100] and len(said) == 2
    assert "steps are timed anew" in said[0] and said[1] == f"timing training steps: 3 rows by turns, {workers} at once"
    assert str(*(change or {"": "7 at once"}).values()) in said[0].partition("this is")[2]
    assert ids(solved(tmp_path, NEVER, workers)) == ids(after)
    monkeypatch.undo()
    assert ids(solved(tmp_path, NEVER)) == ids(before), "each machine keeps its own"


def test_where_nothing_can_be_timed_what_is_kept_serves(tmp_path, monkeypatch):
    (line,) = faults(lambda: solved(tmp_path, NEVER, why_not="--shard 1/2"))
    assert line.startswith("match: seconds: --shard 1/2, and ") and "speeds.json does not hold" in line
    assert line.endswith("'zoo plan' on one machine writes that file, to be put there on every one")
    before = solved(tmp_path, Timer(**QUICK))
    monkeypatch.setattr(match_seconds, "machine", lambda: {"processor": "another", "cores": 64})
    assert ids(solved(tmp_path, NEVER, 9, why_not="--shard 1/2")) == ids(before)
    (line,) = faults(lambda: solved(tmp_path, NEVER, why_not="--shard 1/2", batch=8))
    assert "does not hold" in line


def test_shards_that_were_merged_go_on_with_their_steps(tmp_path, monkeypatch):
    library = open_library(file(tmp_path))
    for name, ffn in (("one", 0.04), ("two", 0.04), ("odd", 0.05)):
        timer = Timer(**QUICK | {"swiglu": ffn})
        found = match_seconds.match_by_seconds(
            read_comparison(library, "c"), Prepared(library), tmp_path / name, 2, timer=timer
        )
        write_comparison(found, Prepared(library), tmp_path / name, "a.yaml")
    merge(tmp_path / "runs", [tmp_path / "one", tmp_path / "two"])
    monkeypatch.setattr(match_seconds, "machine", lambda: {"processor": "another", "cores": 64})
    first = match_seconds.match_by_seconds(
        read_comparison(library, "c"), Prepared(library), tmp_path / "one", 2, why_not="--shard 1/2"
    )
    assert ids(solved(tmp_path, NEVER, 9)) == ids(first)
    (line,) = faults(lambda: merge(tmp_path / "other", [tmp_path / "one", tmp_path / "odd"]))
    assert line.endswith("are of one name, and not the same comparison")


def test_what_cannot_be_timed(tmp_path):
    (line,) = faults(lambda: solved(tmp_path, NEVER, models="[{ffn: relu}]", train=", processes: 2"))
    assert line == ("a.yaml:3:14: row 'ffn=relu': match: seconds cannot time runs of 2 processes; match training-flops")
    (line,) = faults(lambda: solved(tmp_path, NEVER, models="[{}]", more="    tune: {optimizer: [adamw, sgd]}"))
    assert "takes one optimizer for all trials" in line and line.startswith("a.yaml:9:31: ")
    library = open_library(file(tmp_path))
    (line,) = faults(lambda: match_rows(read_comparison(library, "c"), Prepared(library)))
    assert "no step of these rows has been timed" in line
    (tmp_path / "runs/c/speeds.json").parent.mkdir(parents=True)
    (tmp_path / "runs/c/speeds.json").write_text("{")
    (line,) = faults(lambda: solved(tmp_path, NEVER))
    assert "speeds.json cannot be read: " in line and line.endswith("without it, steps are timed anew")


# How steps are timed


class Drifting:
    """A clock of a machine that grows slower from step to step."""

    def __init__(self, *costs):
        self.now, self.costs = 0.0, costs

    def step(self, row):
        def step():
            taken = self.costs[row] * (1 + self.now / 20)
            self.now += taken
            return taken

        return step

    def rows(self):
        return [self.step(row) for row in range(len(self.costs))]


def in_turn(*rows):
    return [step_timer.by_turns(rows)]


def test_rows_by_turns_see_the_same_machine():
    machine = Drifting(0.01, 0.04, 0.02)
    rows = machine.rows()
    one, four, two = step_timer.medians(partial(in_turn, *rows), clock=lambda: 0.0)
    assert machine.now > 6 and four / one == pytest.approx(4, rel=0.02) and two / one == pytest.approx(2, rel=0.02)
    alone = Drifting(0.01, 0.04, 0.02)
    one, four, two = (step_timer.medians(partial(in_turn, row), clock=lambda: 0.0)[0] for row in alone.rows())
    assert four / one > 4.5 or two / one > 2.5, "one after the other they would not"


def test_a_round_begins_where_it_is_told_to_and_answers_in_order():
    order = []
    rows = [lambda i=i: order.append(i) or float(i) for i in range(3)]
    assert step_timer.by_turns(rows, 4) == [0.0, 1.0, 2.0]
    assert order == [i for i in (1, 2, 0) for _ in range(step_timer.STEPS)]


def test_what_disturbs_a_few_rounds_does_not_count():
    rounds = iter([[[9.0, 1.0]], [[1.0, 9.0]], *[[[1.0, 2.0]]] * 30])
    assert step_timer.medians(lambda: next(rounds), clock=lambda: 0.0) == [1.0, 2.0]
    assert len(list(rounds)) == 32 - step_timer.MOST
    ticks = iter(range(0, 10_000, 1000))
    rounds = iter([[[1.0]]] * 30)
    step_timer.medians(lambda: next(rounds), clock=lambda: next(ticks))
    assert len(list(rounds)) == 30 - step_timer.LEAST, "rounds that last are few"


def test_the_first_steps_do_not_count():
    taken = iter([100.0, 50.0, 20.0, 10.0, *[1.0] * 100])
    step = step_timer.warm_up(lambda: next(taken), 1)
    assert step_timer.by_turns([step]) == [1.0]


def test_a_timed_step_is_one_of_training_with_its_optimizer(monkeypatch):
    ticks, done, model = iter(range(0, 1000, 5)), [], tiny()
    before = {name: x.detach().clone() for name, x in model.named_parameters()}

    def optimizer(params):
        made = settings().optimizer(params=params)
        step = made.step
        made.step = lambda: done.append(1) or step()
        return made

    given = Train(steps=7, batch_size=4, schedule=settings().schedule, optimizer=optimizer, device="cpu")
    monkeypatch.setattr(step_timer, "perf_counter", lambda: next(ticks))
    step = step_timer.stepper(SimpleNamespace(task=Counting(), model=model, settings=given))
    assert [step() for _ in range(9)] == [5] * 9, "as often as one likes, whatever the budget"
    moved = max(float((x.detach() - before[name]).abs().max()) for name, x in model.named_parameters())
    assert len(done) == 9 and moved < 1e-6


def test_a_model_four_times_as_deep_takes_its_time_in_processes_of_their_own(tmp_path):
    """Embedding, head and the optimizer's calls keep the ratio below 4; noise meets both rows, by turns."""
    library = open_library(write(tmp_path, """
        comparisons:
          c:
            model: gpt2-like
            vary: {shape.n_layers: [2, 8]}
            shape: {d_model: 32, n_heads: 2, max_len: 16}
            task: {name: copy, symbols: 4, min_length: 2, max_length: 6}
            train: {steps: 1000, batch_size: 8}
            match: seconds
        """))  # fmt: skip
    found = match_seconds.match_by_seconds(read_comparison(library, "c"), Prepared(library), tmp_path / "runs", 2)
    assert found.rows[0].runs[0].train.steps == 1000 and 1000 / 6 < found.rows[1].runs[0].train.steps < 1000 / 1.7


@pytest.mark.parametrize("compiled, processes", [(False, 2), (True, 6)])
def test_workers_are_at_it_together_and_rows_that_are_compiled_apart(monkeypatch, compiled, processes):
    """Each record is its own seconds here; a worker begins where the one before does not."""
    made, events = [], []

    class Made:
        def __init__(self, asked):
            self.asked = asked
            made.append(self)

        def say(self, value):
            events.append(("go", self.asked))

        def hear(self):
            events.append(("done", self.asked))
            return [record["spec"]["seconds"] for record in self.asked["records"]]

    monkeypatch.setattr(step_timer, "start_timer", lambda asked: nullcontext(Made(asked)))
    monkeypatch.setattr(step_timer, "MOST", step_timer.LEAST)
    records = [
        RunRecord(format=1, id=f"{i}", spec={"seconds": float(i), "train": {"compile": compiled and i == 1}})
        for i in range(3)
    ]
    assert step_timer.timed(records, 2) == [0.0, 1.0, 2.0] and len(made) == processes
    rounds = events[processes:]
    assert [kind for kind, _ in rounds[:4]] == ["go", "go", "done", "done"]
    if compiled:
        assert [[record["spec"]["seconds"] for record in asked["records"]] for _, asked in rounds[:2]] == [[0.0], [1.0]]
    else:
        assert [asked["first"] for _, asked in rounds[:2]] == [0, 1]


def test_a_process_that_fails_says_why():
    record = {"format": 1, "id": "a", "spec": {"train": {"threads": 1}}}
    with step_timer.start_timer({"records": [record], "first": 0}) as timer:
        (line,) = faults(timer.hear)
    assert line.startswith("the steps of these rows cannot be timed, the models of all of them together: ")


# What is said


def test_the_plan_shows_the_steps_and_reading_a_file_times_nothing(tmp_path, monkeypatch):
    timer = Timer(**QUICK)
    monkeypatch.setattr(match_seconds, "timed", timer)
    path, out = str(file(tmp_path)), str(tmp_path / "runs")
    for command in (["validate", path], ["config", path]):
        assert CliRunner().invoke(main, command).exit_code == 0 and timer.asked == []
    refused = CliRunner().invoke(main, ["plan", path, "--out", out, "--no-time"])
    assert refused.exit_code == 2 and "match: seconds: --no-time, and " in refused.output
    refused = CliRunner().invoke(main, ["run", path, "--out", out, "--shard", "1/2"])
    assert refused.exit_code == 2 and "match: seconds: --shard 1/2, and " in refused.output and timer.asked == []
    shown = CliRunner().invoke(main, ["plan", path, "--out", out])
    assert shown.exit_code == 0 and len(timer.asked) == 1, shown.output
    assert [line.split()[-1] for line in shown.output.splitlines() if line.startswith("ffn=")] == [
        "+0.00%", "+0.00%", "-0.10%",
    ]  # fmt: skip
    assert all(any(f" {n} " in line for line in shown.output.splitlines()) for n in (100, 25, 333))


def ended(tokens, rate, machine=None, seed=0):
    """A run whose training steps took `tokens` over `rate` seconds."""
    train = {"epochs": 1.0, "tokens": tokens, "tokens_per_second": rate, "seconds": 99.0}
    return run(seed, 2.0, train=train, **({"machine": {"cores": machine}} if machine else {}))


def seconds_of(folder, rows):
    """The table of rows that were matched in seconds."""
    table(folder, rows, baseline="a")
    path = folder / "sweep/comparison.json"
    stored = json.loads(path.read_text())
    for row in stored["rows"]:
        row["match"] = {"what": "seconds", "by": "steps", "size": 10, "value": 60.0, "mismatch": 0.001}
    path.write_text(json.dumps(stored))
    return reporting.read(folder, "sweep")


def test_the_report_says_what_the_clock_showed(tmp_path):
    rows = {
        "a": [ended(1000, 10), ended(1000, 10, seed=1)],
        "b": [ended(1200, 12), ended(624, 6, seed=1)],
        "c": [ended(1100, 10), None],
    }
    found = seconds_of(tmp_path, rows)
    text = reporting.to_markdown(found)
    line = "Steps were chosen for equal seconds, from steps timed before the runs. In the runs, evaluations left out, they "
    line += "took 100 s (a), 102 s (b), 110 s (c): within 10 %, where 5 % is put down to the clock. NOT equal: c +10 %."
    assert line in text and "Matched" not in text
    off = {row["name"]: row["match"]["mismatch"] for row in json.loads(reporting.to_json(found))["rows"]}
    assert off == pytest.approx({"a": 0, "b": 0.02, "c": 0.1})


def test_a_report_claims_nothing_of_runs_that_are_not_done(tmp_path):
    text = reporting.to_markdown(seconds_of(tmp_path, {"a": [ended(1000, 10)], "b": [None]}))
    assert "they took 100 s (a): within 0 %, where 5 % is put down to the clock. Not known yet of b." in text
    text = reporting.to_markdown(seconds_of(tmp_path / "none", {"a": [None], "b": [ended(1000, 10)]}))
    assert (
        "they took 100 s (b). Not known yet of b, a." in text and "within" not in text.partition("Not known")[0][-80:]
    )


def test_clocks_of_several_machines_are_not_one(tmp_path):
    text = reporting.to_markdown(seconds_of(tmp_path, {"a": [ended(1000, 10, 2)], "b": [ended(1000, 10, 4)]}))
    assert "NOT one clock: the runs are of several machines." in text
