"""How other libraries configure and name the models of each family: one table per family, in `checkpoints/`."""

from __future__ import annotations

from pathlib import Path

from zoo.interop.family import Family

TABLES = Path(__file__).with_name("checkpoints")


class Table(Family):
    """The family that `checkpoints/<table>.yaml` describes; docs/weights.md explains the form of a table."""

    def __init__(self, *, table: str):
        super().__init__(TABLES / f"{table}.yaml")
