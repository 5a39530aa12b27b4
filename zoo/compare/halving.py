"""Rows dropped early: short runs rank them on dev, and only the best go on to longer ones, and to those reported.

Successive halving, Jamieson and Talwalkar 2016, arXiv:1502.07943.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from zoo.faults import SpecError
from zoo.tasks import Metric
from zoo.train.loop import count_steps

from .comparison import Comparison, Row, Trial
from .prepared import Prepared
from .tune import NamedRuns, read_outcome
from .tuning_rules import Halving


def drop_rows(comparison: Comparison, prepared: Prepared, out: Path) -> Comparison:
    """The comparison with the rounds that are known and how they ended in `out`. Runs of rows that were dropped are
    held, and those of all rows while a round is open.

    It depends on what stands in the folders alone. Raises `SpecError` for rows with too few steps to divide.
    """
    rule = comparison.halving
    if rule is None:
        return comparison
    metric, ranking = prepared.metric(comparison.rows[0].first), prepared.ranking(comparison.rows[0].first)
    rows = {row.name: replace(row, halving={"rounds": [], "dropped": False}, trials=()) for row in comparison.rows}
    left = list(rows.values())
    for number in range(rule.rounds - 1):
        if sum(row.name != comparison.baseline for row in left) < 2:
            break
        trials = [make_round(row, rule, number, prepared) for row in left]
        found = [read_outcome(each, metric, prepared, out) for each in trials]
        open_ = not all(each["status"] for each in found)
        left = [add_round(*each, open_) for each in zip(left, trials, found, strict=True)]
        if not open_:
            left = rank_rows(left, comparison.baseline, rule, ranking)
        rows |= {row.name: row for row in left}
        left = [row for row in left if row.halving and not row.halving["dropped"]]
        if open_:
            rows |= {row.name: replace(row, held=True) for row in left}
            break
    return replace(comparison, rows=tuple(rows.values()))


def make_round(row: Row, rule: Halving, number: int, prepared: Prepared) -> Trial:
    """The row's runs of a round: whole runs of their own, with fewer steps and with the seeds of the rule."""
    run, share = row.first, rule.share(number)
    steps = count_steps(run.train, prepared.task(run))
    if steps < share:
        text = f"row '{row.name}' has {steps} steps, and halving would divide them by {share}"
        raise SpecError([run.model.node.fault(text)])
    train = run.train.shortened(steps, share)
    return Trial({}, tuple(replace(run, train=train, seed=seed) for seed in rule.seeds))


def add_round(row: Row, trial: Trial, got: Mapping[str, Any], open_: bool) -> Row:
    """The row with one more round, of which nothing is told while a run of it is open."""
    end = {key: None if open_ else got[key] for key in ("status", "reason", "dev")}
    this = {"steps": trial.runs[0].train.steps, "runs": got["runs"], **end, "rank": None, "of": None}
    before = row.halving or {}
    halving = {**before, "rounds": [*before["rounds"], this]}
    return replace(row, halving=halving, trials=(*row.trials, trial))


def rank_rows(left: Sequence[Row], baseline: str, rule: Halving, metric: Metric) -> list[Row]:
    """The rows with their ranks among those beside the baseline in the last round; all that are not among the best
    1/`factor`, or have no score, are dropped.
    """
    sign = -1.0 if metric.better == "higher" else 1.0
    rest = [row for row in left if row.name != baseline]
    score = {row.name: found["rounds"][-1]["dev"] for row in rest if (found := row.halving)}
    order = sorted((name for name in score if score[name] is not None), key=lambda name: sign * score[name])
    kept = order[: math.ceil(len(rest) / rule.factor)]
    out = []
    for row in left:
        *before, this = (row.halving or {})["rounds"]
        rank = order.index(row.name) + 1 if row.name in order else None
        this = {**this, "rank": rank, "of": len(rest)}
        dropped = row.name != baseline and row.name not in kept
        out.append(replace(row, held=dropped, halving={"rounds": [*before, this], "dropped": dropped}))
    return out


def halving_rounds(comparison: Comparison) -> list[NamedRuns]:
    """The runs of the rounds that are known, one round after the other."""
    most = max((len(row.trials) for row in comparison.rows), default=0)
    return [
        [(f"{row.name} · round {i + 1}", row.trials[i].runs) for row in comparison.rows if len(row.trials) > i]
        for i in range(most)
    ]


def count_rounds(rule: Halving, rest: int) -> list[int]:
    """How many rows beside the baseline each round has at most, the last one of whole runs too, of `rest` at first."""
    counts = []
    for _ in range(rule.rounds - 1):
        if rest < 2:
            break
        counts.append(rest)
        rest = math.ceil(rest / rule.factor)
    return [*counts, rest]
