"""`zoo new-plugin`: a package to write a variant in."""

from __future__ import annotations

from pathlib import Path

import click

from . import discovered
from .catalogue import complete_slot


@click.command("new-plugin")
@click.argument("name")
@click.option("--slot", required=True, shell_complete=complete_slot, help="What it is a variant of.")
@click.option("--to", type=click.Path(path_type=Path), default=".", show_default=True, help="Where to put its folder.")
def new_plugin(name: str, slot: str, to: Path) -> None:
    """Write a package with a working variant NAME for a slot, its test and all that it takes to publish it."""
    from zoo.templates.scaffold import PREFIX, write

    folder = write(name, slot, to, discovered())
    variant = folder.name.removeprefix(PREFIX)
    click.echo(f"{folder}: a package that offers {slot} '{variant}'; its README.md says what to do next:")
    for line in (f"cd {folder}", "pip install -e '.[test]'", f"zoo check {slot}:{variant}", "zoo run examples.yaml"):
        click.echo(f"  {line}")
