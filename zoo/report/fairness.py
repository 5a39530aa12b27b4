"""What was done so that rows can be compared: in what they were made to agree, and how their settings were chosen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import units
from .table import Row, Table

CLOSE = 0.01
"""The share by which rows may differ and still be called equal."""


def said(table: Table) -> list[str]:
    """Sentences for the caption; none where nothing was matched and nothing tuned."""
    return [*_matched(table), *_tuned(table)]


def _matched(table: Table) -> list[str]:
    rows = [row for row in table.rows if row.match]
    if not rows:
        return []
    rule = rows[0].match
    off = {row.name: row.match["mismatch"] for row in rows}
    far = [f"{name} {share(value)}" for name, value in off.items() if abs(value) > CLOSE]
    line = f"Matched in {rule['what']} by {rule['by']}, within {100 * max(map(abs, off.values())):.2g} %."
    return [f"{line} NOT equal: {', '.join(far)}." if far else line]


def _tuned(table: Table) -> list[str]:
    trials = [trial for row in table.rows if row.tuning for trial in row.tuning["trials"]]
    if not trials:
        return []
    rows = [row for row in table.rows if row.tuning]
    each, seeds = len(rows[0].tuning["trials"]), [run["seed"] for run in trials[0]["runs"]]
    named = ", ".join(trials[0]["values"])
    line = f"Tuned: {named}, {each} choices for every row, chosen on dev with seed {', '.join(map(str, seeds))}"
    lost = [trial for trial in trials if trial["status"] not in (None, "done")]
    return [f"{line}; {len(lost)} of {len(trials)} trials ended without a score." if lost else f"{line}."]


def warned(table: Table) -> list[str]:
    """Rows whose best value is the last that was tried."""
    edges = [(row, path, way) for row in table.rows if row.tuning for path, way in row.tuning["edge"].items()]
    return [
        f"{row.name}: {path} {spelled(row.tuning['chosen'][path])} is the {way} value tried; a better may lie beyond."
        for row, path, way in edges
    ]


def share(value: float) -> str:
    return f"{100 * value:+.2g} %"


def mismatch(row: Row) -> str:
    return share(row.match["mismatch"]) if row.match else ""


def sensitivity(table: Table) -> tuple[list[str], list[list[str]]]:
    """The mean on dev of every row at every choice of values, the chosen one marked; empty where nothing was tuned."""
    rows = [row for row in table.rows if row.tuning]
    choices = list(dict.fromkeys(named(trial["values"]) for row in rows for trial in row.tuning["trials"]))
    cells = []
    for row in rows:
        found = {named(trial["values"]): _dev(trial, row) for trial in row.tuning["trials"]}
        cells.append([row.name, *(found.get(choice, "") for choice in choices)])
    return (["variant", *choices], cells) if rows else ([], [])


def _dev(trial: Mapping[str, Any], row: Row) -> str:
    if trial["dev"] is None:
        return trial["status"] or "not run"
    return units.score(trial["dev"]) + (" (chosen)" if trial["values"] == row.tuning["chosen"] else "")


def named(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{path} {spelled(value)}" for path, value in values.items())


def spelled(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
