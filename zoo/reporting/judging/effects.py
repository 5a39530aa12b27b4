"""What one slot does, averaged over the others, and what two do together, where a comparison crosses them."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from ..table import Row, Table
from .verdict import describe, phrase, rule

if TYPE_CHECKING:
    from zoo.statistics import Verdict

Values = tuple[tuple[str, str | None], ...]
"""An axis and its value, None where a row has none on it; of an interaction, two of them."""

Scores = Mapping[int, float]
"""By seed."""


@dataclass(frozen=True)
class Contrast:
    """What `values` do in place of the baseline's `against`, seed by seed, averaged over `settings` of all else.

    Of two axes it is the difference of differences: what both do together beyond what each does alone. `lost` seeds
    are those that some of the settings have, and not all.
    """

    values: Values
    against: Values
    settings: int
    lost: int
    differences: tuple[float, ...]


@dataclass(frozen=True)
class Effect:
    """A contrast and the verdict on it."""

    contrast: Contrast
    verdict: Verdict

    @property
    def name(self) -> str:
        return " with ".join(f"{axis}: {value}" for axis, value in self.contrast.values)

    @property
    def phrase(self) -> str:
        if len(self.contrast.values) == 1:
            return phrase(self.verdict)
        together = {"better": "better together", "worse": "worse together"}
        return together.get(self.verdict.word) or phrase(self.verdict, "no interaction")

    @property
    def against(self) -> str:
        return ", ".join(str(value) for _, value in self.contrast.against)


def describe_effect(effect: Effect, unit: str) -> str:
    """One sentence on what a slot, or two of them, does."""
    over = f"over {effect.contrast.settings} setting{'' if effect.contrast.settings == 1 else 's'} of the rest"
    return f"{effect.name} in place of {effect.against}, {over}: {describe(effect.verdict, effect.phrase, unit)}"


@dataclass(frozen=True)
class Effects:
    """Main effects and interactions, each kind corrected among its own, the best first, and why there are no more."""

    main: tuple[Effect, ...] = ()
    interactions: tuple[Effect, ...] = ()
    why_not: str = ""


def judge_effects(table: Table) -> Effects:
    """The effects of a grid, of a balanced part of one, or of any design in which settings recur.

    One axis has none beyond the verdicts on its rows. A seed is one observation, since its runs share their data: the
    contrasts of all settings are averaged within each seed before they are judged.
    """
    rows = [row for row in table.rows if row.cell]
    if any(row.dropped for row in rows):
        return Effects(why_not="No slot is averaged over others: which settings are left was decided by their scores.")
    values = {axis: list(dict.fromkeys(row.cell.get(axis) for row in rows)) for row in rows for axis in row.cell}
    axes = [axis for axis in values if len(values[axis]) > 1]
    if len(axes) < 2:
        why = f"only {axes[0]} varies, so the rows are its effects" if axes else "the rows are not made by 'vary'"
        return Effects(why_not=f"No slot is averaged over others: {why}.")
    base = table.base
    if base is None or not base.cell:
        return Effects(
            why_not=f"No slot is averaged over others: the baseline {table.baseline} is not one of the settings."
        )
    steps = [((axis, value),) for axis in axes for value in values[axis] if value != base.cell.get(axis)]
    of_tasks = {axis for row in rows for axis in row.task}
    alone = [step for step in steps if step[0][0] not in of_tasks]  # of two tasks none is the better
    single = {
        step: _contrast_matched(table, rows, axes, step) or _contrast_marginal(table, rows, axes, step)
        for step in alone
    }
    pairs = [(a, b) for (a,), (b,) in itertools.combinations(steps, 2) if a[0] != b[0]]
    both = (_contrast_matched(table, rows, axes, pair, least=1) for pair in pairs)
    return Effects(_judge(table, single.values()), _judge(table, both), _explain_missing(single))


def _explain_missing(found: Mapping[tuple[tuple[str, str | None]], Contrast | None]) -> str:
    """Which values have no effect of their own, and why."""
    if not any(found.values()):
        return "No slot is averaged over others: none changes alone at two settings with shared seeds."
    left = ", ".join(f"{axis}: {value}" for ((axis, value),), contrast in found.items() if not contrast)
    return f"Not averaged over other slots, since no two settings have it and share seeds: {left}." if left else ""


def _contrast_matched(
    table: Table, rows: list[Row], axes: list[str], values: Values, least: int = 2
) -> Contrast | None:
    """The contrast over every setting of the other axes in which all of its rows share a seed, of which there are
    `least` or more."""
    scores = {tuple(row.cell.get(axis) for axis in axes): row.scores(table.metric) for row in rows}
    against = _take_baseline(table, values)
    others = [axis for axis in axes if axis not in dict(values)]
    by_setting = []
    for setting in dict.fromkeys(tuple((axis, row.cell.get(axis)) for axis in others) for row in rows):
        corners = []
        for chosen in itertools.product(*zip(values, against, strict=True)):
            cell = dict(setting) | dict(chosen)
            sign = -1 if sum(one in against for one in chosen) % 2 else 1
            corners.append((sign, scores.get(tuple(cell[axis] for axis in axes), {})))
        if shared := set.intersection(*(set(found) for _, found in corners)):
            by_setting.append({seed: sum(sign * found[seed] for sign, found in corners) for seed in shared})
    return _average_settings(values, against, by_setting) if len(by_setting) >= least else None


def _contrast_marginal(table: Table, rows: list[Row], axes: list[str], values: Values) -> Contrast | None:
    """The mean of all rows with a value less that of the baseline's, where both meet all else equally often."""
    [(axis, _)], against = values, _take_baseline(table, values)
    sides = [[row for row in rows if row.test and row.cell.get(axis) == value] for ((_, value),) in (values, against)]
    met = [[{v: n / len(side) for v, n in Counter(row.cell.get(other) for row in side).items()} for side in sides]
           for other in axes if other != axis]  # fmt: skip
    if min(map(len, sides)) < 2 or any(here != there for here, there in met):
        return None
    with_it, without = ([row.scores(table.metric) for row in side] for side in sides)
    seeds = set.intersection(*map(set, with_it + without))
    means = {s: fmean(found[s] for found in with_it) - fmean(found[s] for found in without) for s in seeds}
    lost = len(set().union(*with_it, *without)) - len(seeds)
    return Contrast(values, against, len(with_it), lost, tuple(means[s] for s in sorted(means))) if seeds else None


def _take_baseline(table: Table, values: Values) -> Values:
    cell = table.base.cell if table.base else {}
    return tuple((axis, cell.get(axis)) for axis, _ in values)


def _average_settings(values: Values, against: Values, by_setting: Sequence[Scores]) -> Contrast | None:
    """The mean over settings at every seed that all of them have, so that each is a mean over the same ones."""
    seeds = sorted(set.intersection(*map(set, by_setting)))
    lost = len(set().union(*by_setting)) - len(seeds)
    differences = tuple(fmean(setting[seed] for setting in by_setting) for seed in seeds)
    return Contrast(values, against, len(by_setting), lost, differences) if seeds else None


def _judge(table: Table, found: Iterable[Contrast | None]) -> tuple[Effect, ...]:
    from zoo.statistics import judge

    kept, how = [contrast for contrast in found if contrast], rule(table)
    verdicts = judge([contrast.differences for contrast in kept], how.margin, table.metric.better, how.test)
    judged = map(Effect, kept, verdicts)
    return tuple(sorted(judged, key=lambda effect: table.metric.rank(effect.verdict.mean)))
