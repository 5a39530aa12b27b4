"""`zoo import` and `zoo export`: models of other libraries in, trained ones out."""

from __future__ import annotations

from pathlib import Path

import click

from . import discover_variants, discovery_options, print_note
from .completion import complete_family

FAMILY = click.option("--as", "family", metavar="FAMILY", shell_complete=complete_family,
                      help="One of 'zoo list family'.  [default: what the folder says or the model fits]")  # fmt: skip


@click.command("import")
@click.argument("source", metavar="DIR", type=click.Path(path_type=Path))
@FAMILY
@click.option("--to", "out", metavar="OUT", type=click.Path(path_type=Path), help="Directory to write the model to.")
@click.option("--ignore", multiple=True, metavar="KEY", help="Ignore a setting of config.json; repeatable.")
def import_model(source: Path, family: str | None, out: Path | None, ignore: tuple[str, ...]) -> None:
    """Import a model of another library, and print its parts and sizes.

    DIR holds config.json and *.safetensors, or is one such file with config.json beside it. With --to,
    OUT/model.yaml describes the model for every command here, and OUT/weights.safetensors holds its weights.

    \b
    Examples:
      zoo import gpt2-hub
      zoo import gpt2-hub --to gpt2
    """
    from zoo.declare.library import Library, own_document
    from zoo.interop import folders

    library = Library((own_document(),), discover_variants(), discovery_options())
    found = folders.read_folder(source)
    imported = folders.import_model(found, library, family, ignore)
    for line in folders.describe_import(imported, found):
        click.echo(line)
    if out is not None:
        folders.write_folder(imported, found, out)
        click.echo(f"model: {out / folders.MODEL}")


@click.command("export")
@click.argument("source", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--to", "out", metavar="DIR", required=True, type=click.Path(path_type=Path), help="Directory to write.")
@FAMILY
def export_model(source: Path, out: Path, family: str | None) -> None:
    """Export a trained model in the format of another library, such as Hugging Face transformers.

    RUN is a run folder, or a folder that 'zoo import' wrote. A model with parts that the other library does not have is
    refused, and each such part is named.

    \b
    Examples:
      zoo export runs/0123456789abcdef --to mine
      zoo export gpt2 --to back --as gpt2
    """
    from zoo.execute.trained import load_trained
    from zoo.interop import folders

    run = load_trained(source)
    kind, *others = folders.find_fitting_families(run, family)
    config = folders.export_model(kind, run, out)
    click.echo(f"{out}: {kind.name}, {', '.join(config.get('architectures', ()))}")
    if others:
        print_note(f"--as could also be {', '.join(other.name for other in others)}")
    if not (run.tokenizer and run.tokenizer.shared()):
        why = ": this one has no form that other libraries read" if run.tokenizer else ""
        print_note(f"without a tokenizer{why}")
