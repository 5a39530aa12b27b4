"""The table as plain text and as Markdown."""

from __future__ import annotations

from collections.abc import Callable

from tabulate import tabulate

from ..judging import fairness
from ..judging.gate import Gate
from ..judging.verdict import describe_rows
from ..table import Table
from ..text import escape_markdown, one_line, shorten
from .caption import caption, footnotes
from .columns import SmallTable, columns
from .small_tables import small_tables


def to_plain(table: Table, gate: Gate | None = None) -> str:
    """Plain text, the reasons beside the status."""
    head, cells, align = _grid(table, str)
    body = tabulate(cells, head, "simple", disable_numparse=True, colalign=align if cells else None)
    above = [[table.title], gate.lines if gate else [], describe_rows(table), caption(table)]
    blocks = [*("\n".join(map(one_line, lines)) for lines in above), body]
    blocks += [_small(each, one_line, "simple") for each in small_tables(table)]
    blocks += [_sensitivity(table, one_line, "simple"), "\n".join(map(one_line, footnotes(table)))]
    return "\n\n".join(block for block in blocks if block) + "\n"


def to_markdown(table: Table, gate: Gate | None = None) -> str:
    """GitHub's Markdown; whatever a name holds is escaped."""
    head, cells, align = _grid(table, escape_markdown)
    body = tabulate(cells, head, "pipe", disable_numparse=True, colalign=align if cells else None)
    notes = "\n".join(f"- {_prose(line)}" for line in footnotes(table))
    verdicts = "\n".join(f"- {_prose(line)}" for line in describe_rows(table))
    parts = [f"# {_prose(table.title)}", *_gate(gate), verdicts, " ".join(map(_prose, caption(table))), body]
    parts += [f"## {_small(each, _prose, 'pipe')}" for each in small_tables(table)]
    parts += [_sensitivity(table, _prose, "pipe"), notes]
    return "\n\n".join(part for part in parts if part) + "\n"


def _gate(gate: Gate | None) -> list[str]:
    if gate is None:
        return []
    changes = "\n".join(f"- {_prose(str(change))}" for change in gate.changes)
    return [f"**{_prose(gate.head)}**", changes, " ".join(map(_prose, gate.notes))]


def _small(small: SmallTable, quote: Callable[[str], str], form: str) -> str:
    heads, align = [c.head for c in small.columns], ["right" if c.right else "left" for c in small.columns]
    cells = [[quote(column.text(row)) for column in small.columns] for row in small.rows]
    body = tabulate(cells, heads, form, disable_numparse=True, colalign=align)
    return "\n\n".join([small.title, *([" ".join(map(quote, small.lines))] if small.lines else []), body])


def _sensitivity(table: Table, quote: Callable[[str], str], form: str) -> str:
    """The scores on dev by the settings that were tried; nothing where none were."""
    head, cells = fairness.tabulate_trials(table)
    body = [[quote(cell) for cell in line] for line in cells]
    title = f"{'## ' if form == 'pipe' else ''}What the trials scored on dev, {one_line(table.metric.name)}"
    return f"{title}\n\n{tabulate(body, [*map(quote, head)], form, disable_numparse=True)}" if cells else ""


def _prose(text: str) -> str:
    return escape_markdown(one_line(text))


def _grid(table: Table, quote: Callable[[str], str]) -> tuple[list[str], list[list[str]], list[str]]:
    chosen = columns(table)
    cells = [[quote(column.text(row)) for column in chosen] for row in table.rows]
    for line, row in zip(cells, table.rows, strict=True):
        if row.reason:
            line[-1] += f": {quote(shorten(row.reason))}"
    return [quote(column.head) for column in chosen], cells, ["right" if c.right else "left" for c in chosen]
