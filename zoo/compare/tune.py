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
from zoo.record.folder import Run
from zoo.tasks import Metric

from .comparison import Comparison, Row, Trial
from .optuna_sampler import Values, draw_values, read_version
from .prepared import Prepared
from .run_spec import RunSpec, TrainedRun
from .tuning_rules import Draw, Range, Tune, place_values

ENDED = ("done", "diverged", "failed")
"""Statuses of trials that say how they came out."""
CLOSE = 0.05
"""The share of a range by which a value may lie from its end and still count as at the edge."""
NamedRuns = Sequence[tuple[str, Sequence[RunSpec]]]
"""Runs that can go side by side, by what they are called."""


def trial_rounds(comparison: Comparison) -> list[NamedRuns]:
    """The runs of the trials that are known, one round after the other; all are in the first unless they are drawn."""
    most = max((len(row.trials) for row in comparison.rows), default=0)
    draw = comparison.tune.draw if comparison.tune else None
    size = draw.per_round if draw else max(most, 1)
    return [
        [(f"{row.name} · {trial.name}", trial.runs) for row in comparison.rows for trial in row.trials[i : i + size]]
        for i in range(0, most, size)
    ]


def choose_settings(comparison: Comparison, prepared: Prepared, out: Path) -> Comparison:
    """The comparison with its trials as far as these are known, and with the settings that they have chosen in `out`
    once every one has ended.

    It depends on what stands in the folders alone: who comes back after a stop finds the same choice.
    """
    rule = comparison.tune
    if rule is None:
        return comparison
    metric, ranking = prepared.metric(comparison.rows[0].first), prepared.ranking(comparison.rows[0].first)
    found = [extend_trials(row, rule, metric, prepared, out) for row in comparison.rows]
    if rule.draw:  # every row as far as the last of them
        least = min(len(row.trials) for row, _ in found if row.trials)
        found = [(replace(row, trials=row.trials[:least]), trials[:least]) for row, trials in found]
    ended = all(trial["status"] for _, trials in found for trial in trials)
    chosen = [choose_trial(row, trials, rule, ranking, ended) if row.trials else row for row, trials in found]
    return comparison.replace_rows(chosen)


def extend_trials(row: Row, rule: Tune, metric: str, prepared: Prepared, out: Path) -> tuple[Row, list[dict[str, Any]]]:
    """The row with the trials that are known, drawn ones too, and how each of these ended."""
    if rule.draw is None:
        return row, [read_outcome(trial, metric, prepared, out) for trial in row.trials]
    run, library = row.first, prepared.library
    trials: list[Trial] = []
    found: list[dict[str, Any]] = []
    ends = {path: axis.low if isinstance(axis, Range) else axis[0] for path, axis in rule.axes.items()}
    lowest = change_settings(run.train, ends, library)

    def score(batch: Sequence[Values]) -> list[float | None] | None:
        trials.extend(make_trial(run, values, rule, library) for values in batch)
        found.extend(read_outcome(each, metric, prepared, out) for each in trials[-len(batch) :])
        ended = found[-len(batch) :]
        return [each["dev"] for each in ended] if all(each["status"] for each in ended) else None

    draw_values(
        rule, rule.draw, prepared.ranking(run).better, lambda path: isinstance(read_setting(lowest, path), int), score
    )
    return replace(row, trials=tuple(trials)), found


def make_trial(run: TrainedRun, values: Values, rule: Tune, library: Library) -> Trial:
    """The run's settings with other values. Raises `SpecError` for values that do not go together."""
    train = change_settings(run.train, values, library)
    runs = tuple(replace(run, train=train, seed=seed) for seed in rule.seeds)
    return Trial({path: value.plain() for path, value in values.items()}, runs)


def change_settings(train: Train, values: Values, library: Library) -> Train:
    reader = library.reader()
    changed = reader.train(place_values(Node(train.plain()), values))
    reader.finish()
    assert changed, "or it would have raised"
    return changed


def read_setting(train: Train, path: str) -> Any:
    """What stands at a path of the settings."""
    value = train.plain()
    for step in path.split("."):
        value = value[step]
    return value


def read_outcome(trial: Trial, metric: str, prepared: Prepared, out: Path) -> dict[str, Any]:
    """How a trial ended: its mean on dev if every seed of it has one, else why not; without a status while one runs."""
    ids = [prepared.id(run) for run in trial.runs]
    records = [Run(out / id).read() for id in ids]
    scores = [record.best.dev.get(metric) if record.best and record.best.dev else None for record in records]
    lost = next((record for record in records if record.status != "done"), None)
    if any(record.status not in ENDED for record in records):
        status = reason = None
    elif lost:
        status, reason = lost.status, lost.reason
    else:
        status, reason = ("diverged", f"no finite {metric} on dev") if None in scores else ("done", None)
    return {
        "values": dict(trial.values),
        "runs": [{"seed": run.seed, "id": id} for run, id in zip(trial.runs, ids, strict=True)],
        "status": status,
        "reason": reason,
        "dev": fmean(score for score in scores if score is not None) if status == "done" else None,
    }


def choose_trial(row: Row, found: Sequence[Mapping[str, Any]], rule: Tune, metric: Metric, ended: bool) -> Row:
    """The row with the settings of its best trial, the first of equal ones; without any while one is to come."""
    tuning: dict[str, Any] = {"trials": found, "chosen": None, "edge": {}, "reason": None}
    tuning |= {"drawn": describe_draw(rule, rule.draw)} if rule.draw else {}
    if not ended:
        open_ = [dict(trial) | dict.fromkeys(("status", "reason", "dev")) for trial in found]
        return replace(row, held=True, tuning=tuning | {"trials": open_})
    sign = -1.0 if metric.better == "higher" else 1.0
    good = [i for i, trial in enumerate(found) if trial["dev"] is not None]
    if not good:
        ends = (f"{trial.name}: {describe_end(got)}" for trial, got in zip(row.trials, found, strict=True))
        reason = f"no trial has a finite score on dev: {'; '.join(ends)}"
        return replace(row, held=True, tuning=tuning | {"reason": reason})
    best = row.trials[min(good, key=lambda i: sign * found[i]["dev"])]
    tuning |= {"chosen": dict(best.values), "edge": find_edges(rule, best.values)}
    train = best.runs[0].train
    return replace(row, held=False, tuning=tuning, runs=tuple(replace(run, train=train) for run in row.runs))


def describe_draw(rule: Tune, draw: Draw) -> dict[str, Any]:
    """How values were drawn, and from which ranges and lists."""
    written = rule.plain()
    return {**draw.plain(), "optuna": read_version(), "axes": {path: written[path] for path in rule.axes}}


def describe_end(trial: Mapping[str, Any]) -> str:
    return f"{trial['status']}, {trial['reason']}" if trial["reason"] else trial["status"]


def find_edges(rule: Tune, chosen: Mapping[str, Any]) -> dict[str, str]:
    """The settings whose chosen number is the smallest or largest of a list, or within `CLOSE` of the low or high end
    of a range: a better one may lie beyond.
    """
    out = {}
    for path, axis in rule.axes.items():
        value = chosen[path]
        if isinstance(axis, Range):
            share = share_of_range(axis, value)
            if not CLOSE < share < 1 - CLOSE:
                out[path] = "low" if share <= CLOSE else "high"
        else:
            values = {number for node in axis if isinstance(number := node.plain(), int | float)}
            if len(values) > 1 and value in (min(values), max(values)):
                out[path] = "smallest" if value == min(values) else "largest"
    return out


def share_of_range(axis: Range, value: float) -> float:
    """How far along a range a value lies, from 0 to 1 on the range's scale."""
    scale = math.log if axis.scale == "log" else float
    low, high = scale(axis.low.plain()), scale(axis.high.plain())
    return (scale(value) - low) / (high - low)
