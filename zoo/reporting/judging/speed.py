"""On what the speed of writing was measured."""

from __future__ import annotations

from typing import Any

from ..table import Table

CLOCKS = {"processor": "processor time", "wall": "the clock on the wall"}


def list_ways(table: Table) -> list[tuple[int, int, str]]:
    """What runs wrote, rows and tokens of each, by which clock, once each; rows can be compared where there is one."""
    runs = [run.record.get("decode") or {} for row in table.rows for run in row.runs]
    known = [(found.get("rows"), found.get("tokens"), found.get("clock") or "wall") for found in runs]
    return sorted({(rows, tokens, clock) for rows, tokens, clock in known if rows is not None and tokens is not None})


def find_loads(table: Table) -> tuple[float, float] | None:
    """The least and the most that the machine had to do meanwhile: processes that compute or wait to."""
    found = [load for row in table.rows for run in row.runs if (load := run.fact("decode", "load")) is not None]
    return (min(found), max(found)) if found else None


def collect_decode(table: Table) -> dict[str, Any] | None:
    """The same for a file; None where nothing was measured."""
    found = [{"rows": rows, "tokens": tokens, "clock": clock} for rows, tokens, clock in list_ways(table)]
    return {"written": found, "load": find_loads(table)} if found else None


def describe_decode(table: Table) -> str:
    """What a reader of the column must know; nothing where nothing was measured."""
    if not (found := list_ways(table)):
        return ""
    written = ", or ".join(f"{rows} rows of {tokens} tokens by {CLOCKS[clock]}" for rows, tokens, clock in found)
    busy = (
        "" if (load := find_loads(table)) is None else f", under a load of {' to '.join(_format_ends(*load))} processes"
    )
    alike = "" if len(found) < 2 else " It was NOT the same in every run, so rows cannot be compared in it."
    line = f"{written}, at once, greedy, from a cache, after training{busy}; the fastest of a few passes"
    return f"{line}. It is good for ratios within this table, not as a speed.{alike}"


def _format_ends(low: float, high: float) -> list[str]:
    return list(dict.fromkeys(f"{load:.1f}" for load in (low, high)))
