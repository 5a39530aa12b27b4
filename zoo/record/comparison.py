"""What `comparison.json` holds: rows, their runs, and what ranks them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from zoo.claims import Claim

from .document import NEEDED, Number, Plain, check_choice, check_folder, check_name, describe, read

COMPARISON = "comparison.json"


@dataclass(frozen=True, kw_only=True)
class Seeded:
    """A run of a row."""

    seed: int = describe("its seed", default=NEEDED)
    id: str = describe("its folder", default=NEEDED)

    def __post_init__(self) -> None:
        check_name(self.id)


@dataclass(frozen=True, kw_only=True)
class MetricRecord:
    """What ranks the rows."""

    name: str = describe("its name", default=NEEDED)
    better: str = describe("`lower` or `higher`", default="lower")
    unit: str = describe("its unit", default="")

    def __post_init__(self) -> None:
        check_choice("metric.better", self.better, ("lower", "higher"))


@dataclass(frozen=True, kw_only=True)
class Matched:
    """How near a row came to the figure that all rows agree in."""

    what: str = describe("the figure", default=NEEDED)
    by: str | None = describe("the size that was changed, or `steps`")
    size: int | None = describe("what it was changed to; null where it was left")
    value: Number = describe("the figure of this row", default=NEEDED)
    mismatch: Number = describe("share by which it is off; below 0 is less", default=NEEDED)

    def __post_init__(self) -> None:
        if self.mismatch <= -1:
            raise ValueError(f"a mismatch of {self.mismatch} leaves nothing")


@dataclass(frozen=True, kw_only=True)
class TrialRecord:
    """Settings that a row was tried with, and how that ended."""

    values: Mapping[str, Plain] = describe("setting to value", default_factory=dict)
    runs: tuple[Seeded, ...] = describe("its runs", default=())
    status: str | None = describe("`done`, or how a run of it was lost; null while one is to come")
    reason: str | None = describe("why a run of it was lost")
    dev: Number | None = describe("mean score on dev over its seeds")


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """How the values of trials were drawn."""

    trials: int = describe("trials of each row", default=NEEDED)
    sampler: str | None = describe("the sampler that draws")
    per_round: int | None = describe("trials that are drawn at once")
    optuna: str | None = describe("version of Optuna")
    axes: Mapping[str, Plain] = describe("setting to its range or list", default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """What the trials of a row have chosen."""

    trials: tuple[TrialRecord, ...] = describe("all of them", default=())
    chosen: Mapping[str, Plain] | None = describe("the values of the best; null while a trial is to come")
    edge: Mapping[str, str] = describe(
        "settings chosen at an end of what was tried, and at which", default_factory=dict
    )
    reason: str | None = describe("why none could be chosen")
    drawn: Drawn | None = describe("how the values were drawn; left out where all were listed", null_if="drawn")


@dataclass(frozen=True, kw_only=True)
class RoundRecord:
    """A round of halving."""

    steps: int = describe("steps of its runs", "steps", default=NEEDED)
    runs: tuple[Seeded, ...] = describe("its runs", default=())
    status: str | None = describe("`done`, or how a run of it was lost; null while one is to come")
    reason: str | None = describe("why a run of it was lost")
    dev: Number | None = describe("mean score on dev over its seeds")
    rank: int | None = describe("place among the rows beside the baseline, the best is 1")
    of: int | None = describe("how many rows those are")


@dataclass(frozen=True, kw_only=True)
class Halved:
    """How a row fared in the rounds before its runs."""

    rounds: tuple[RoundRecord, ...] = describe("its rounds, the first one first", default=())
    dropped: bool = describe("whether it ended there", default=False)

    def __post_init__(self) -> None:
        if self.dropped and not self.rounds:
            raise ValueError("a row was dropped after no round")


@dataclass(frozen=True, kw_only=True)
class HalvingRule:
    """How rows are dropped early."""

    rounds: int = describe("rounds, the last one of whole runs", default=NEEDED)
    factor: int = describe("of the rows in a round, 1/factor go on", default=NEEDED)
    seeds: tuple[int, ...] = describe("seeds of the rounds before the last", default=())


@dataclass(frozen=True, kw_only=True)
class RowRecord:
    """A line of the table."""

    name: str = describe("its name", default=NEEDED)
    differs: Mapping[str, Plain] = describe("setting to value, where it is not the baseline's", default_factory=dict)
    cell: Mapping[str, str] = describe("axis of the design to the value of this row", default_factory=dict)
    refused: str | None = describe("why it cannot be built")
    match: Matched | None = describe("how near it came to the baseline's figure", null_if="built")
    tuning: Tuning | None = describe("what its trials have chosen", null_if="built")
    halving: Halved | None = describe("how it fared in rounds of halving", null_if="built")
    runs: tuple[Seeded, ...] = describe("its runs, as far as it is known what they are", default=())

    @property
    def built(self) -> bool | None:
        return None if self.refused else True


@dataclass(frozen=True, kw_only=True)
class ComparisonRecord:
    """`comparison.json`: the rows of a comparison and what ranks them."""

    format: int = describe("version of this format", default=NEEDED)
    name: str = describe("the folder's name", default=NEEDED)
    file: str | None = describe("the file that `zoo run` was given")
    sets: tuple[str, ...] | None = describe("what `--set` changed in it", default=())
    task: str = describe("name of the task", default=NEEDED)
    metric: MetricRecord = describe("what ranks the rows", default=NEEDED)
    select: str = describe("what chose the weights of a run", default="best dev")
    baseline: str | None = describe("the row that the others are compared to")
    test: str = describe("`sign-flip` or `paired-t`", default="sign-flip")
    margin: Number | None = describe("the difference that matters, in the metric's unit")
    match: Mapping[str, Plain] | None = describe("the rule by which sizes or steps were made to agree")
    tune: Mapping[str, Plain] | None = describe("the rule by which settings were tried")
    halving: HalvingRule | None = describe("the rule by which rows were dropped")
    claims: tuple[Claim, ...] = describe("what is said of the rows in advance", default=())
    notes: tuple[str, ...] = describe("sentences on further splits that a report prints", default=())
    rows: tuple[RowRecord, ...] = describe("the rows, as they were declared", default=NEEDED)

    def __post_init__(self) -> None:
        check_name(self.name)
        check_choice("test", self.test, ("sign-flip", "paired-t"))
        names = {row.name for row in self.rows}
        if strange := {name for claim in self.claims for name in (claim.row, claim.than)} - names:
            raise ValueError(f"a claim is about {', '.join(sorted(strange))}, which is no row")


def read_comparison(folder: Path) -> ComparisonRecord:
    """The comparison of a folder. Raises `Unreadable`."""
    record = read(folder / COMPARISON, ComparisonRecord)
    check_folder(folder / COMPARISON, record.name)
    return record
