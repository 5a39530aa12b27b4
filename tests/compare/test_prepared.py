"""What runs share is made once, whatever the number of rows, seeds and trials."""

from collections import Counter

import pytest
from support.comparisons import BASE
from support.files import faults, write

from zoo.compare import prepared as room
from zoo.compare.comparison import read_comparison
from zoo.compare.prepared import Prepared
from zoo.declare.library import open_library
from zoo.execute.stages import write_trials
from zoo_plugins.task import LanguageModeling

BODY = """
vary: {train.lr: [1e-3, 2e-3, 3e-3], norm: [layernorm, rmsnorm]}
model: {}
seeds: 4
tune: {warmup: [0, 1]}
task: {name: language-modeling, tokenizer: byte}
"""


@pytest.fixture
def calls(monkeypatch):
    """How often each expensive function of the room was called."""
    counted: Counter = Counter()

    def count(name):
        inner = getattr(room, name)

        def outer(*given, **more):
            counted[name] += 1
            return inner(*given, **more)

        monkeypatch.setattr(room, name, outer)

    for name in ("drop_unused_slots", "check_task", "count_cost", "bind_on_meta"):
        count(name)
    read = LanguageModeling.prepare

    def prepare(self):
        counted["prepare"] += 1
        read(self)

    monkeypatch.setattr(LanguageModeling, "prepare", prepare)
    return counted


def opened(folder, body):
    lines = (BASE.replace("task: copy\n", "") + body).strip().splitlines()
    text = "comparisons:\n  c:\n" + "".join(f"    {line}\n" for line in lines)
    return open_library(write(folder, text))


def test_six_rows_of_two_models_are_tried_and_counted_twice_and_read_once(tmp_path, calls):
    library = opened(tmp_path, BODY)
    prepared = Prepared(library)
    comparison = read_comparison(library, "c", prepared)
    assert len(comparison.rows) == 6 and all(len(row.trials) == 2 for row in comparison.rows)
    assert calls == {"drop_unused_slots": 2, "check_task": 2}, "nothing is read or counted for a file to be read"
    jobs = write_trials(comparison, prepared, tmp_path / "runs", "a.yaml")
    assert len(jobs) == 6 * 2 and len({job.run.read().model.parameters for job in jobs}) == 2
    assert calls == {"drop_unused_slots": 2, "check_task": 2, "prepare": 1, "bind_on_meta": 2, "count_cost": 2}


def test_what_differs_is_not_taken_for_the_same(tmp_path):
    library = opened(tmp_path, "vary: {shape.d_ff: [8, 16], share: [1, 2]}\nmodel: {}\ntask: {name: copy, symbols: 5}")
    prepared = Prepared(library)
    rows = read_comparison(library, "c", prepared).rows
    assert len({prepared.facts(row.first).cost for row in rows}) == 4
    assert len({id(prepared.task(row.first)) for row in rows}) == 1, "a task does not see how wide a model is"
    library = opened(tmp_path, "vary: {shape.max_len: [8, 16], task.symbols: [5, 6]}\nmodel: {}\ntask: {name: copy}")
    prepared = Prepared(library)
    rows = read_comparison(library, "c", prepared).rows
    assert len({id(prepared.task(row.first)) for row in rows}) == 4


def test_what_failed_is_tried_again_and_told_where_it_stands(tmp_path, monkeypatch):
    library = opened(tmp_path, "model: {}\ntask: {name: language-modeling, tokenizer: byte}")
    prepared = Prepared(library)
    run = read_comparison(library, "c", prepared).rows[0].first
    whole, asked = LanguageModeling.prepare, []

    def prepare(self):
        asked.append(self)
        if len(asked) == 1:
            raise ValueError("the text is too short")
        whole(self)

    monkeypatch.setattr(LanguageModeling, "prepare", prepare)
    (line,) = faults(lambda: prepared.task(run))
    assert line.endswith("task 'language-modeling': the text is too short") and "a.yaml:" in line
    assert prepared.task(run).train_tokens > 0
