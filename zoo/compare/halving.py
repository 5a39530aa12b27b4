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
from zoo.train.loop import n_steps
from zoo.train.metrics import METRICS, Metric

from .comparison import Comparison, Row, Trial
from .prepared import prepared
from .tune import Asked, outcome
from .tuning_rules import Halving


def halved(comparison: Comparison, known: dict, out: Path) -> Comparison:
    """The comparison with the rounds that are known and how they ended in `out`. Runs of rows that were dropped are
    held, and those of all rows while a round is open.

    It depends on what stands in the folders alone. Raises `SpecError` for rows with too few steps to divide.
    """
    rule = comparison.halving
    if rule is None:
        return comparison
    name = comparison.rows[0].runs[0].make_task().metrics[0]
    rows = {row.name: begun(row) for row in comparison.rows}
    left = [row for row in rows.values() if row.halving is not None]
    for number in range(rule.rounds - 1):
        if sum(row.name != comparison.baseline for row in left) < 2:
            break
        tried = [trial(row, rule, number, known) for row in left]
        found = [outcome(each, name, known, out) for each in tried]
        open_ = not all(each["status"] for each in found)
        left = [entered(*each, open_) for each in zip(left, tried, found, strict=True)]
        if not open_:
            left = ranked(left, comparison.baseline, rule, METRICS[name])
        rows |= {row.name: row for row in left}
        left = [row for row in left if not row.halving["dropped"]]
        if open_:
            rows |= {row.name: replace(row, held=True) for row in left}
            break
    return replace(comparison, rows=tuple(rows.values()))


def begun(row: Row) -> Row:
    """The row before the first round; a reference has none."""
    return row if row.runs[0].model is None else replace(row, halving={"rounds": [], "dropped": False}, trials=())


def trial(row: Row, rule: Halving, number: int, known: dict) -> Trial:
    """The row's runs of a round: whole runs of their own, with fewer steps and with the seeds of the rule."""
    run, share = row.runs[0], rule.share(number)
    steps = n_steps(run.train, prepared(run, known))
    if steps < share:
        text = f"row '{row.name}' has {steps} steps, and halving would divide them by {share}"
        raise SpecError([run.model.node.fault(text)])
    train = run.train.shortened(steps, share)
    return Trial({}, tuple(replace(run, train=train, seed=seed) for seed in rule.seeds))


def entered(row: Row, tried: Trial, got: Mapping[str, Any], open_: bool) -> Row:
    """The row with one more round, of which nothing is told while a run of it is open."""
    told = {key: None if open_ else got[key] for key in ("status", "reason", "dev")}
    this = {"steps": tried.runs[0].train.steps, "runs": got["runs"], **told, "rank": None, "of": None}
    halving = {**row.halving, "rounds": [*row.halving["rounds"], this]}
    return replace(row, halving=halving, trials=(*row.trials, tried))


def ranked(left: Sequence[Row], baseline: str, rule: Halving, metric: Metric) -> list[Row]:
    """The rows with their ranks among those beside the baseline in the last round; all that are not among the best
    1/`factor`, or have no score, are dropped.
    """
    sign = -1.0 if metric.better == "higher" else 1.0
    rest = [row for row in left if row.name != baseline]
    score = {row.name: row.halving["rounds"][-1]["dev"] for row in rest}
    order = sorted((name for name in score if score[name] is not None), key=lambda name: sign * score[name])
    kept = order[: math.ceil(len(rest) / rule.factor)]
    out = []
    for row in left:
        *before, this = row.halving["rounds"]
        rank = order.index(row.name) + 1 if row.name in order else None
        this = {**this, "rank": rank, "of": len(rest)}
        dropped = row.name != baseline and row.name not in kept
        out.append(replace(row, held=dropped, halving={"rounds": [*before, this], "dropped": dropped}))
    return out


def rounds(comparison: Comparison) -> list[Asked]:
    """The runs of the rounds that are known, one round after the other."""
    most = max((len(row.trials) for row in comparison.rows), default=0)
    return [
        [(f"{row.name} · round {i + 1}", row.trials[i].runs) for row in comparison.rows if len(row.trials) > i]
        for i in range(most)
    ]


def most(rule: Halving, rest: int) -> list[int]:
    """How many rows beside the baseline each round has at most, the last one of whole runs too, of `rest` at first."""
    counts = []
    for _ in range(rule.rounds - 1):
        if rest < 2:
            break
        counts.append(rest)
        rest = math.ceil(rest / rule.factor)
    return [*counts, rest]
