"""What was claimed of a comparison's rows, compared to what its runs have found. `docs/claims.md` says how."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from zoo import numbers
from zoo.claims import FIGURES, TIMED, Claim

from ..table import Row, Run, Table, number
from . import speed
from .verdict import UNFINISHED

WORDS = ("reproduced", "not reproduced", "cannot tell")
LARGE = 100
"""From here on decimals say nothing."""


@dataclass(frozen=True)
class JudgedClaim:
    """What the runs say of a claim: one of `WORDS`, and what there is to add to it.

    `differences` are by seed, the row less the other; `low` and `high` bound their mean with 95 %, None where there
    are fewer than two. `missing` counts, by what became of them, the pairs of the `planned` ones that have none.
    """

    claim: Claim
    word: str
    why: str
    differences: Mapping[int, float]
    low: float | None
    high: float | None
    planned: int
    missing: Mapping[str, int]

    @property
    def mean(self) -> float | None:
        return fmean(self.differences.values()) if self.differences else None

    @property
    def lacking(self) -> str:
        """Which pairs there are not, in words."""
        kinds = [kind if len(self.missing) == 1 else f"{count} {kind}" for kind, count in self.missing.items()]
        return f"without {sum(self.missing.values())} of {self.planned} pairs ({', '.join(kinds)})" if kinds else ""

    @property
    def text(self) -> str:
        """The word with what restricts it."""
        why = f"{self.word}: {self.why}" if self.why else self.word
        return f"{why}{'; ' if self.why else ', '}{self.lacking}" if self.lacking else why


def judge_claims(table: Table) -> list[JudgedClaim]:
    """Every claim of a table, in the order in which they were written."""
    return [_judge_claim(table, claim) for claim in table.claims]


def _judge_claim(table: Table, claim: Claim) -> JudgedClaim:
    rows = {row.name: row for row in table.rows}
    pairs = _pair_seeds(claim, rows[claim.row], rows[claim.than])
    differences = {seed: value for seed, value in pairs.items() if not isinstance(value, str)}
    missing = Counter(value for value in pairs.values() if isinstance(value, str))
    low = high = None
    if len(differences) > 1:
        from zoo.statistics import interval

        low, high = map(float, interval(list(differences.values())))
    word, why = _decide(table, claim, low, high, len(differences))
    if not pairs:
        why = ", ".join(
            f"{name} is {rows[name].status}" for name in dict.fromkeys((claim.row, claim.than)) if not rows[name].runs
        )
    return JudgedClaim(claim, word, why, differences, low, high, len(pairs), missing)


def _pair_seeds(claim: Claim, row: Row, than: Row) -> dict[int, float | str]:
    """By seed, the difference, or why there is none. A reference, which has one score, has it at every seed."""
    sides = [{run.seed: run for run in each.runs} for each in (row, than)]
    seeded = [side for side, each in zip(sides, (row, than), strict=True) if not each.reference] or sides
    out: dict[int, float | str] = {}
    for seed in sorted(set.intersection(*map(set, seeded))) if all(sides) else ():
        mine, theirs = (
            _read_value(claim, side.get(seed) or next(iter(side.values())), split)
            for side, split in zip(sides, (claim.on, claim.than_on), strict=True)
        )
        out[seed] = mine if isinstance(mine, str) else theirs if isinstance(theirs, str) else mine - theirs
    return out


def _read_value(claim: Claim, run: Run, split: str | None) -> float | str:
    if run.status != "done":
        return "to come" if run.outcome in UNFINISHED else run.outcome
    value = number(run.fact(*FIGURES[claim.of].read)) if split is None else run.scores(split).get(claim.of)
    return f"no {claim.what}{f' on {split}' if split else ''}" if value is None else value


def _decide(table: Table, claim: Claim, low: float | None, high: float | None, n: int) -> tuple[str, str]:
    """The word, and why it is not a better one."""
    if claim.of in TIMED and not table.one_machine:
        return WORDS[2], "not all runs were on one machine"
    if claim.of == "decode" and len(speed.list_ways(table)) > 1:
        return WORDS[2], "not all runs wrote as much, timed by the same clock"
    if low is None or high is None:
        return WORDS[2], "one pair has no interval" if n else ""
    sign = -1.0 if claim.better == "lower" else 1.0
    worst, best = sorted((sign * low, sign * high))
    least, most = claim.region
    if least < worst and best < most:
        return WORDS[0], ""
    if best <= least or most <= worst:
        direction = {"better": worst > 0, "worse": best < 0}.get(claim.way)
        return WORDS[1], "the direction is as claimed, the size is not" if direction else ""
    inside = [
        format_signed(sign * bound + 0.0) for bound in claim.region if worst <= bound <= best and math.isfinite(bound)
    ]
    lie = "lies" if len(inside) < 2 else "lie"
    return WORDS[2], f"too few seeds, since {' and '.join(inside)} {lie} in the interval"


def format_size(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= LARGE else numbers.score(value)


def format_signed(value: float) -> str:
    return ("+" if value > 0 else "") + format_size(value)
