"""What `speeds.json` holds: how long training steps take, where rows train for as many seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .document import NEEDED, Number, describe

SPEEDS = "speeds.json"


@dataclass(frozen=True, kw_only=True)
class Clocked:
    """What decides how fast a machine is."""

    processor: str | None = describe("model of the processor")
    cores: int | None = describe("processor cores")
    devices: tuple[str, ...] = describe("devices that rows train on", default=())


@dataclass(frozen=True, kw_only=True)
class RowSpeed:
    """How long a training step of a row takes."""

    name: str = describe("the row", default="")
    seconds: Number = describe("of one training step", "s", default=NEEDED)

    def __post_init__(self) -> None:
        if self.seconds <= 0:
            raise ValueError("a step takes no time")


@dataclass(frozen=True, kw_only=True)
class SpeedSet:
    """What was timed on one machine."""

    machine: Clocked | None = describe("the machine; null after a merge, where it is any")
    workers: int | None = describe("runs side by side; null after a merge")
    rows: Mapping[str, RowSpeed] = describe("id of what is timed to the time", default=NEEDED)


@dataclass(frozen=True, kw_only=True)
class SpeedsRecord:
    """`speeds.json`: how long the steps of a comparison take, where rows train for as many seconds."""

    format: int = describe("version of this format", default=NEEDED)
    sets: tuple[SpeedSet, ...] = describe("one for each machine, the one in use first", default=NEEDED)
