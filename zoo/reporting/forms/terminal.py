"""The table on a terminal of any width: whole columns or none, never half a word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table as Grid
from rich.text import Text

from ..judging.gate import Gate
from ..judging.verdict import describe_rows
from ..table import Row, Table
from ..text import one_line, shorten
from .caption import caption, footnotes, list_reasons
from .columns import Column, columns
from .small_tables import small_tables

GAP = 2  # a space of padding and one where a rule would stand
NAME = 28  # a longer name is folded where there is no room for all of it
WORDS = 14  # and so are several words


@dataclass(frozen=True)
class Terminal:  # noqa: N801, a function to whoever calls it
    """What rich prints for `table`, fitted to the width of the console that prints it."""

    table: Table
    gate: Gate | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        every = columns(self.table)
        chosen = fit(every, self.table.rows, options.max_width)
        yield Text(one_line(self.table.title), style="bold")
        for lines in filter(None, (self.gate.lines if self.gate else [], describe_rows(self.table))):
            yield from (Text(one_line(line)) for line in lines)
            yield Text()
        for line in caption(self.table):
            yield Text(one_line(line), style="dim")
        yield Text()
        yield grid(chosen, self.table.rows)
        yield Text()
        for small in small_tables(self.table):
            yield Text(small.title, style="bold")
            for line in small.lines:
                yield Text(one_line(line), style="dim")
            yield grid(fit(small.columns, small.rows, options.max_width), small.rows)
            yield Text()
        for line in list_reasons(self.table):
            yield Text(shorten(line), style="red")
        for line in footnotes(self.table):
            yield Text(one_line(line), style="dim")
        if left_out := [column.head for column in every if column not in chosen]:
            heads = ", ".join(left_out)
            yield Text(f"Columns that do not fit this width: {heads}; report.md has them.", style="dim")


def grid(chosen: dict[Column, int], rows: Sequence) -> Grid:
    out = Grid(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    for column, width in chosen.items():
        out.add_column(Text(column.head), justify="right" if column.right else "left", width=width, overflow="fold")
    for row in rows:
        cells = (_pack(column, column.text(row), width) for column, width in chosen.items())
        out.add_row(*map(Text, cells), style=_style(row) if isinstance(row, Row) else "")
    return out


def _pack(column: Column, text: str, width: int) -> str:
    """As many phrases on a line as `width` holds."""
    lines = [""]
    for phrase in _phrases(column, text):
        joined = f"{lines[-1]} {phrase}".strip()
        lines[-1:] = [joined] if cell_len(joined) <= width or not lines[-1] else [lines[-1], phrase]
    return "\n".join(lines)


def _phrases(column: Column, text: str) -> list[str]:
    marks = {"commas": ", ", "words": " "}
    mark = marks.get(column.breaks)
    return text.replace(mark, f"{mark.strip()}\n").split("\n") if mark else [text]


def _style(row: Row) -> str:
    return "" if row.trained else "italic" if row.test else "red"


def fit(every: Sequence[Column], rows: Sequence, width: int) -> dict[Column, int]:
    """The columns with their widths that `width` has room for, chosen by priority."""
    full = {column: max(map(cell_len, _lines(column, rows))) for column in every}
    least = {column: _least(column, rows, full[column]) for column in every}
    room = width
    chosen: set[Column] = set()
    for column in sorted(every, key=lambda column: column.priority):
        if least[column] + GAP <= room or not chosen:
            chosen.add(column)
            room -= least[column] + GAP
    widths = {column: least[column] for column in every if column in chosen}
    for column in widths:
        more = max(0, min(full[column] - least[column], room))
        widths[column] += more
        room -= more
    return widths


def _lines(column: Column, rows: Sequence) -> Iterator[str]:
    yield column.head
    yield from (column.text(row) for row in rows)


def _least(column: Column, rows: Sequence, full: int) -> int:
    """The least width at which the column can be read."""
    if column.breaks == "anywhere":
        return min(full, NAME)
    longest = max(cell_len(phrase) for line in _lines(column, rows) for phrase in _phrases(column, line))
    return max(longest, min(full, WORDS)) if column.breaks == "words" else longest
