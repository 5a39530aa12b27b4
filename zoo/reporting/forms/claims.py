"""Claims and what was found of each: a section of a report, and one page over several comparisons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from tabulate import tabulate

from zoo.faults import SpecError

from ..judging.claims import WORDS, JudgedClaim, format_signed, judge_claims
from ..table import Table
from ..text import escape_markdown, one_line
from .columns import Column, SmallTable


def format_difference(each: JudgedClaim) -> str:
    """The mean difference, its interval, and the unit."""
    if each.mean is None:
        return ""
    bounds = (
        "" if each.low is None or each.high is None else f" [{format_signed(each.low)}, {format_signed(each.high)}]"
    )
    unit = each.claim.of if each.claim.on else each.claim.unit
    return f"{format_signed(each.mean)}{bounds} {unit}".rstrip()


def format_seeds(each: JudgedClaim) -> str:
    return f"{len(each.differences)} of {each.planned}" if each.missing else str(len(each.differences))


COLUMNS = (
    Column("claim", lambda each: one_line(each.claim.words), 1, right=False, breaks="words"),
    Column("source", lambda each: one_line(each.claim.source), 5, right=False, breaks="words"),
    Column("difference [95 %]", format_difference, 3, value=lambda each: each.mean),
    Column("seeds", format_seeds, 4, value=lambda each: len(each.differences)),
    Column("found", lambda each: one_line(each.text), 2, right=False, breaks="words"),
)


def count_words(judged: Iterable[JudgedClaim]) -> str:
    """How many claims got which word."""
    counts = Counter(each.word for each in judged)
    return ", ".join(f"{counts[word]} {word}" for word in WORDS)


def expect_misses(judged: Iterable[JudgedClaim]) -> str:
    """What to expect of so many intervals."""
    from zoo.statistics import ALPHA

    n = sum(each.low is not None for each in judged)
    if not n:
        return ""
    return (
        f"Each interval by itself holds the true difference with 95 %: of {n}, {ALPHA * n:.2g} may be expected to "
        "miss it by chance, and the word that rests on one of these to be wrong."
    )


RULE = (
    "Differences are paired by seed. Reproduced: all of the interval is as claimed; not reproduced: none of it is; "
    "cannot tell: a part of it is, or there is none."
)


def make_claims_table(table: Table) -> SmallTable | None:
    """The section on claims; None where none were made."""
    judged = judge_claims(table)
    if not judged:
        return None
    return SmallTable(
        "Claims", COLUMNS, judged, [line for line in (f"{count_words(judged)}.", RULE, expect_misses(judged)) if line]
    )


def describe_claims(table: Table) -> list[str]:
    """Claim by claim, for forms that have no room for a second table."""
    return [_describe_claim(each) for each in judge_claims(table)]


def _describe_claim(each: JudgedClaim) -> str:
    source = f" ({each.claim.source})" if each.claim.source else ""
    figures = f", difference {shown}" if (shown := format_difference(each)) else ""
    return f"Claim: {each.claim.words}{source}: {each.text}{figures}, seeds: {format_seeds(each)}."


def list_claims(table: Table) -> list[dict[str, Any]]:
    """As JSON holds them."""
    return [
        {
            **each.claim.record(),
            "words": each.claim.words,
            "word": each.word,
            "why": each.why,
            "mean": each.mean,
            "low": each.low,
            "high": each.high,
            "n": len(each.differences),
            "planned": each.planned,
            "missing": dict(each.missing),
            "differences": dict(each.differences),
        }
        for each in judge_claims(table)
    ]


def to_evidence(tables: Iterable[Table]) -> str:
    """How many claims were reproduced, then each with what was found and a link to the report that it rests on.

    Raises `SpecError` where nothing was claimed.
    """
    judged = {table.name: judge_claims(table) for table in tables}
    every = [each for some in judged.values() for each in some]
    if not every:
        raise SpecError(f"there are no claims in {', '.join(judged)}; write them under 'claims' in the file")
    lines = []
    for name, some in judged.items():
        link = f"[{escape_markdown(one_line(name))}]({quote(name)}/report.md)"
        lines += [[*(escape_markdown(column.text(each)) for column in COLUMNS), link] for each in some]
    heads = [*(column.head for column in COLUMNS), "comparison"]
    align = [*("right" if column.right else "left" for column in COLUMNS), "left"]
    body = tabulate(lines, heads, "pipe", disable_numparse=True, colalign=align)
    return (
        "\n\n".join(part for part in (f"# Claims: {count_words(every)}", RULE, expect_misses(every), body) if part)
        + "\n"
    )
