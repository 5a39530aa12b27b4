"""`zoo report`: tables and reports from run folders alone. `zoo baseline`: what a later report is compared to."""

from __future__ import annotations

import math
from pathlib import Path

import click

from zoo import reporting
from zoo.faults import SpecError

from . import print_note
from .completion import complete_result

OUT = click.option("--out", type=click.Path(path_type=Path), default="runs", show_default=True,
                   help="Directory of run folders.")  # fmt: skip
FORMS = click.Choice([*reporting.FORMATS, *reporting.OVERVIEWS])
FORM = click.option("--format", "form", type=FORMS, default="terminal", show_default=True,
                    help="Form of what is printed.")  # fmt: skip
BASELINE = click.option(
    "--baseline",
    type=click.Path(path_type=Path, exists=True),
    help="Compare to a report.json, to a file of 'zoo baseline', or to a directory of them.",
)
FAIL_ON = click.option("--fail-on", type=click.Choice(reporting.FAIL_ON),
                       help="When to exit with 1.  [default: regression]")  # fmt: skip


def check_threshold(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    if value is not None and not (math.isfinite(value) and value >= 0):
        raise click.BadParameter(f"{value:g} should be a number from 0 up, in the metric's unit")
    return value


THRESHOLD = click.option("--threshold", type=float, callback=check_threshold,
                         help="Smallest loss that counts as a regression, in the metric's unit.  "
                              "[default: the comparison's margin]")  # fmt: skip


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_result)
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
    """Print the tables of comparisons from their run folders, and write their reports anew.

    All comparisons in --out unless NAMEs are given. Nothing is trained. The formats claims and aggregate are one
    document over all of them, written beside the run folders. With --baseline, exit with 1 for a regression and with 3
    for a run that failed or is missing.

    \b
    Examples:
      zoo report
      zoo report quickstart --format markdown
      zoo report quickstart --baseline baselines/quickstart.json
      zoo report lm recall --format aggregate
    """
    if baseline is None and (fail_on or threshold is not None):
        raise SpecError(f"{'--fail-on' if fail_on else '--threshold'} needs --baseline: what is there to compare to?")
    earlier = reporting.Against(baseline, fail_on or "regression", threshold) if baseline else None
    ctx.exit(reporting.main(out, names, form, earlier=earlier))


@click.group()
def baseline() -> None:
    """Save a baseline for regression checks with 'zoo report --baseline'.

    \b
    Examples:
      zoo baseline update runs quickstart --to baselines/quickstart.json
    """


@baseline.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("name", shell_complete=complete_result)
@click.option("--to", type=click.Path(path_type=Path, dir_okay=False), required=True, help="File to write.")
@click.option("--allow-failures", is_flag=True, help="Write it even if runs failed or are missing.")
@click.pass_context
def update(ctx: click.Context, out: Path, name: str, to: Path, allow_failures: bool) -> None:
    """Save the scores of the comparison NAME of the directory OUT in a small file, to be committed.

    Exit with 3, and write nothing, if runs failed or are missing.

    \b
    Examples:
      zoo baseline update runs quickstart --to baselines/quickstart.json
    """
    table = reporting.read(out, name)
    lacking = [f"{row.name}: {row.status}" for row in table.rows if reporting.is_unfinished(row)]
    for line in lacking:
        print_note(line)
    if lacking and not allow_failures:
        print_note(f"{to} is left as it was; --allow-failures writes it all the same")
        ctx.exit(3)
    reporting.save_baseline(table, to)
    click.echo(f"baseline: {to}")
