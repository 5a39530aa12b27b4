"""`zoo report`: the table again, from the folders alone. `zoo baseline`: what a later report is compared to."""

from __future__ import annotations

import math
from pathlib import Path

import click

from zoo import reporting as reports
from zoo.faults import SpecError

OUT = click.option("--out", type=click.Path(path_type=Path), default="runs", show_default=True, help="Where runs lie.")
FORMS = click.Choice([*reports.FORMATS, *reports.OVERVIEWS])
FORM = click.option("--format", "form", type=FORMS, default="terminal", show_default=True)
BASELINE = click.option(
    "--baseline",
    type=click.Path(path_type=Path, exists=True),
    help="Compare to a report.json, to a file of 'zoo baseline', or to a directory of them.",
)
FAIL_ON = click.option(
    "--fail-on", type=click.Choice(reports.FAIL_ON), help="When to exit with 1; by default on a regression."
)


def finite(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    if value is not None and not (math.isfinite(value) and value >= 0):
        raise click.BadParameter(f"{value:g} should be a number from 0 up, in the metric's unit")
    return value


THRESHOLD = click.option(
    "--threshold",
    type=float,
    callback=finite,
    help="In the metric's unit: how much worse is no regression yet; by default the comparison's margin.",
)


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@OUT
@FORM
@BASELINE
@FAIL_ON
@THRESHOLD
@click.pass_context
def report(
    ctx: click.Context, names: tuple[str, ...], out: Path, form: str,
    baseline: Path | None, fail_on: str | None, threshold: float | None,
) -> None:  # fmt: skip
    """Draw the tables of comparisons again from their runs, and write their reports anew.

    The formats claims and aggregate are one document over all of them, written beside the runs.

    With --baseline, exit with 1 for a regression and with 3 for a run that failed or is missing.
    """
    if baseline is None and (fail_on or threshold is not None):
        raise SpecError(f"{'--fail-on' if fail_on else '--threshold'} needs --baseline: what is there to compare to?")
    earlier = reports.Against(baseline, fail_on or "regression", threshold) if baseline else None
    ctx.exit(reports.main(out, names, form, earlier=earlier))


@click.group()
def baseline() -> None:
    """Keep what a later report is compared to."""


@baseline.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("name")
@click.option("--to", type=click.Path(path_type=Path, dir_okay=False), required=True, help="The file to write.")
@click.option("--allow-failures", is_flag=True, help="Write it even if runs failed or are missing.")
@click.pass_context
def update(ctx: click.Context, out: Path, name: str, to: Path, allow_failures: bool) -> None:
    """Write what a later report needs of the comparison NAME of OUT into a small file, to be committed."""
    table = reports.read(out, name)
    lacking = [f"{row.name}: {row.status}" for row in table.rows if reports.is_unfinished(row)]
    for line in lacking:
        click.echo(line, err=True)
    if lacking and not allow_failures:
        click.echo(f"{to} is left as it was; --allow-failures writes it all the same", err=True)
        ctx.exit(3)
    reports.save_baseline(table, to)
    click.echo(f"baseline: {to}")
