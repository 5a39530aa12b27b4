"""What a baseline holds: as much of a report as a later one is compared to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .comparison import MetricRecord
from .document import FORMAT, NEEDED, Number, Plain, describe, parse, read_plain


@dataclass(frozen=True, kw_only=True)
class PastRow:
    """A row of an earlier report."""

    scores: Mapping[int, Number] = describe("seed to score on test", default=NEEDED)
    ended: Mapping[int, str] = describe("seed to how its run ended, where it has no score", default=NEEDED)
    reference: bool = describe("whether nothing was trained", default=NEEDED)
    data: str | None = describe("hash of its text; empty where the task makes its own, null if unknown", default=NEEDED)
    settings: Mapping[str, Plain] = describe("dotted path to what only this row has there", default=NEEDED)


@dataclass(frozen=True, kw_only=True)
class BaselineRecord:
    """The file of `zoo baseline update`, and `basis` of `report.json`: what a later report is compared to."""

    format: int = describe("version of this format", default=NEEDED)
    name: str = describe("the comparison", default=NEEDED)
    task: str = describe("name of the task", default=NEEDED)
    metric: MetricRecord = describe("what ranks the rows", default=NEEDED)
    settings: Mapping[str, Plain] = describe("dotted path to what all rows have there", default=NEEDED)
    rows: Mapping[str, PastRow] = describe("name to row", default=NEEDED)


def read_baseline(path: Path) -> BaselineRecord:
    """Of a `report.json`, or of a file of `zoo baseline update`. Raises `Unreadable`."""
    return read_plain(path, parse_baseline)


def parse_baseline(found: Any) -> BaselineRecord:
    held = found.get("basis", found) if isinstance(found, dict) and found.get("format") == FORMAT else found
    if isinstance(held, dict) and isinstance(held.get("rows"), list):
        raise ValueError("it was written by a version that could not compare reports; run 'zoo report' there again")
    return parse(held, BaselineRecord)
