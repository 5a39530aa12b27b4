"""The small tables of a report: what was claimed, and what each slot does."""

from __future__ import annotations

from zoo import numbers

from ..judging.effects import judge_effects
from ..table import Table
from ..text import one_line
from . import claims
from .columns import Column, SmallTable

EFFECT = (
    Column("effect of", lambda effect: one_line(effect.name), 1, right=False, breaks="words"),
    Column("against", lambda effect: one_line(effect.against), 5, right=False, breaks="commas"),
    Column("difference [95 %]", lambda effect: numbers.between(effect.verdict), 2, value=lambda e: e.verdict.mean),
    Column("p", lambda effect: numbers.chance(effect.verdict.p_holm), 4, value=lambda effect: effect.verdict.p_holm),
    Column("verdict", lambda effect: effect.phrase, 3, right=False, breaks="words"),
    Column("settings", lambda effect: str(effect.contrast.settings), 7, value=lambda e: e.contrast.settings),
    Column("seeds", lambda effect: str(effect.verdict.n), 6, value=lambda effect: effect.verdict.n),
)
"""The columns of the small tables."""


def small_tables(table: Table) -> list[SmallTable]:
    """What stands under the large one."""
    held = claims.make_claims_table(table)
    return [*([held] if held else []), *effect_tables(table)]


def effect_tables(table: Table) -> list[SmallTable]:
    """The effects of slots, each of two of them too."""
    found = judge_effects(table)
    named = {"Each slot, averaged over the others": found.main, "Two slots together": found.interactions}
    return [SmallTable(title, EFFECT, some) for title, some in named.items() if some]
