"""`zoo plan`, `zoo run` and `zoo merge`: what would run, running it, and gathering runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from zoo.execute.engines import ENGINES
from zoo.execute.shard import Shard

from . import print_note, to_json
from .documents import FILE, NAME, SETS, open_comparison
from .tables import OUT

SHAPE = click.option("--shape", help="Override the shape: a name, or '{scale: 0.1}'.")
WORKERS = click.option(
    "--workers", type=click.IntRange(min=1), help="Runs at once.  [default: one per core; 1 on a GPU]"
)
PLACES = ", ".join(f"{engine.name} ({engine.summary})" for engine in ENGINES.values())
ALLOW = click.option("--allow-failures", is_flag=True, help="Exit with 0 even if a run failed.")


def read_shard(ctx: click.Context, param: click.Parameter, value: str) -> Shard:
    try:
        return Shard.read(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def spell_settings(settings: dict[str, str | int | None]) -> list[str]:
    """The options that were given, as `--set` takes them."""
    return [f"{path}={value}" for path, value in settings.items() if value]


@click.command()
@FILE
@NAME
@SETS
@SHAPE
@OUT
@WORKERS
@click.option("--no-time", is_flag=True, help="Do not time a training step on this machine.")
@click.option("-q", "--quiet", is_flag=True, help="Print the totals only.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object with rows, totals and duration.")
def plan(
    file: Path, name: str | None, sets: tuple[str, ...], shape: str | None, out: Path, workers: int | None,
    no_time: bool, quiet: bool, as_json: bool,
) -> None:  # fmt: skip
    """Show what the comparison NAME of FILE would train, and its cost: parameters, FLOPs, memory, runs and time.

    NAME may be left out if FILE holds one comparison. The time is estimated from runs in --out that are done, or else
    by timing a training step now.

    \b
    Examples:
      zoo plan registry.yaml quickstart
      zoo plan my.yaml --set train.steps=1000 --no-time
      zoo plan my.yaml --json
    """
    from zoo.execute.comparison import plan_comparison

    comparison, prepared = open_comparison(file, name, (*sets, *spell_settings({"shape": shape})))
    found = plan_comparison(comparison, prepared, out, workers=workers, time=not no_time, say=print_note)
    if as_json:
        click.echo(to_json({"format": 1, **found.to_dict()}))
    else:
        click.echo("\n".join(found.summary) if quiet else str(found))


@click.command()
@FILE
@NAME
@SETS
@OUT
@SHAPE
@click.option("--device", help="Override train.device: auto, cpu, cuda, …")
@click.option("--precision", type=click.Choice(["auto", "fp32", "bf16"]), help="Override train.precision.")
@click.option("--nproc", type=click.IntRange(min=1), help="Override train.processes: processes that share each run.")
@WORKERS
@click.option("--on", type=click.Choice(list(ENGINES)), default="local", show_default=True,
              help=f"Where to run: {PLACES}.")  # fmt: skip
@click.option("--shard", metavar="i/n", default="1/1", callback=read_shard,
              help="Run part i of n; 'zoo merge' joins the parts.")  # fmt: skip
@ALLOW
@click.option("-q", "--quiet", is_flag=True, help="Print neither progress nor the table.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, as in report.json.")
@click.pass_context
def run(
    ctx: click.Context, file: Path, name: str | None, sets: tuple[str, ...], out: Path, shape: str | None,
    device: str | None, precision: str | None, nproc: int | None, workers: int | None, shard: Shard,
    on: str, allow_failures: bool, quiet: bool, as_json: bool,
) -> None:  # fmt: skip
    """Train the comparison NAME of FILE, print its table and write the report.

    NAME may be left out if FILE holds one comparison. Each row and seed is a run with a folder of its own; what is done
    is not trained again, and after Ctrl-C the same command continues. Exit with 3 if a run failed, with 130 if runs
    were stopped.

    \b
    Examples:
      zoo run registry.yaml quickstart
      zoo run my.yaml --set train.steps=100 --workers 2
      zoo run my.yaml --quiet --json > result.json
    """
    from zoo.execute.comparison import run_comparison
    from zoo.execute.pool import STOPPED, choose_exit_code
    from zoo.execute.progress import display, silent

    settings = {"shape": shape, "train.device": device, "train.precision": precision, "train.processes": nproc}
    comparison, prepared = open_comparison(file, name, (*sets, *spell_settings(settings)))
    states = run_comparison(
        comparison, prepared, out, file=str(file), workers=workers, on=on, shard=shard,
        show=silent if quiet else display, say=print_note,
    )  # fmt: skip
    if not states:
        print_note(f"shard {shard} holds no run: there are fewer runs than shards")
        return
    print_reports(out, [comparison.name], "json" if as_json else None if quiet else "terminal")
    for job in (state.job for state in states if state.status == "failed"):
        if job.run.error.exists():
            click.echo(f"traceback of {job.name}: {job.run.error}", err=as_json)
    code = choose_exit_code(states)
    if code == STOPPED:
        print_note("stopped; the same command continues")
    ctx.exit(0 if code == 3 and allow_failures else code)


def print_reports(out: Path, names: Sequence[str], form: str | None = "terminal") -> None:
    """Write the reports of comparisons and print them in a form, if one is given; in a terminal, say where they lie."""
    from zoo import reporting

    if form is None:
        for name in names:
            reporting.write(reporting.read(out, name), out / name, print_note)
        return
    reporting.main(out, names, form)
    for name in names if form == "terminal" else ():
        for what, file in (("report", "report.md"), ("page", "report.html"), ("pictures", "*.png")):
            if any((out / name).glob(file)):
                click.echo(f"{what}: {out / name / file}")


@click.command()
@click.argument("out", type=click.Path(path_type=Path, file_okay=False))
@click.argument("folders", nargs=-1, required=True, metavar="DIR...", type=click.Path(path_type=Path))
@ALLOW
@click.pass_context
def merge(ctx: click.Context, out: Path, folders: tuple[Path, ...], allow_failures: bool) -> None:
    """Merge the run folders in DIRs, such as the shards of several machines, into OUT.

    Then print the tables and write the reports. Exit with 3 if a run failed or is missing.

    \b
    Examples:
      zoo merge runs runs-1 runs-2
    """
    from zoo.execute.merge import find_missing, merge

    documents = merge(out, folders)
    print_reports(out, list(documents))
    lacking = find_missing(out, documents)
    for line in lacking:
        print_note(line)
    ctx.exit(3 if lacking and not allow_failures else 0)
