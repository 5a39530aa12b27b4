"""`zoo plan` and `zoo run`: what would run, and running it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from zoo.execute.engines import ENGINES
from zoo.execute.shard import Shard

from .documents import FILE, SETS, chosen, opened
from .tables import OUT

SHAPE = click.option("--shape", help="Short for --set shape=…: a name, or '{scale: 0.1}'.")
WORKERS = click.option(
    "--workers", type=click.IntRange(min=1), help="Runs at once; by default one per core, or one on a GPU."
)
PLACES = ", ".join(f"{engine.name} ({engine.summary})" for engine in ENGINES.values())
ALLOW = click.option("--allow-failures", is_flag=True, help="Exit with 0 even if a run failed.")


def shard_of(ctx: click.Context, param: click.Parameter, value: str) -> Shard:
    try:
        return Shard.read(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def short(settings: dict[str, str | int | None]) -> list[str]:
    """What options stand for, as `--set` takes it."""
    return [f"{path}={value}" for path, value in settings.items() if value]


def elsewhere(on: str, shard: Shard) -> str:
    """Why a step that is timed here would not be one of all runs; nothing where it would."""
    return f"--shard {shard}" if shard.count > 1 else f"--on {on}" if on != "local" else ""


def told(line: str) -> None:
    click.echo(line, err=True)


@click.command()
@FILE
@click.argument("name", required=False)
@SETS
@SHAPE
@OUT
@WORKERS
@click.option("--no-time", is_flag=True, help="Do not time a step on this machine.")
def plan(
    file: Path, name: str | None, sets: tuple[str, ...], shape: str | None, out: Path, workers: int | None,
    no_time: bool,
) -> None:  # fmt: skip
    """Print what the comparison NAME of FILE would run, what it would cost, and about how long it would take."""
    from zoo.compare.prepared import Prepared
    from zoo.execute.engines.local import choose_capacity
    from zoo.execute.estimate import table
    from zoo.execute.match_seconds import paced
    from zoo.execute.stages import count_resources

    library = opened(file, name, (*sets, *short({"shape": shape})))
    prepared = Prepared(library)
    comparison = chosen(library, name, prepared)
    workers = workers or choose_capacity(count_resources(comparison))
    comparison = paced(comparison, prepared, out, workers, why_not="--no-time" if no_time else "", say=told)
    click.echo(table(comparison, prepared, out, workers, not no_time))


@click.command()
@FILE
@click.argument("name", required=False)
@SETS
@OUT
@SHAPE
@click.option("--device", help="Short for --set train.device=…: auto, cpu, cuda, ….")
@click.option("--precision", type=click.Choice(["auto", "fp32", "bf16"]), help="Short for --set train.precision=….")
@click.option("--nproc", type=click.IntRange(min=1), help="Short for --set train.processes=…: these share each run.")
@WORKERS
@click.option("--on", type=click.Choice(list(ENGINES)), default="local", help=f"Where runs take place: {PLACES}.")
@click.option("--shard", metavar="i/n", default="1/1", callback=shard_of, help="Only this part; see 'zoo merge'.")
@ALLOW
@click.pass_context
def run(
    ctx: click.Context, file: Path, name: str | None, sets: tuple[str, ...], out: Path, shape: str | None,
    device: str | None, precision: str | None, nproc: int | None, workers: int | None, shard: Shard,
    on: str, allow_failures: bool,
) -> None:  # fmt: skip
    """Train what is missing of the comparison NAME of FILE, then print the table and write the report."""
    from zoo.compare.prepared import Prepared
    from zoo.execute.match_seconds import paced
    from zoo.execute.pool import STOPPED, choose_exit_code, run_all
    from zoo.execute.progress import display
    from zoo.execute.stages import count_resources, stages, starts

    settings = {"shape": shape, "train.device": device, "train.precision": precision, "train.processes": nproc}
    ENGINES[on].check()
    library = opened(file, name, (*sets, *short(settings)))
    prepared = Prepared(library)
    comparison = chosen(library, name, prepared)
    states = []
    with ENGINES[on].open(count_resources(comparison)) as (start, capacity):
        workers = workers or capacity
        comparison = paced(comparison, prepared, out, workers, why_not=elsewhere(on, shard), say=told)
        for jobs in stages(comparison, prepared, out, str(file), shard):
            for line in starts(jobs):
                click.echo(line, err=True)
            if jobs:
                with display(workers) as show:
                    states += run_all(jobs, workers=workers, progress=show, start=start)
            if choose_exit_code(states) == STOPPED and states:
                break
    if not states:
        click.echo(f"shard {shard} holds no run: there are fewer runs than shards", err=True)
        return
    reported(out, [comparison.name])
    for job in (state.job for state in states if state.status == "failed"):
        if job.run.error.exists():
            click.echo(f"traceback of {job.name}: {job.run.error}")
    code = choose_exit_code(states)
    if code == STOPPED:
        click.echo("stopped; the same command goes on from here", err=True)
    ctx.exit(0 if code == 3 and allow_failures and states else code)


def reported(out: Path, names: Sequence[str]) -> None:
    """Print the tables of comparisons, write their reports, and say where they lie."""
    from zoo import reporting

    reporting.main(out, names, "terminal")
    for name in names:
        for what, file in (("report", "report.md"), ("page", "report.html"), ("pictures", "*.png")):
            if any((out / name).glob(file)):
                click.echo(f"{what}: {out / name / file}")


@click.command()
@click.argument("out", type=click.Path(path_type=Path, file_okay=False))
@click.argument("folders", nargs=-1, required=True, metavar="DIR...", type=click.Path(path_type=Path))
@ALLOW
@click.pass_context
def merge(ctx: click.Context, out: Path, folders: tuple[Path, ...], allow_failures: bool) -> None:
    """Gather the runs of DIRs, such as the shards of several machines, in OUT; then print the table and write the
    report. Exit with 3 if a run failed or is missing.
    """
    from zoo.execute.merge import find_missing, merge

    documents = merge(out, folders)
    reported(out, list(documents))
    lacking = find_missing(out, documents)
    for line in lacking:
        click.echo(line, err=True)
    ctx.exit(3 if lacking and not allow_failures else 0)
