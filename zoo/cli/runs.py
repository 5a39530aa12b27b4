"""`zoo plan` and `zoo run`: what would run, and running it."""

from __future__ import annotations

from pathlib import Path

import click

from .documents import FILE, SETS, chosen, opened
from .tables import OUT


@click.command()
@FILE
@click.argument("name", required=False)
@SETS
def plan(file: Path, name: str | None, sets: tuple[str, ...]) -> None:
    """Print what the comparison NAME of FILE would run and what it would cost, without weights."""
    from ..plan import table

    library = opened(file, name, sets)
    click.echo(table(chosen(library, name), library.registry))


@click.command()
@FILE
@click.argument("name", required=False)
@SETS
@OUT
@click.option("--workers", type=click.IntRange(min=1), help="Runs at once; as many as there are cores by default.")
@click.pass_context
def run(
    ctx: click.Context, file: Path, name: str | None, sets: tuple[str, ...], out: Path, workers: int | None
) -> None:
    """Train what is missing of the comparison NAME of FILE, then print the table and write the report."""
    from .. import report
    from ..pool import exit_code, run_all
    from ..progress import display
    from ..runner import write_comparison
    from ..runs import cores

    library = opened(file, name, sets)
    comparison = chosen(library, name)
    jobs = write_comparison(comparison, library, out, str(file))
    workers = workers or cores()
    with display(workers) as show:
        states = run_all(jobs, workers=workers, progress=show)
    report.main(out, [comparison.name], "terminal")
    for what, file in (("report", "report.md"), ("picture", "curves.png")):
        if (path := out / comparison.name / file).exists():
            click.echo(f"{what}: {path}")
    ctx.exit(exit_code(states))
