"""How fast a model writes: what is timed, of whom, and that nothing else hangs on it."""

from __future__ import annotations

import csv
import io
import json
from functools import partialmethod
from time import perf_counter, process_time
from types import SimpleNamespace

import pytest
import torch
from support.claims import claim
from support.scripted import Scripted
from support.tables import markdown_rows, run, table
from support.tasks import VOCAB, Counting, settings, tiny
from torch import nn

from zoo import build, record, reporting
from zoo.execute import perform
from zoo.parts import Shape
from zoo.parts.generate import generate
from zoo.record.folder import Run
from zoo.reporting.judging.claims import judge_claims
from zoo.reporting.judging.pareto import find_best
from zoo.tasks import Batch
from zoo.train import decode_speed
from zoo.train.decode_speed import decode

SHAPE = {"d_model": 32, "n_heads": 4, "n_layers": 2, "max_len": 24, "vocab_size": VOCAB + 1}


class Sourced(Counting):
    """The same rows, after a source of five tokens."""

    def batches(self, split, size):
        for row in super().batches(split, size):
            yield Batch(torch.full((len(row.target), 5), 4), row.target, row.weight)


class Timed(Scripted):
    """Each step moves a clock by what its pass costs; a pass begins with `start`."""

    autoregressive = True
    shape = Shape(vocab_size=12, max_len=10)

    def __init__(self, *costs):
        super().__init__([2] * 100)  # the end of sequence, which ends nothing here
        self.costs, self.passes, self.now = costs, -1, 0.0

    def start(self, source, source_keep=None, *, room):
        self.at, self.passes, self.rows = 0, self.passes + 1, self.rows[:1].expand(len(source), -1)
        return SimpleNamespace(nbytes=lambda: 77)

    def step(self, cache, read, keep=None):
        self.now += self.costs[min(self.passes, len(self.costs) - 1)]
        return super().step(cache, read)


@pytest.mark.parametrize("costs, fastest, passes", [
    ([9.0, 0.04, 0.02, 0.03], 0.02, 5), ([0.0, 0.2], 0.2, 1), ([0.0, 0.1], 0.1, 2), ([0.0, 0.001], 0.001, 5),
])  # fmt: skip
def test_the_fastest_pass_counts_after_one_that_warms_up(monkeypatch, costs, fastest, passes):
    model = Timed(*costs)
    for clock in decode_speed.CLOCKS:
        monkeypatch.setitem(decode_speed.CLOCKS, clock, lambda: model.now)
    found = decode(model, Counting())
    assert found["tokens_per_second"] == pytest.approx(8 * 10 / (10 * fastest))
    assert (found["rows"], found["tokens"], found["cache_bytes"]) == (8, 10, 77)
    assert model.passes - 1 == passes  # one more warmed up, and one was for the cache


def test_it_is_the_speed_of_a_loop_by_hand():
    model = build({"position": "rope"}, shape=SHAPE).eval()
    found = decode(model, Counting())
    clock = {"processor": process_time, "wall": perf_counter}[found["clock"]]

    @torch.no_grad()
    def loop():
        began = clock()
        cache, ids = model.start(None, room=25), torch.full((8, 1), 1)
        for _ in range(24):
            ids = model.step(cache, ids)[:, -1].argmax(-1)[:, None]
        return clock() - began

    by_hand = 8 * 24 / min(loop() for _ in range(6))
    assert 0.4 < found["tokens_per_second"] / by_hand < 2.5


@pytest.mark.parametrize("threads, clock", [(1, "processor"), (2, "wall")])
def test_several_threads_are_timed_by_the_wall(monkeypatch, threads, clock):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    assert decode(build({}, shape=SHAPE).eval(), Counting())["clock"] == clock


def test_more_rows_at_once_write_more(monkeypatch):
    model, found = build({}, shape=SHAPE).eval(), []
    for rows in (1, 32):
        monkeypatch.setattr(decode_speed, "ROWS", rows)
        found.append(decode(model, Counting()))
    assert found[1]["tokens_per_second"] > 4 * found[0]["tokens_per_second"]
    assert found[1]["cache_bytes"] == 32 * found[0]["cache_bytes"]


@pytest.mark.parametrize("architecture, task, tokens, held", [
    ("decoder-only", Counting(), 24, 24), ("decoder-only", Sourced(), 19, 24), ("encoder-decoder", Sourced(), 19, 24),
])  # fmt: skip
def test_what_max_len_leaves_room_for_is_written_after_a_source(architecture, task, tokens, held):
    """The cache then holds keys and values, in float32, of all tokens in both layers."""
    found = decode(build({"architecture": architecture}, shape=SHAPE).eval(), task)
    assert found["tokens"] == tokens and found["cache_bytes"] == 8 * held * 2 * 2 * 32 * 4


def test_the_length_is_bounded_and_at_least_that_of_the_task(monkeypatch):
    found = [decode(build({}, shape=SHAPE | {"max_len": n}), Counting())["tokens"] for n in (3, 24)]
    monkeypatch.setattr(decode_speed, "MOST", 7)
    assert [*found, decode(build({}, shape=SHAPE), Counting())["tokens"]] == [6, 24, 7]


@pytest.mark.parametrize("model", [{"architecture": "encoder-only"}, None], ids=["encoder-only", "no such method"])
def test_none_where_nothing_goes_left_to_right(model):
    assert decode(build(model, shape=SHAPE) if model else tiny(), Sourced()) is None


def test_a_request_to_stop_ends_it():
    model, asked = build({}, shape=SHAPE), iter(range(30))
    assert decode(model, Counting(), lambda: next(asked, None) is None) is None
    assert next(asked, None) is None


# in a run


@pytest.fixture
def go(tmp_path, monkeypatch):
    """Do a run as a process of its own would, and return its folder."""
    monkeypatch.setattr(perform, "set_up_process", lambda threads: None)

    def go(name, model=None, stop=lambda: False, processes=1, **changes):
        run = Run(tmp_path / name)
        run.begin({"spec": {}, "seed": 0, "processes": processes})
        shape = SHAPE | {"dropout": 0.1}
        made = SimpleNamespace(
            task=Counting(), model=model or build({}, shape=shape), settings=settings(**changes), reference=None
        )
        perform.perform_run(run, stop, lambda record: made)
        return run

    return go


def test_it_stands_in_the_record_and_changes_nothing_else(go, monkeypatch):
    timed, state = go("timed"), torch.get_rng_state()
    monkeypatch.setattr(perform, "time_decoding", lambda *given: None)
    plain = go("plain")
    assert torch.equal(torch.get_rng_state(), state)
    assert timed.weights.read_bytes() == plain.weights.read_bytes()
    with_it, without = timed.read(), plain.read()
    assert with_it.decode.tokens_per_second > 0 and without.decode is None
    assert with_it.metrics == without.metrics and with_it.best == without.best
    assert with_it.status == without.status == "done" and record.plain(with_it).keys() == record.plain(without).keys()


def test_the_result_is_recorded_before_and_outlives_a_failure(go, tmp_path, monkeypatch, capsys):
    """What stands while it is timed is what a process that is killed then leaves."""
    seen = []

    def fails(model, task, stop):
        seen.append(Run(tmp_path / "run").read())
        raise torch.OutOfMemoryError("no room for the cache")

    monkeypatch.setattr(decode_speed, "decode", fails)
    after = go("run").read()
    assert seen == [after] and after.status == "done" and after.decode is None
    assert after.metrics["test"]["loss"] > 0 and "no room for the cache" in capsys.readouterr().err


def test_a_compiled_model_is_timed_as_it_is(go, monkeypatch):
    compiled = []

    def backend(graph, inputs):
        compiled.append(graph)
        return graph

    monkeypatch.setattr(nn.Module, "compile", partialmethod(nn.Module.compile, backend=backend))
    before = []
    monkeypatch.setattr(decode_speed, "generate", lambda *a, **k: before.append(len(compiled)) or generate(*a, **k))
    torch._dynamo.reset()
    found = go("run", compile=True, steps=2, eval_every=2).read()
    assert found.decode.tokens_per_second > 0 and before[0] == len(compiled) > 0


@pytest.mark.parametrize("status, given", [
    ("diverged", {"lr": 1e9, "clip": None}), ("interrupted", {"stop": lambda: True}),
    ("done", {"model": tiny()}), ("done", {"processes": 2}),
], ids=["diverged", "interrupted", "no such method", "in several processes"])  # fmt: skip
def test_none_is_taken_of(go, status, given):
    found = go("run", **given).read()
    assert found.status == status and found.decode is None


# in a report


def decoded(tmp_path, *tokens, clocks=("processor", "processor")):
    rows = {
        f"row{number}": [run(0, 1.0 + number, decode={
            "tokens_per_second": 8000.0 / (number + 1), "rows": 8, "tokens": n, "clock": clock, "cache_bytes": 1, "load": 1.26 + number,
        })] for number, (n, clock) in enumerate(zip(tokens, clocks))
    }  # fmt: skip
    return table(tmp_path, rows, baseline="row0")


def test_a_report_says_on_what_it_was_measured(tmp_path):
    given = decoded(tmp_path, 64, 64)
    head, _, *cells = markdown_rows(reporting.to_markdown(given))
    assert [line[head.index("decode tokens/s")] for line in cells] == ["8,000", "4,000"]
    assert "decode time" in cells[0][head.index("Pareto")]
    said = (
        "8 rows of 64 tokens by processor time, at once, greedy, from a cache, after training, under a load of 1.3 to 2.3 "
        "processes; the fastest of a few passes. It is good for ratios within this table, not as a speed."
    )
    assert f"Decode: {said}" in reporting.to_markdown(given) and f"<dt>Decode</dt><dd>{said}</dd>" in reporting.to_html(
        given
    )
    facts = json.loads(reporting.to_json(given))["method"]["decode"]
    assert facts == {"written": [{"rows": 8, "tokens": 64, "clock": "processor"}], "load": [1.26, 2.26]}
    assert [line["decode_tokens_per_second"] for line in csv.DictReader(io.StringIO(reporting.to_csv(given)))] == [
        "8000.0", "4000.0",
    ]  # fmt: skip


def test_rows_that_wrote_different_lengths_are_not_compared(tmp_path):
    given = decoded(tmp_path, 64, 32)
    assert (
        "8 rows of 32 tokens by processor time, or 8 rows of 64 tokens by processor time, at once"
        in reporting.to_markdown(given)
    )
    assert "NOT the same in every run, so rows cannot be compared in it." in reporting.to_markdown(given)
    assert "decode time" not in reporting.to_markdown(given) and not find_best(given)


def test_rows_by_different_clocks_are_not_compared(tmp_path):
    given = decoded(tmp_path, 64, 64, clocks=("processor", "wall"))
    assert "64 tokens by processor time, or 8 rows of 64 tokens by the clock on the wall" in reporting.to_markdown(
        given
    )
    assert "cannot be compared" in reporting.to_markdown(given) and not find_best(given)


def test_a_claim_about_different_clocks_cannot_be_told(tmp_path):
    claimed = {"row": "a", "than": "b", "of": "decode", "better": "higher"}
    for clock, word in (("processor", "reproduced"), ("wall", "cannot tell")):
        rows = {
            name: [run(seed, 1.0, decode={"tokens_per_second": by + seed, "rows": 8, "tokens": 9, "clock": measured})
                   for seed in range(3)]
            for name, by, measured in (("a", 2000.0, clock), ("b", 1000.0, "processor"))
        }  # fmt: skip
        [each] = judge_claims(table(tmp_path, rows, baseline="b", claims=[claim(**claimed).record()]))
        assert each.word == word


def test_without_a_measurement_nothing_is_said(tmp_path):
    given = table(tmp_path, {"a": [run(0, 1.0)], "b": [run(0, 2.0, decode=None)]}, baseline="a")
    assert (
        "ecode" not in reporting.to_markdown(given) and json.loads(reporting.to_json(given))["method"]["decode"] is None
    )
