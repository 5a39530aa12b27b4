"""Which rows give the best score for what they cost."""

from __future__ import annotations

from collections.abc import Callable

from .table import Row, Table

COSTS: dict[str, tuple[str, Callable[[Row], float | None]]] = {
    "parameters": ("parameters", lambda row: row.parameters),
    "train_seconds": ("training time", lambda row: row.train_seconds),
    "decode_seconds": ("decode time", lambda row: _inverse(row.decode_tokens_per_second)),
    "kv_bytes_per_token": ("KV memory", lambda row: row.kv_bytes_per_token),
}
"""What a row can cost: a name in files, one for people, and the cost itself, less being better."""

TIMES = ("train_seconds", "decode_seconds")
"""Costs that can be compared only where all runs were on one machine."""


def fronts(table: Table) -> dict[str, list[str]]:
    """By cost, the names of the rows that no other beats in it and in the score; a row without either is left out.

    Costs that fewer than two rows have, or that are the same for all, say nothing and are not there.
    """
    from ..statistics import front

    out = {}
    for name, (_, cost) in COSTS.items():
        known = [row for row in table.rows if row.test and cost(row) is not None]
        if len({cost(row) for row in known}) > 1 and (table.one_machine or name not in TIMES):
            points = [(table.metric.rank(row.test.mean), cost(row)) for row in known]
            out[name] = [row.name for row, best in zip(known, front(points), strict=True) if best]
    return out


def _inverse(value: float | None) -> float | None:
    return 1 / value if value else None
