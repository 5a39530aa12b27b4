"""`zoo report`: the table again, from the folders alone."""

from __future__ import annotations

from pathlib import Path

import click

from .. import report as reports

OUT = click.option("--out", type=click.Path(path_type=Path), default="runs", show_default=True, help="Where runs lie.")
FORM = click.option("--format", "form", type=click.Choice(list(reports.FORMATS)), default="terminal", show_default=True)


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@OUT
@FORM
def report(names: tuple[str, ...], out: Path, form: str) -> None:
    """Draw the tables of comparisons again from their runs, and write their reports anew."""
    reports.main(out, names, form)
