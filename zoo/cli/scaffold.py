"""`zoo new-plugin`: a package to write a variant in."""

from __future__ import annotations

from pathlib import Path

import click

from . import discover_variants
from .completion import complete_slot


@click.command("new-plugin")
@click.argument("name")
@click.option("--slot", required=True, shell_complete=complete_slot, help="Slot of the variant; see 'zoo list'.")
@click.option("--to", type=click.Path(path_type=Path, file_okay=False), default=".", show_default=True,
              help="Directory to create the package in.")  # fmt: skip
def new_plugin(name: str, slot: str, to: Path) -> None:
    """Create a package with a working variant NAME for a slot, its test and all files needed to publish it.

    \b
    Examples:
      zoo new-plugin my-bias --slot position
      zoo new-plugin my-norm --slot norm --to plugins
    """
    from zoo.templates.scaffold import PREFIX, write

    folder = write(name, slot, to, discover_variants())
    variant = folder.name.removeprefix(PREFIX)
    click.echo(f"{folder}: a package that offers {slot} '{variant}'; its README.md says what to do next:")
    for line in (f"cd {folder}", "pip install -e '.[test]'", f"zoo check {slot}:{variant}", "zoo run examples.yaml"):
        click.echo(f"  {line}")
