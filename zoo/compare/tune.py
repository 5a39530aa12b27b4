"""Settings chosen by trials: as many for every row, judged on dev, before the runs that are reported on test."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from zoo.declare.library import Library
from zoo.declare.spec import Node, Train
from zoo.runs import Run
from zoo.train.metrics import METRICS, Metric

from .comparison import Comparison, Row, RunSpec, Trial
from .optuna_sampler import Values, drawn, version
from .prepared import prepared
from .tuning_rules import Range, Tune, placed

ENDED = ("done", "diverged", "failed")
"""Statuses of trials that say how they came out."""
CLOSE = 0.05
"""The share of a range by which a value may lie from its end and still count as at the edge."""
Asked = Sequence[tuple[str, Sequence[RunSpec]]]
"""Runs that can go side by side, by what they are called."""


def read(run: RunSpec, known: dict) -> RunSpec:
    """The run with the hash of the text that it reads."""
    return replace(run, text=prepared(run, known).sha256)


def rounds(comparison: Comparison) -> list[Asked]:
    """The runs of the trials that are known, one round after the other; all are in the first unless they are drawn."""
    most = max((len(row.trials) for row in comparison.rows), default=0)
    size = comparison.tune.draw.per_round if comparison.tune.draw else max(most, 1)
    return [
        [(f"{row.name} · {trial.name}", trial.runs) for row in comparison.rows for trial in row.trials[i : i + size]]
        for i in range(0, most, size)
    ]


def settled(comparison: Comparison, known: dict, out: Path, library: Library) -> Comparison:
    """The comparison with its trials as far as these are known, and with the settings that they have chosen in `out`
    once every one has ended.

    It depends on what stands in the folders alone: who comes back after a stop finds the same choice.
    """
    rule = comparison.tune
    if rule is None:
        return comparison
    name = comparison.rows[0].runs[0].make_task().metrics[0]
    found = [explored(row, rule, name, known, out, library) for row in comparison.rows]
    if rule.draw:  # every row as far as the last of them
        least = min(len(row.trials) for row, _ in found if row.trials)
        found = [(replace(row, trials=row.trials[:least]), trials[:least]) for row, trials in found]
    ended = all(trial["status"] for _, trials in found for trial in trials)
    made = [decided(row, trials, rule, METRICS[name], ended) if row.trials else row for row, trials in found]
    return comparison.told_apart(made)


def explored(
    row: Row, rule: Tune, metric: str, known: dict, out: Path, library: Library
) -> tuple[Row, list[dict[str, Any]]]:
    """The row with the trials that are known, drawn ones too, and how each of these ended."""
    if rule.draw is None or row.runs[0].model is None:
        return row, [outcome(trial, metric, known, out) for trial in row.trials]
    run, trials, found = row.runs[0], [], []
    ends = {path: axis.low if isinstance(axis, Range) else axis[0] for path, axis in rule.axes.items()}
    lowest = trained(run.train, ends, library)

    def scored(batch: Sequence[Values]) -> list[float | None] | None:
        trials.extend(trial(run, values, rule, library) for values in batch)
        found.extend(outcome(each, metric, known, out) for each in trials[-len(batch) :])
        ended = found[-len(batch) :]
        return [each["dev"] for each in ended] if all(each["status"] for each in ended) else None

    drawn(rule, METRICS[metric].better, lambda path: isinstance(setting(lowest, path), int), scored)
    return replace(row, trials=tuple(trials)), found


def trial(run: RunSpec, values: Values, rule: Tune, library: Library) -> Trial:
    """The run's settings with other values. Raises `SpecError` for values that do not go together."""
    train = trained(run.train, values, library)
    runs = tuple(replace(run, train=train, seed=seed) for seed in rule.seeds)
    return Trial({path: value.plain() for path, value in values.items()}, runs)


def trained(train: Train, values: Values, library: Library) -> Train:
    reader = library.reader()
    made = reader.train(placed(Node(train.plain()), values))
    reader.finish()
    return made


def setting(train: Train, path: str) -> Any:
    """What stands at a path of the settings."""
    value = train.plain()
    for step in path.split("."):
        value = value[step]
    return value


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


def decided(row: Row, found: Sequence[Mapping[str, Any]], rule: Tune, metric: Metric, ended: bool) -> Row:
    """The row with the settings of its best trial, the first of equal ones; without any while one is to come."""
    tuning = {"trials": found, "chosen": None, "edge": {}, "reason": None}
    tuning |= {"drawn": searched(rule)} if rule.draw else {}
    if not ended:
        open_ = [trial | dict.fromkeys(("status", "reason", "dev")) for trial in found]
        return replace(row, held=True, tuning=tuning | {"trials": open_})
    sign = -1.0 if metric.better == "higher" else 1.0
    good = [i for i, trial in enumerate(found) if trial["dev"] is not None]
    if not good:
        said = (f"{trial.name}: {told(got)}" for trial, got in zip(row.trials, found, strict=True))
        return replace(
            row, held=True, tuning=tuning | {"reason": f"no trial has a finite score on dev: {'; '.join(said)}"}
        )
    best = row.trials[min(good, key=lambda i: sign * found[i]["dev"])]
    tuning |= {"chosen": dict(best.values), "edge": edges(rule, best.values)}
    train = best.runs[0].train
    return replace(row, held=False, tuning=tuning, runs=tuple(replace(run, train=train) for run in row.runs))


def searched(rule: Tune) -> dict[str, Any]:
    """How values were drawn, and from which ranges and lists."""
    written = rule.plain()
    return {**rule.draw.plain(), "optuna": version(), "axes": {path: written[path] for path in rule.axes}}


def told(trial: Mapping[str, Any]) -> str:
    return f"{trial['status']}, {trial['reason']}" if trial["reason"] else trial["status"]


def edges(rule: Tune, chosen: Mapping[str, Any]) -> dict[str, str]:
    """The settings whose chosen number is the smallest or largest of a list, or within `CLOSE` of the low or high end
    of a range: a better one may lie beyond.
    """
    out = {}
    for path, axis in rule.axes.items():
        value = chosen[path]
        if isinstance(axis, Range):
            share = along(axis, value)
            if not CLOSE < share < 1 - CLOSE:
                out[path] = "low" if share <= CLOSE else "high"
        else:
            values = {number for node in axis if isinstance(number := node.plain(), int | float)}
            if len(values) > 1 and value in (min(values), max(values)):
                out[path] = "smallest" if value == min(values) else "largest"
    return out


def along(axis: Range, value: float) -> float:
    """How far along a range a value lies, from 0 to 1 on the range's scale."""
    scale = math.log if axis.scale == "log" else float
    low, high = scale(axis.low.plain()), scale(axis.high.plain())
    return (scale(value) - low) / (high - low)
