"""Run folders to a table in every form, without torch: a table can be redrawn without a run."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from rich.console import Console

from zoo.faults import SpecError
from zoo.runs import replace

from .aggregate import aggregate
from .baseline import keep
from .canvas import NoPicture
from .ci import DOCUMENTS, badge, comment, github, junit, latex, shields
from .evidence import evidence
from .formats import csv, json, markdown, plain
from .gate import FAIL_ON, Against, judged, unfinished
from .html import html
from .overview import Overview
from .picture import picture
from .pictures import draw
from .table import Mean, Metric, Row, Run, Table, comparisons, read
from .terminal import terminal

__all__ = [
    "Against", "FAIL_ON", "FORMATS", "Mean", "Metric", "NoPicture", "Row", "Run", "Table", "comparisons", "csv",
    "html", "json", "keep", "main", "markdown", "OVERVIEWS", "Overview", "picture", "plain", "read", "terminal",
    "unfinished", "write",
]  # fmt: skip

FORMATS: dict[str, Callable[[Table], object]] = {
    "terminal": terminal, "markdown": markdown, "plain": plain, "csv": csv, "json": json, "html": html,
    "junit": junit, "github": github, "comment": comment, "latex": latex, "badge": badge, "shields": shields,
}  # fmt: skip

OVERVIEWS: dict[str, Callable[[Sequence[Table]], Overview]] = {"claims": evidence, "aggregate": aggregate}
"""Forms that are one document over several comparisons; each raises `SpecError` for tables that make none."""


def write(table: Table, folder: Path, say: Callable[[str], None] = warnings.warn) -> list[Path]:
    """Write every form of `table` and its pictures into `folder`, each file whole or not at all; returns their paths.

    Where a picture cannot be drawn, an earlier one is removed and `say` gets the reason.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    drawn = draw(table, folder, say)
    text = markdown(table) + "".join(f"\n![{caption}]({name})\n" for name, caption in drawn.items())
    written = []
    forms = {"md": text, "html": html(table), "txt": plain(table), "csv": csv(table), "json": json(table)}
    for suffix, body in forms.items():
        written.append(folder / f"report.{suffix}")
        replace(written[-1], lambda path, body=body: path.write_bytes(body.encode("utf-8", "backslashreplace")))
    return written + [folder / name for name in drawn]


def main(
    out: Path, names: Iterable[str], format: str, console: Console | None = None, earlier: Against | None = None
) -> int:
    """Print the named comparisons of `out`, all of them if none is named, and write their reports anew.

    Held against `earlier` reports, the exit code is the worst of `Gate.code`, else 0. Raises `SpecError` for a
    comparison that is not there, and for one that cannot be held against its earlier report.
    """
    console = console or Console()
    names = earlier.names(names, comparisons(out)) if earlier else list(names) or comparisons(out)
    if not names:
        raise SpecError(f"{out} holds no comparison; 'zoo run FILE' makes one")
    if format in DOCUMENTS and len(names) > 1:
        raise SpecError(f"{format} is one document for one comparison; name one of {', '.join(names)}")
    tables = {name: read(out, name) for name in names}
    if format in OVERVIEWS:
        return _over(tables.values(), format, Path(out), console, earlier)
    if earlier:
        tables = judged(tables, earlier, out)
    for name, table in tables.items():
        _show(FORMATS[format](table), console)
        write(table, Path(out) / name, _say)
    codes = {table.gate.code for table in tables.values() if table.gate}
    return next((code for code in (1, 3) if code in codes), 0)


def _over(tables: Iterable[Table], format: str, out: Path, console: Console, earlier: Against | None) -> int:
    if earlier:
        raise SpecError(f"{format} is one document over comparisons and is held against no earlier report")
    overview = OVERVIEWS[format](list(tables))
    _show(overview.shown, console)
    overview.write(out / format, _say)
    return 0


def _show(form: object, console: Console) -> None:
    console.file.write(form) if isinstance(form, str) else console.print(form)


def _say(line: str) -> None:
    Console(stderr=True).print(line, markup=False)
