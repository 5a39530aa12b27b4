"""The columns of a report's large table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from zoo import numbers

from ..judging import fairness
from ..judging.pareto import COSTS, find_best
from ..judging.verdict import Finding, findings
from ..table import Mean, Row, Table
from ..text import one_line, spell_choices


@dataclass(frozen=True)
class Column:
    """`priority` 1 is the last to go where there is no room; `breaks` says where lines may: at "commas", between
    "words" or "anywhere". `value` is the number that `text` stands for, where it stands for one."""

    head: str
    text: Callable[[Any], str]
    priority: int
    right: bool = True
    breaks: str = ""
    value: Callable[[Any], float | None] | None = None


@dataclass(frozen=True)
class SmallTable:
    """A table beside the large one, and the lines that stand above it."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Any]
    lines: Sequence[str] = ()


def columns(table: Table) -> list[Column]:
    """The columns that say something about at least one row."""
    name = table.metric.name
    plain = all(row.status == "done" for row in table.rows)
    loss = Column("test loss", lambda row: numbers.mean(row.loss), 12, value=lambda row: _mean(row.loss))
    several = [loss] if name != "loss" else []
    found, best = findings(table), find_best(table)
    every = [
        Column("variant", lambda row: one_line(row.name), 1, right=False, breaks="anywhere"),
        Column("what differs", lambda row: one_line(spell_choices(row.differs)), 10, right=False, breaks="commas"),
        Column("parameters", lambda row: numbers.count(row.parameters), 6, value=lambda row: row.parameters),
        Column("FLOPs/token", lambda row: numbers.flops(row.flops_per_token), 11, value=attrgetter("flops_per_token")),
        Column("mismatch", fairness.format_mismatch, 10, value=lambda row: row.match.get("mismatch")),
        Column(f"test {one_line(name)}", lambda row: numbers.mean(row.test), 2, value=lambda row: _mean(row.test)),
        *several,
        *(_probe(probe, one_line(name)) for probe in table.probes),
        Column("difference [95 %]", lambda row: _difference(table, row, found), 4, value=lambda r: _mean(r.difference)),
        Column("p", lambda row: numbers.chance(_p(found.get(row.name))), 7, value=lambda row: _p(found.get(row.name))),
        Column("verdict", lambda row: _phrase(found.get(row.name)), 5, right=False, breaks="words"),
        Column("epochs", lambda row: numbers.epochs(row.epochs), 13, value=lambda row: row.epochs),
        Column("tokens/s", lambda row: numbers.rate(row.tokens_per_second), 8, value=lambda row: row.tokens_per_second),
        Column("decode tokens/s", _decoded, 9, value=lambda row: row.decode_tokens_per_second),
        Column("peak memory", lambda row: numbers.size(row.peak_memory_bytes), 14, value=lambda r: r.peak_memory_bytes),
        Column("KV/token", lambda row: numbers.size(row.kv_bytes_per_token), 9, value=lambda r: r.kv_bytes_per_token),
        Column("Pareto", lambda row: _best(best, row), 15, right=False, breaks="commas"),
        Column("status", lambda row: one_line(row.progress), 16 if plain else 3, right=False, breaks="commas"),
    ]
    return [column for column in every if any(column.text(row) for row in table.rows)]


def _decoded(row: Row) -> str:
    return numbers.rate(row.decode_tokens_per_second)


def _probe(split: str, metric: str) -> Column:
    """A further split; where fewer seeds have a score on it than on test, how many do."""

    def text(row: Row) -> str:
        mean = row.probes.get(split)
        few = f" ({mean.n} of {row.test.n} seeds)" if mean and row.test and mean.n < row.test.n else ""
        return numbers.mean(mean) + few

    return Column(f"{one_line(split)} {metric}", text, 6, value=lambda row: _mean(row.probes.get(split)))


def _difference(table: Table, row: Row, found: Mapping[str, Finding]) -> str:
    if row.name == table.baseline:
        return "baseline" if row.test else ""
    if verdict := found[row.name].verdict:
        return numbers.between(verdict)
    return numbers.signed(row.difference.mean) if row.difference else ""


def _p(finding: Finding | None) -> float | None:
    return finding.verdict.p_holm if finding and finding.verdict else None


def _mean(value: Mean | None) -> float | None:
    return None if value is None else value.mean


def _phrase(finding: Finding | None) -> str:
    return finding.phrase if finding else ""


def _best(best: Mapping[str, list[str]], row: Row) -> str:
    return ", ".join(COSTS[cost][0] for cost, names in best.items() if row.name in names)
