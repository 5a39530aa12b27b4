"""Reports printed and written: every form and picture of a comparison, and documents over several."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from rich.console import Console

from zoo.faults import SpecError
from zoo.files import replace

from .forms import FORMATS
from .judging.gate import Against, Gate, compare_all
from .overviews import OVERVIEWS, write_text
from .pictures import draw
from .reading import comparisons, read
from .table import Table


def write(
    table: Table, folder: Path, say: Callable[[str], None] = warnings.warn, gate: Gate | None = None
) -> list[Path]:
    """Write every form of `table` and its pictures into `folder`, each file whole or not at all; returns their paths.

    Where a picture cannot be drawn, an earlier one is removed and `say` gets the reason.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    drawn = draw(table, folder, say)
    written = []
    for form in FORMATS.values():
        if form.suffix:
            text = str(form.render(table, gate))
            if form.suffix == "md":
                text += "".join(f"\n![{caption}]({name})\n" for name, caption in drawn.items())
            written.append(folder / f"report.{form.suffix}")
            replace(written[-1], partial(write_text, text))
    return written + [folder / name for name in drawn]


def main(
    out: Path, names: Iterable[str], format: str, console: Console | None = None, earlier: Against | None = None
) -> int:
    """Print the named comparisons of `out`, all of them if none is named, and write their reports anew.

    Compared to `earlier` reports, the exit code is the worst of `Gate.code`, else 0. Raises `SpecError` for a
    comparison that is not there, and for one that cannot be compared to its earlier report.
    """
    console = console or Console()
    names = earlier.names(names, comparisons(out)) if earlier else list(names) or comparisons(out)
    if not names:
        raise SpecError(f"{out} holds no comparison; 'zoo run FILE' makes one")
    if format in FORMATS and FORMATS[format].single and len(names) > 1:
        raise SpecError(f"{format} is one document for one comparison; name one of {', '.join(names)}")
    tables = {name: read(out, name) for name in names}
    if format in OVERVIEWS:
        return _report_over(tables.values(), format, Path(out), console, earlier)
    gates = compare_all(tables, earlier, out) if earlier else {}
    for name, table in tables.items():
        _print(FORMATS[format].render(table, gates.get(name)), console)
        write(table, Path(out) / name, _warn, gates.get(name))
    codes = {gate.code for gate in gates.values()}
    return next((code for code in (1, 3) if code in codes), 0)


def _report_over(tables: Iterable[Table], format: str, out: Path, console: Console, earlier: Against | None) -> int:
    if earlier:
        raise SpecError(f"{format} is one document over several comparisons and is compared to no earlier report")
    overview = OVERVIEWS[format](list(tables))
    _print(overview.shown, console)
    overview.write(out / format, _warn)
    return 0


def _print(form: object, console: Console) -> None:
    console.file.write(form) if isinstance(form, str) else console.print(form)


def _warn(line: str) -> None:
    Console(stderr=True).print(line, markup=False)
