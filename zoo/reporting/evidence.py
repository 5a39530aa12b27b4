"""The claims of several comparisons on one page of Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote

from tabulate import tabulate

from zoo.faults import SpecError

from .claims import COLUMNS, RULE, chance, counted, found
from .column import flat
from .formats import escape
from .overview import Overview
from .table import Table


def evidence(tables: Iterable[Table]) -> Overview:
    """How many claims were reproduced, then each with what was found and a link to the report that it rests on.

    Raises `SpecError` where nothing was claimed.
    """
    judged = {table.name: found(table) for table in tables}
    every = [each for some in judged.values() for each in some]
    if not every:
        raise SpecError(f"there are no claims in {', '.join(judged)}; write them under 'claims' in the file")
    lines = []
    for name, some in judged.items():
        link = f"[{escape(flat(name))}]({quote(name)}/report.md)"
        lines += [[*(escape(column.text(each)) for column in COLUMNS), link] for each in some]
    heads = [*(column.head for column in COLUMNS), "comparison"]
    align = [*("right" if column.right else "left" for column in COLUMNS), "left"]
    body = tabulate(lines, heads, "pipe", disable_numparse=True, colalign=align)
    text = "\n\n".join(part for part in (f"# Claims: {counted(every)}", RULE, chance(every), body) if part) + "\n"
    return Overview(text, {"md": text})
