"""What a comparison would run and what that costs: records, and the table that they print as."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tabulate import tabulate

from zoo import numbers

MANY_EPOCHS = 5
"""Passes over the training text above which a small model is expected to memorise it."""


@dataclass(frozen=True)
class PlanRow:
    """A row that is trained. `flops_per_token` are those of a forward pass, `kv_bytes_per_token` what the cache grows
    by, `memory_bytes` an estimate for one training step in float32, `epochs` the passes over the training text (None
    where that has no end), `runs` one per seed. `mismatch` is how far the row is from the figure in which all rows
    were to agree, as a fraction; None where none was asked for.
    """

    name: str
    parameters: int
    flops_per_token: int
    kv_bytes_per_token: int | None
    memory_bytes: int
    kernels: tuple[str, ...]
    runs: int
    steps: int
    epochs: float | None
    mismatch: float | None = None


@dataclass(frozen=True)
class Totals:
    """All runs together: `earlier` are those of trials, or of rounds of `halving`, before them. Where rows may still be
    dropped, these are `at_most` so many. `flops` are those of training.
    """

    runs: int
    earlier: int
    flops: int
    halving: bool = False
    at_most: bool = False

    def __str__(self) -> str:
        kind = "in rounds of halving" if self.halving else "trials"
        most = "at most " if self.at_most else ""
        runs = f"{most}{self.runs} runs" + (f" and {self.earlier} {kind} before them" if self.earlier else "")
        flops = f"{numbers.flops(self.flops)} FLOPs: three forward passes of every token in training"
        return f"{runs}, {flops}, evaluations left out"


@dataclass(frozen=True)
class Duration:
    """The seconds until all that has not ended would be done, with so many `workers` at once, and what they are
    estimated by.
    """

    seconds: float
    workers: int
    by: str

    def __str__(self) -> str:
        if not self.seconds:
            return "all of them have ended"
        side = f", {self.workers} at once" if self.workers > 1 else ""
        return f"about {spell_time(self.seconds)} to go{side}: an estimate {self.by}"


@dataclass(frozen=True, repr=False)
class Plan:
    """What a comparison would run. `refused` are combinations that cannot be built, with the reason; `duration` is None
    where nothing is known to tell it by.
    """

    name: str
    rows: tuple[PlanRow, ...]
    refused: Mapping[str, str]
    totals: Totals
    duration: Duration | None

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return dataclasses.asdict(self)

    @property
    def summary(self) -> list[str]:
        """The totals in words, a line each."""
        lines = [str(self.totals), *([str(self.duration)] if self.duration else [])]
        lines.append("memory is an estimate for one training step in float32")
        if max((row.epochs for row in self.rows if row.epochs), default=0) > MANY_EPOCHS:
            lines.append(
                f"more than {MANY_EPOCHS} epochs: small models memorise by then; the best on dev is what counts"
            )
        return lines

    def __str__(self) -> str:
        head, align = zip(*COLUMNS.items(), strict=True)
        matched = any(row.mismatch is not None for row in self.rows)
        shown = len(head) if matched else len(head) - 1
        cells = [list_cells(row)[:shown] for row in self.rows]
        table = tabulate(cells, head[:shown], disable_numparse=True, colalign=align[:shown] if cells else None)
        refused = [f"refused: {name}: {reason}" for name, reason in self.refused.items()]
        return "\n".join([table, *refused, *self.summary])

    def __repr__(self) -> str:
        return str(self)


COLUMNS = {
    "variant": "left", "parameters": "right", "FLOPs/token": "right", "KV/token": "right", "memory": "right",
    "kernel": "left", "runs": "right", "steps": "right", "epochs": "right", "mismatch": "right",
}  # fmt: skip
"""The heads of the table and how a column is set."""


def list_cells(row: PlanRow) -> list[str]:
    """The texts of a row, in the order of `COLUMNS`."""
    return [
        row.name,
        numbers.count(row.parameters),
        numbers.flops(row.flops_per_token),
        numbers.size(row.kv_bytes_per_token),
        numbers.size(row.memory_bytes),
        ", ".join(row.kernels),
        str(row.runs),
        f"{row.steps:,}",
        numbers.epochs(row.epochs),
        "" if row.mismatch is None else f"{row.mismatch:+.2%}",
    ]


def spell_time(seconds: float) -> str:
    """A time as long as an estimate deserves."""
    for limit, size, unit in ((90, 1, "s"), (90 * 60, 60, "min"), (48 * 3600, 3600, "h")):
        if seconds < limit:
            return f"{max(1, round(seconds / size))} {unit}"
    return f"{seconds / 86400:.1f} days"
