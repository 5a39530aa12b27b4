"""Settings chosen by trials: as many for every row, judged on dev, before the runs that are reported on test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from .compare import Comparison, Row, RunSpec, Trial
from .measure import METRICS, Metric
from .plan import prepared
from .runs import Run

ENDED = ("done", "diverged", "failed")
"""Statuses of trials that say how they came out."""


def read(run: RunSpec, known: dict) -> RunSpec:
    """The run with the hash of the text that it reads."""
    return replace(run, text=prepared(run, known).sha256)


def trials(comparison: Comparison) -> list[tuple[str, Sequence[RunSpec]]]:
    """The runs of every trial, and what it is called."""
    return [(f"{row.name} · {trial.name}", trial.runs) for row in comparison.rows for trial in row.trials]


def settled(comparison: Comparison, known: dict, out: Path) -> Comparison:
    """The comparison with the settings that its trials in `out` have chosen, once every one of them has ended.

    It depends on what stands in the folders alone: who comes back after a stop finds the same choice.
    """
    if comparison.tune is None:
        return comparison
    name = comparison.rows[0].runs[0].make_task().metrics[0]
    found = [[outcome(trial, name, known, out) for trial in row.trials] for row in comparison.rows]
    ended = all(trial["status"] for trials in found for trial in trials)
    rows = zip(comparison.rows, found, strict=True)
    return comparison.told_apart(decided(row, trials, METRICS[name], ended) if trials else row for row, trials in rows)


def outcome(trial: Trial, metric: str, known: dict, out: Path) -> dict[str, Any]:
    """How a trial ended: its mean on dev if every seed of it has one, else why not; without a status while one runs."""
    ids = [read(run, known).id() for run in trial.runs]
    records = [Run(out / id).read() for id in ids]
    scores = [((record.get("best") or {}).get("dev") or {}).get(metric) for record in records]
    lost = next((record for record in records if record.get("status") != "done"), None)
    if any(record.get("status") not in ENDED for record in records):
        status = reason = None
    elif lost:
        status, reason = lost["status"], lost.get("reason")
    else:
        status, reason = ("diverged", f"no finite {metric} on dev") if None in scores else ("done", None)
    return {
        "values": dict(trial.values),
        "runs": [{"seed": run.seed, "id": id} for run, id in zip(trial.runs, ids, strict=True)],
        "status": status,
        "reason": reason,
        "dev": fmean(scores) if status == "done" else None,
    }


def decided(row: Row, found: Sequence[Mapping[str, Any]], metric: Metric, ended: bool) -> Row:
    """The row with the settings of its best trial, the first of equal ones; without any while one is to come."""
    if not ended:
        open_ = [trial | dict.fromkeys(("status", "reason", "dev")) for trial in found]
        return replace(row, tuning={"trials": open_, "chosen": None, "edge": {}, "reason": None})
    sign = -1.0 if metric.better == "higher" else 1.0
    good = [i for i, trial in enumerate(found) if trial["dev"] is not None]
    if not good:
        said = (f"{trial.name}: {told(got)}" for trial, got in zip(row.trials, found, strict=True))
        reason = f"no trial has a finite score on dev: {'; '.join(said)}"
        return replace(row, tuning={"trials": found, "chosen": None, "edge": {}, "reason": reason})
    best = row.trials[min(good, key=lambda i: sign * found[i]["dev"])]
    tuning = {"trials": found, "chosen": dict(best.values), "edge": edges(row.trials, best), "reason": None}
    train = best.runs[0].train
    return replace(row, tuning=tuning, runs=tuple(replace(run, train=train) for run in row.runs))


def told(trial: Mapping[str, Any]) -> str:
    return f"{trial['status']}, {trial['reason']}" if trial["reason"] else trial["status"]


def edges(tried: Sequence[Trial], best: Trial) -> dict[str, str]:
    """The settings whose chosen number is the smallest or largest that was tried: a better one may lie beyond."""
    out = {}
    for path, value in best.values.items():
        values = {trial.values[path] for trial in tried if isinstance(trial.values[path], int | float)}
        if len(values) > 1 and value in (min(values), max(values)):
            out[path] = "smallest" if value == min(values) else "largest"
    return out
