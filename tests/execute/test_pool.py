import io
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest
from support.pools import HERE, go, jobs, once_running, wait_for
from support.workers import noted

from zoo.execute import pool, progress
from zoo.execute.pool import Job, State, choose_exit_code
from zoo.record import plain
from zoo.record.folder import Run, peak_memory
from zoo.reporting import Run as Row


def test_one_failure_is_a_row_and_the_rest_go_on(tmp_path):  # SWEEP-2, SWEEP-3, SWEEP-6
    made = jobs(tmp_path, "done", "raise", "exit", "die", "done")
    states = go(made)
    assert [s.status for s in states] == ["done", "failed", "failed", "failed", "done"]
    reasons = [
        None, "RuntimeError: no luck today", "exited with code 7: out of cheese",
        "killed by SIGKILL, perhaps for lack of memory", None,
    ]  # fmt: skip
    assert [s.reason for s in states] == reasons
    assert [job.run.read().reason for job in made] == reasons  # what a report reads
    assert [job.run.read().status for job in made] == [s.status for s in states]
    assert "act(run" in made[1].run.error.read_text() and choose_exit_code(states) == 3

    made[1].run.begin({"spec": {"act": "done"}, "seed": 0})  # its cause is gone
    again = go(made[:2])
    assert [s.status for s in again] == ["done", "done"] and choose_exit_code(again) == 0
    assert not made[1].run.error.exists() and again[0].process is None
    assert [(job.run.folder / "times").read_text() for job in (made[0], made[1])] == ["x", "x"]  # done once


def test_memory_that_there_is_not_is_a_reason_and_harms_no_other(tmp_path):
    made = jobs(tmp_path, "greedy", "torch-greedy", "done")
    states = go(made)
    assert [s.status for s in states] == ["failed", "failed", "done"]
    assert states[0].reason == "MemoryError" and "can't allocate memory" in states[1].reason
    ended = [Row(0, s.job.run.id, s.status, s.reason).outcome for s in states]
    assert ended == ["out of memory", "out of memory", "done"]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_is_returned_between_runs_and_runs_go_before_the_pool(tmp_path):
    before = peak_memory()
    made = jobs(tmp_path, *["hog"] * 3)
    assert [s.status for s in go(made, workers=1)] == ["done"] * 3
    records = [noted(job.run) for job in made]
    peaks = [record["peak"] for record in records]
    assert min(peaks) > 200 << 20 and max(peaks) - min(peaks) < 5 << 20 and peak_memory() - before < 20 << 20
    own = int(Path("/proc/self/oom_score_adj").read_text())
    assert {int(record["score"]) for record in records} == {500} and own < 500


def test_a_process_that_cannot_be_started_is_a_row_too(tmp_path):
    made = jobs(tmp_path, "done")
    (state,) = go(made, start=partial(pool.start_locally, command=[str(tmp_path / "nowhere")]))
    assert (state.status, made[0].run.read().status) == ("failed", "failed")
    assert state.reason.startswith("could not be started: [Errno 2] No such file")


def test_exit_codes():
    def code(*found):
        return choose_exit_code([State(None, status) for status in found])

    assert code() == 3 and code("done") == 0 and code("done", "failed") == 3
    assert code("done", "interrupted") == 130 and code("failed", "not run") == 130 and code("done", "diverged") == 0


def test_runs_start_in_the_given_order(tmp_path):
    made = jobs(tmp_path, *["done"] * 4, seconds=0.05)
    go(made, workers=1)
    began, ended = ([noted(job.run)[key] for job in made] for key in ("began", "ended"))
    assert began == sorted(began)
    assert all(b >= e for b, e in zip(began[1:], ended))
    assert noted(made[0].run)["session"] != os.getsid(0)


def test_ctrl_c_lets_runs_save_and_starts_no_other(tmp_path):
    made = jobs(tmp_path, "wait", "wait", "done")
    handler = signal.getsignal(signal.SIGINT)
    once_running(made[:2], signal.SIGINT)
    states = go(made)
    assert [s.status for s in states] == ["interrupted", "interrupted", "not run"]
    assert [noted(job.run).get("signals") for job in made] == [1, 1, None]
    assert choose_exit_code(states) == 130 and signal.getsignal(signal.SIGINT) is handler


def test_a_second_ctrl_c_kills(tmp_path):
    began = time.monotonic()
    made = jobs(tmp_path, "deaf")
    once_running(made, signal.SIGTERM, signal.SIGINT)
    states = go(made)
    assert time.monotonic() - began < 50  # deaf for 60
    assert (states[0].status, states[0].job.run.read().status) == ("interrupted", "interrupted")


def test_runs_end_when_the_pool_dies(tmp_path):
    (job,) = jobs(tmp_path, "wait")
    script = f"""
import sys
sys.path.insert(0, {str(HERE)!r})
from support.pools import Job, Run, go
from pathlib import Path
go([Job("wait", Run(Path({str(job.run.folder)!r})))])
"""
    parent = subprocess.Popen([sys.executable, "-c", script])
    wait_for(job.run.metrics.exists)
    parent.kill()
    parent.wait()
    wait_for(lambda: job.run.read().status == "interrupted")


def test_two_pools_on_the_same_folders_train_once(tmp_path):
    made = jobs(tmp_path, "done", "done", "done", seconds=0.3)
    other = []
    thread = threading.Thread(target=lambda: other.extend(go(made)))
    thread.start()
    states = go(made)
    thread.join()
    assert [s.status for s in (*states, *other)] == ["done"] * 6
    assert [(job.run.folder / "times").read_text() for job in made] == ["x"] * 3


def test_a_killed_run_loses_no_more_than_its_interval(tmp_path):
    """Dies at the 13th batch with its state saved after every step; goes on to the bits of a run that lived."""
    import torch
    from support.tasks import Counting, settings, tiny

    from zoo.model.weights import read_model
    from zoo.train.loop import train

    run = Run(tmp_path / "killed")
    spec = {"train": {"checkpoint_seconds": 0.0, "eval_every": 10}}
    run.begin({"spec": {**spec, "die_at": 13}, "seed": 0, "threads": 1})
    (state,) = go([Job("killed", run)])
    assert state.status == "failed" and state.reason.startswith("killed by SIGKILL") and state.steps == 20
    assert run.lines()[-1]["step"] == 12
    (run.folder / ".resume.safetensors.1.new").write_bytes(b"half")
    run.begin({"spec": spec, "seed": 0, "threads": 1})
    (state,) = go([Job("killed", run)])
    assert (state.status, state.start, state.step) == ("done", 12, 20)
    record = run.read()
    assert record.data.sha256 == "read with 1 of 1 threads"
    assert record.machine.cores >= 1 and record.versions["torch"].startswith(torch.__version__[:3])

    whole = tiny(0.1)
    live = Run(tmp_path / "live")
    live.folder.mkdir()
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # as many as a worker has: another number gives other bits
    expected = train(whole, Counting(), settings(eval_every=10), seed=0, folder=live)
    torch.set_num_threads(before)
    again = tiny(seed=3)
    read_model(again, run.weights)
    assert not run.resume.exists()
    assert all(torch.equal(a, b) for a, b in zip(again.parameters(), whole.parameters()))
    assert record.metrics == expected["metrics"] and plain(record.best) == expected["best"]


def test_a_run_killed_before_its_state_is_removed_is_finished(tmp_path):
    """And one killed before its record is written still has its state: it does not begin anew."""
    run = Run(tmp_path / "killed")
    spec = {"train": {"checkpoint_seconds": 0.0, "eval_every": 10}}
    run.begin({"spec": {**spec, "die_at": "the end"}, "seed": 0, "threads": 1})
    (state,) = go([Job("killed", run)])
    assert state.status == "done" and run.resume.exists() and run.lines()[-1]["step"] == 20
    run.begin({})
    assert run.read().status == "done" and not run.resume.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's allocator")
def test_a_worker_keeps_the_blocks_that_it_frees():
    """10 blocks of 64 MiB, one after the other, each written to: cleared pages are needed for the first alone."""
    script = """
import resource, sys
from zoo.execute.process import keep_freed_pages
if sys.argv[1] == "yes":
    keep_freed_pages()
for _ in range(10):
    bytearray(b"x") * (64 << 20)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
"""
    kept, free = (
        int(subprocess.run([sys.executable, "-c", script, word], capture_output=True, text=True).stdout)
        for word in ("yes", "no")
    )
    assert kept < free / 4


# what is shown


def states_on_the_way():
    def state(name, **facts):
        return State(Job(name, Run(Path(name))), **facts)

    return [
        state("a", status="done", seconds=8.0, process=object()),
        state("b", status="running", steps=40, step=10, loss=2.345, tokens_per_second=12345.6, seconds=2.0),
        state("c", status="running", steps=40, start=20, step=30, loss=None, seconds=2.0),
        state("d"),
    ]


def test_time_to_go_counts_what_this_process_has_done():
    _, b, c, d = states = states_on_the_way()
    assert (b.eta, c.eta, d.eta) == (6.0, 2.0, None)
    # left: 6 + 2, and for d the mean of 8, 2 + 6 and 2 + 2
    assert progress.estimate_remaining(states, workers=2) == pytest.approx((6 + 2 + 20 / 3) / 2)
    assert progress.estimate_remaining(states[:1], 2) == 0
    assert [progress.format_clock(s) for s in (7, 750, 3723)] == ["0:07", "12:30", "1:02:03"]


def test_elsewhere_than_in_a_terminal_lines_are_few_and_plain(monkeypatch):
    now = iter([1.0, 1.0, 2.0, 17.0, 17.0])
    monkeypatch.setattr(progress, "monotonic", lambda: next(now))
    stream, states = io.StringIO(), states_on_the_way()
    with progress.display(2, stream) as show:
        for _ in range(3):
            show(states)
    far = "1/4 runs, 0:07 to go; b: step 10/40, loss 2.345, 12,346 tokens/s, 0:06 to go; c: step 30/40, 0:02 to go"
    assert stream.getvalue().splitlines() == ["a done after 0:08", far, far]  # at first, and after 15 seconds


@pytest.fixture
def terminal(monkeypatch):
    """What is written to a terminal of so many columns: `terminal(columns)` gives the stream."""

    def make(columns):
        stream = io.StringIO()
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setenv("TERM", "xterm")
        return stream

    return make


def test_in_a_terminal_every_running_run_has_a_line(terminal):
    stream, states = terminal(100), states_on_the_way()
    states[0].reason = "[bold]as written"
    with progress.display(2, stream) as show:
        show(states)
    text = stream.getvalue()
    assert "a done after 0:08: [bold]as written" in text
    assert "b  step 10/40  loss 2.345  12,346 tokens/s  0:06 to go" in text and "1/4 runs, 0:07 to go" in text


def test_a_run_that_has_ended_leaves_the_picture_at_once(terminal):
    stream, states = terminal(100), states_on_the_way()
    with progress.display(2, stream) as show:
        show(states)
        states[1].status, states[1].process = "done", object()
        before = len(stream.getvalue())
        show(states)
    new = stream.getvalue()[before:]
    assert "b done after 0:02" in new and "2/4 runs" in new and "step 10/40" not in new


def test_a_line_stays_a_line_where_names_are_long(terminal):
    stream, states = terminal(60), states_on_the_way()
    for state in states[1:3]:
        object.__setattr__(state.job, "name", f"{state.job.name} with a name of many words · 2")
    with progress.display(2, stream) as show:
        show(states[1:])
    drawn = [line for line in stream.getvalue().splitlines() if "…" in line]
    assert len(drawn) == 4 and all("step" in line and "0/40" in line and "to go" in line for line in drawn)


def test_a_line_half_written_waits_for_its_end(tmp_path):
    (job,) = jobs(tmp_path, "done")
    state = State(job)
    with job.run.metrics.open("a") as file:
        file.write('{"kind": "start", "step": 0, "steps": 9}\n{"kind": "train", "st')
        file.flush()
        state.follow()
        assert (state.step, state.steps) == (0, 9)
        file.write('ep": 3, "loss": null, "tokens_per_second": 5}\n')
        file.flush()
        state.follow()
    assert (state.step, state.loss) == (3, None)
    job.run.trim(-1)
    job.run.log({"kind": "start", "step": 0, "steps": 7})
    state.follow()
    assert (state.step, state.steps) == (0, 7) and pool.POLL < 1
