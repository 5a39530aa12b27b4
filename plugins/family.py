"""How other libraries configure and name the models of each family: one table per family, in `families/`."""

from __future__ import annotations

from pathlib import Path

from zoo.interop import Family

TABLES = Path(__file__).with_name("families")


class Table(Family):
    """The family that `families/<table>.yaml` describes; docs/weights.md explains the form of a table."""

    def __init__(self, *, table: str):
        super().__init__(TABLES / f"{table}.yaml")
