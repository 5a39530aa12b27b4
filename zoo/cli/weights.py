"""`zoo import` and `zoo export`: models of other libraries in, trained ones out."""

from __future__ import annotations

from pathlib import Path

import click
from click.shell_completion import CompletionItem

from zoo.registry import discover

from . import discovered, discovery


def complete_family(ctx: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
    found = discover().variants("family", f"{typed}*")
    return [CompletionItem(entry.variant.name, help=entry.variant.summary) for entry in found]


FAMILY = click.option(
    "--as", "family", metavar="FAMILY", shell_complete=complete_family,
    help="One of 'zoo list family'; by default what the folder says, or what the model can be.",
)  # fmt: skip


@click.command("import")
@click.argument("source", metavar="DIR", type=click.Path(path_type=Path))
@FAMILY
@click.option("--to", "out", metavar="OUT", type=click.Path(path_type=Path), help="Write the model there.")
@click.option("--ignore", multiple=True, metavar="KEY", help="A setting of config.json that may be passed over.")
def take(source: Path, family: str | None, out: Path | None, ignore: tuple[str, ...]) -> None:
    """Read a model of another library and say what it is.

    DIR holds config.json and *.safetensors, or is one such file with config.json beside it. With --to, OUT/model.yaml
    describes it for every command here, and OUT/weights.safetensors holds its weights.
    """
    from zoo.declare.library import Library, own_document
    from zoo.interop import folders

    library = Library((own_document(),), discovered(), discovery())
    found = folders.read_folder(source)
    imported = folders.import_model(found, library, family, ignore)
    for line in folders.describe_import(imported, found):
        click.echo(line)
    if out is not None:
        folders.write_folder(imported, found, out)
        click.echo(f"model: {out / folders.MODEL}")


@click.command("export")
@click.argument("source", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--to", "out", metavar="DIR", required=True, type=click.Path(path_type=Path), help="The folder to write.")
@FAMILY
def give(source: Path, out: Path, family: str | None) -> None:
    """Write the model of a run's folder, or of one that was imported, as another library reads it.

    What has no equivalent there is refused, with each part that stands in the way.
    """
    from zoo.execute.stages import trained
    from zoo.interop import folders

    run = trained(source)
    kind, *others = folders.find_fitting_families(run, family)
    config = folders.export_model(kind, run, out)
    click.echo(f"{out}: {kind.name}, {', '.join(config.get('architectures', ()))}")
    if others:
        click.echo(f"--as could also be {', '.join(other.name for other in others)}", err=True)
    if not (run.tokenizer and run.tokenizer.shared()):
        why = ": this one has no form that other libraries read" if run.tokenizer else ""
        click.echo(f"without a tokenizer{why}", err=True)
