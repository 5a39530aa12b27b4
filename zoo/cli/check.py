"""`zoo check`: whether variants do what every variant must."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from zoo.declare import override
from zoo.faults import SpecError, nearest
from zoo.registry import Entry

from . import discovery, warn
from .catalogue import complete_part

if TYPE_CHECKING:
    from zoo.testing import Subject
    from zoo.testing.report import Findings, Show

FORMATS = ("text", "json", "junit", "markdown")


@click.command()
@click.argument("what", required=False, metavar="[SLOT:NAME | SLOT | PLUGIN | FILE.py]", shell_complete=complete_part)
@click.option("--partners", type=click.IntRange(min=1), default=6, show_default=True, help="Models to try it in.")
@click.option("--only", multiple=True, metavar="PROPERTY", help="Look at this property alone; repeatable.")
@click.option("--set", "sets", multiple=True, metavar="OPTION=VALUE", help="An option of SLOT:NAME; repeatable.")
@click.option("--inductor", is_flag=True, help="Compile with inductor, which takes a minute or more.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file.")
@click.pass_context
def check(
    ctx: click.Context, what: str | None, partners: int, only: tuple[str, ...], sets: tuple[str, ...], inductor: bool,
    form: str, output: Path | None,
) -> None:  # fmt: skip
    """Hold variants to what every variant of their slot must do, among partners of the other slots.

    Without an argument, all that there are. A row per property says whether it holds, with how many partners, and how
    long that took; a failure says what was changed, what should have stayed equal, and how to repeat it. The exit code
    is 1 if a property fails.
    """
    from zoo.declare.library import open_library
    from zoo.testing import Subject, report, select_variants

    options = read_options(sets, what)
    registry, entries = select_variants(what, **discovery())
    warn(registry)
    library = open_library(registry=registry)
    known_checks(entries, only)
    backend = "inductor" if inductor else "eager"
    subjects = [
        Subject(entry.variant.slot, registry.spelling(entry), options, library, partners, backend) for entry in entries
    ]
    with display(subjects) as show:
        every = [report.gather(subject, only, show) for subject in subjects]
    written = report.FORMATS[form](every)
    if output is None:
        click.echo(written, nl=False)
    else:
        output.write_text(written, encoding="utf-8")
    ctx.exit(1 if any(found.failures for found in every) else 0)


def read_options(sets: tuple[str, ...], what: str | None) -> dict[str, Any]:
    """The options that `--set` gives a single variant. Raises `SpecError`."""
    options = {}
    for text in sets:
        name, equals, value = text.partition("=")
        if not equals:
            override.refuse(text, "it should be option=value")
        if ":" not in (what or ""):
            override.refuse(text, "options are those of one variant; name it as SLOT:NAME")
        options[name] = override.parsed(text, value)
    return options


def known_checks(entries: list[Entry], only: tuple[str, ...]) -> None:
    """Raise `SpecError` for a property that nothing holds of these variants."""
    from zoo.testing.suites import load_suite

    known = {name: None for slot in {entry.variant.slot for entry in entries} for name in load_suite(slot).checks}
    for name in only:
        if name not in known:
            raise SpecError(
                f"no property is called '{name}'{nearest(name, known) or '; there are ' + ', '.join(known)}"
            )


@contextmanager
def display(subjects: Sequence[Subject], stream=None) -> Iterator[Show]:
    """A function to call with each result; it writes to `stream`, which is stderr unless given: one line that moves in
    a terminal; elsewhere a line per property of one variant, or per variant of several.
    """
    stream = stream or sys.stderr
    done = failed = 0

    def plain(found: Findings, over: bool) -> None:
        if len(subjects) == 1 and not over:
            print(f"{found.variant}  {found.results[-1].line()}", file=stream, flush=True)
        elif len(subjects) > 1 and over:
            print(found.line(), file=stream, flush=True)

    if not stream.isatty():
        yield plain
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(file=stream).status("") as status:

        def live(found: Findings, over: bool) -> None:
            nonlocal done, failed
            done, failed = done + over, failed + (over and bool(found.failures))
            last = found.results[-1].check if found.results else ""
            bad = f", {failed} failed" if failed else ""
            status.update(escape(f"{done}/{len(subjects)} variants{bad}: {found.variant}, {last}"))

        yield live
