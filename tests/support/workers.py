"""A worker that acts: `python workers.py FOLDER` behaves as the folder's record says."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace

from zoo.execute import process, worker
from zoo.files import write_json
from zoo.record.folder import Run, peak_memory

perform = worker.perform_run


def note(run: Run, **facts) -> None:
    """Keep facts about this process beside the record."""
    write_json(run.folder / "noted.json", {**noted(run), **facts})


def noted(run: Run) -> dict:
    path = run.folder / "noted.json"
    return json.loads(path.read_text()) if path.exists() else {}


def act(run, stop, materialise):
    process.volunteer_for_oom_kill()
    note(run, began=time.time(), session=os.getsid(0))
    spec = run.update(status="running").spec
    signals, receive = [], stop.receive
    if spec["act"] == "wait":
        signal.signal(signal.SIGINT, lambda number, frame: (signals.append(number), receive(number, frame)))
    if spec["act"] == "deaf":
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    run.log({"kind": "start", "step": 0, "steps": 4})
    if spec["act"] == "exit":
        print("something else")
        print("out of cheese", flush=True)
        os._exit(7)
    if spec["act"] == "raise":
        raise RuntimeError("no luck\ntoday")
    if spec["act"] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if spec["act"] == "wait":
        while not stop():
            time.sleep(0.02)
        time.sleep(0.3)
        note(run, signals=len(signals))
        run.update(status="interrupted", reason=None)
        return
    if spec["act"] == "greedy":
        bytearray(1 << 46)
    if spec["act"] == "torch-greedy":
        import torch

        torch.empty(1 << 46)
    if spec["act"] == "hog":
        held = bytearray(b"x") * (200 << 20)
        note(run, peak=peak_memory(), held=len(held), score=Path("/proc/self/oom_score_adj").read_text())
    if spec["act"] == "deaf":
        time.sleep(60)
    time.sleep(spec.get("seconds", 0))
    with (run.folder / "times").open("a") as file:
        file.write("x")
    run.log({"kind": "train", "step": 4, "loss": 1.5, "tokens_per_second": 1e4})
    note(run, ended=time.time())
    run.update(status="done", reason=None)


def materialise(record):
    """A tiny model whose process dies once, at the step that the record names."""
    import torch

    sys.path.insert(0, str(Path(__file__).parents[1]))  # this file is run by its path
    from support.tasks import Counting, settings, tiny

    class Deadly(Counting):
        drawn = 0

        def batch(self, size, generator):
            self.drawn += 1
            time.sleep(record.spec.get("pause", 0))
            if self.drawn == record.spec.get("die_at"):
                os.kill(os.getpid(), signal.SIGKILL)
            return super().batch(size, generator)

    if record.spec.get("die_at") == "the end":
        Run.tidy = lambda run: os.kill(os.getpid(), signal.SIGKILL)
    task = Deadly()
    task.sha256 = f"read with {torch.get_num_threads()} of {os.environ['OMP_NUM_THREADS']} threads"
    return SimpleNamespace(task=task, model=tiny(0.1), settings=settings(**record.spec["train"]), reference=None)


def acted(run, stop, given):
    if "act" in run.read().spec:
        return act(run, stop, given)
    return perform(run, stop, materialise)


worker.perform_run = acted

if __name__ == "__main__":
    sys.exit(worker.main(sys.argv[1]))
