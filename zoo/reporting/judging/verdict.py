"""What the differences of a table come to: a verdict on every row, in a phrase and in a sentence.

`docs/verdict.md` says how each is reached.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from zoo import numbers

from ..table import Row, Table

if TYPE_CHECKING:
    from zoo.statistics import Verdict

SHARE = 0.01
"""The margin that counts as no difference, as a share of the baseline's mean, where the comparison names none."""

UNFINISHED = ("done", "not run", "running", "interrupted")
"""Outcomes that take no pair away: a score is there, or may still come."""


@dataclass(frozen=True)
class Rule:
    """How the rows of a table are judged: the test, the margin, over how many arms, and the pairs that it takes."""

    test: str
    margin: float
    chosen: bool
    arms: int
    fewest: int


@dataclass(frozen=True)
class Finding:
    """What is known of one row against the baseline.

    `verdict` is None for a reference, and where no seed has a score on both sides. `wins` counts the seeds of the
    baseline that a reference is better than, equal ones half, and `pairs` how many there are. `lost` of the `planned`
    pairs have a run that ended without a finite score.
    """

    row: Row
    verdict: Verdict | None
    wins: float | None
    pairs: int
    planned: int
    lost: int

    @property
    def phrase(self) -> str:
        """The verdict in as few words as a table has room for."""
        if self.wins is not None:
            way: dict[float, str] = {self.pairs: "better than every seed", 0: "worse than every seed"}
            return way.get(self.wins, f"better than {self.wins:g} of {self.pairs} seeds")
        return "" if self.verdict is None else phrase(self.verdict)


def phrase(verdict: Verdict, nothing: str = "no difference") -> str:
    if verdict.word == "no difference" and verdict.bound is not None:
        return f"{nothing} larger than {numbers.at_most(verdict.bound)}"
    if verdict.word == "cannot tell":
        return f"cannot tell: run {count_missing_seeds(verdict)}"
    return verdict.word


def count_missing_seeds(verdict: Verdict) -> str:
    """How many more it takes; a number beyond counting is not made up."""
    from zoo.statistics import MOST

    more = verdict.more or 0
    if verdict.n + more >= MOST:
        return f"over {MOST:,} more seeds"
    return f"{more:,} more seed{'' if more == 1 else 's'}"


def rule(table: Table) -> Rule:
    """What `findings` go by."""
    from zoo.statistics import ALPHA, fewest

    arms = sum(not row.reference and bool(table.differences(row)) for row in table.rows)
    base = table.base
    margin = table.margin
    if margin is None:
        margin = SHARE * abs(base.test.mean) if base and base.test else 0.0
    least = fewest(table.test, ALPHA / max(arms, 1))
    return Rule(table.test, margin, table.margin is not None, arms, least)


def findings(table: Table) -> dict[str, Finding]:
    """The finding on every row but the baseline, by name, in the table's order: the best first.

    All arms are judged together, so that Holm's correction is over them; a reference is a bar, and no arm.
    """
    from zoo.statistics import improvement, judge

    rows = {row.name: row for row in table.rows if row.name != table.baseline}
    differences = {name: list(table.differences(row).values()) for name, row in rows.items()}
    arms = [name for name, row in rows.items() if differences[name] and not row.reference]
    how = rule(table)
    judged = judge([differences[name] for name in arms], how.margin, table.metric.better, how.test)
    verdicts = dict(zip(arms, judged, strict=True))
    out = {}
    for name, row in rows.items():
        pairs, wins = len(differences[name]), None
        if row.reference and pairs:
            wins = pairs * float(improvement([-table.metric.rank(d) for d in differences[name]]))
        out[name] = Finding(row, verdicts.get(name), wins, pairs, *_count_lost_pairs(table, row))
    return out


def _count_lost_pairs(table: Table, row: Row) -> tuple[int, int]:
    """How many pairs were planned, and how many of them a run has ended without a score for."""
    ends = [{run.seed: run.outcome for run in each.runs} for each in (row, table.base) if each and not each.reference]
    shared = set.intersection(*map(set, ends)) if ends else set()
    return len(shared), sum(any(end[seed] not in UNFINISHED for end in ends) for seed in shared)


def describe_rows(table: Table) -> list[str]:
    """One sentence for each row that there is something to say about, the best first."""
    if table.base is None or table.base.test is None:
        return []
    return [text for finding in findings(table).values() if (text := _describe_row(table, finding))]


def _describe_row(table: Table, finding: Finding) -> str:
    row, verdict, base, unit = finding.row, finding.verdict, table.baseline, table.metric.name
    if finding.wins is not None and row.difference:
        size = numbers.score(abs(row.difference.mean))
        way = "worse" if table.metric.rank(row.difference.mean) > 0 else "better"
        by = f"{'' if finding.phrase.startswith(f'{way} than every') else f'{way} '}by {size} {unit}"
        return f"{row.name}, a reference: {finding.phrase} of {base}, {by} on average."
    if verdict is None:
        ended = any(outcome not in UNFINISHED for outcome in row.outcomes)
        if table.apart(row) and row.test:
            return ""
        why = "no seed has a score on both sides" if row.test else row.status if ended else ""
        why = f"{row.status}, {row.reason}" if row.dropped else why
        return f"{row.name}: no verdict: {why}." if why else ""
    lost = f" {_warn_of_survivors(finding)}" if finding.lost else ""
    return f"{row.name}: {describe(verdict, phrase(verdict), unit, f' than {base}')}{lost}"


def describe(verdict: Verdict, said: str, unit: str, than: str = "") -> str:
    """What was said of a difference, with the figures that it rests on."""
    figures = [f"p = {numbers.chance(verdict.p_holm)}"]
    if verdict.interval:
        figures.insert(0, "95 % interval {} to {}".format(*map(numbers.signed, verdict.interval)))
    if verdict.word in ("better", "worse"):
        return f"{said}{than} by {numbers.score(abs(verdict.mean))} {unit} ({', '.join(figures)})."
    figures.insert(0, f"difference {numbers.signed(verdict.mean)} {unit}")
    return f"{said} ({', '.join(figures)})."


def _warn_of_survivors(finding: Finding) -> str:
    return (
        f"{finding.lost} of {finding.planned} pairs are lost to runs without a finite score; "
        "this is on the survivors only."
    )
