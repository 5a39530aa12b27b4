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

from . import discovery_options, warn
from .completion import complete_subject

if TYPE_CHECKING:
    from zoo.testing import Subject
    from zoo.testing.report import Findings, Show

FORMATS = ("text", "json", "junit", "markdown")


@click.command()
@click.argument("what", required=False, metavar="[SLOT:NAME | SLOT | PLUGIN | FILE.py]",
                shell_complete=complete_subject)  # fmt: skip
@click.option("--partners", type=click.IntRange(min=1), default=6, show_default=True,
              help="Models to test each variant in.")  # fmt: skip
@click.option("--only", multiple=True, metavar="PROPERTY", help="Run this check only; repeatable.")
@click.option("--set", "sets", multiple=True, metavar="OPTION=VALUE", help="Set an option of SLOT:NAME; repeatable.")
@click.option("--inductor", is_flag=True, help="Compile with inductor, which takes a minute or more.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True,
              help="Form of the results.")  # fmt: skip
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="File to write the results to.")
@click.pass_context
def check(
    ctx: click.Context, what: str | None, partners: int, only: tuple[str, ...], sets: tuple[str, ...], inductor: bool,
    form: str, output: Path | None,
) -> None:  # fmt: skip
    """Run the conformance checks on variants, each in models with different parts in the other slots.

    Checks are properties that every variant of a slot must have: no look ahead, padding, cached decoding, gradients,
    … All variants are checked unless one, a slot, a plugin or a file is named. A failed check says what was changed,
    what should have stayed equal, and how to repeat it. Exit with 1 if a check fails.

    \b
    Examples:
      zoo check position:rope
      zoo check my_variant.py
      zoo check norm --format junit --output checks.xml
    """
    from zoo.declare.library import open_library
    from zoo.testing import Subject, report, select_variants

    options = read_options(sets, what)
    registry, entries = select_variants(what, **discovery_options())
    warn(registry)
    library = open_library(registry=registry)
    refuse_unknown(entries, only)
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


def refuse_unknown(entries: list[Entry], only: tuple[str, ...]) -> None:
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
