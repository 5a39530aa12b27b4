"""Differences with their intervals, as they are drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from zoo import numbers

from ..drawing import Scale
from ..table import Table
from .effects import Effect, judge_effects
from .verdict import findings

if TYPE_CHECKING:
    from zoo.statistics import Verdict

WIDE = 2.5  # intervals may be so much wider than the differences before they are cut


@dataclass(frozen=True)
class Bar:
    """A difference to be drawn: of whom, over which seeds, and what it comes to."""

    name: str
    verdict: Verdict
    phrase: str
    seeds: Mapping[str, float]

    @property
    def said(self) -> str:
        return f"{numbers.between(self.verdict)}: {self.phrase}"


def make_row_bars(table: Table) -> list[Bar]:
    """The rows that a verdict was reached on."""
    out = []
    for finding in findings(table).values():
        if finding.verdict:
            seeds = {f"seed {seed}": value for seed, value in table.differences(finding.row).items()}
            out.append(Bar(finding.row.name, finding.verdict, finding.phrase, seeds))
    return out


def make_effect_bars(found: Iterable[Effect]) -> list[Bar]:
    """Effects of slots; a dot is a seed, averaged over settings."""
    out = []
    for effect in found:
        seeds = {f"pair {number}": value for number, value in enumerate(effect.contrast.differences, 1)}
        name = f"{effect.name} in place of {effect.against}"
        out.append(Bar(name, effect.verdict, effect.phrase, seeds))
    return out


def group_bars(table: Table) -> dict[str, list[Bar]]:
    """All of a table by title: rows against the baseline, then slots."""
    found = judge_effects(table)
    every = {
        f"Rows less {table.baseline}, paired by seed": make_row_bars(table),
        "Slots, averaged over the others": make_effect_bars(found.main),
        "Two slots together, beyond each alone": make_effect_bars(found.interactions),
    }
    return {title: drawn for title, drawn in every.items() if drawn}


def fit_scale(drawn: Sequence[Bar], margin: float) -> Scale:
    """A scale for all seeds; an interval that is much wider is cut, since it would leave them no room."""
    values = [0.0, margin, -margin, *(value for bar in drawn for value in (bar.verdict.mean, *bar.seeds.values()))]
    widest = WIDE * max(map(abs, values))
    bounds = [bound for bar in drawn for bound in (bar.verdict.low, bar.verdict.high) if bound is not None]
    values += [min(max(bound, -widest), widest) for bound in bounds]
    low, high = min(values), max(values)
    more = 0.06 * (high - low) or 1.0
    return Scale(low - more, high + more)
