"""A comparison as one table: rows of runs with their scores and costs."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Any

from zoo.claims import Claim

MEMORY = re.compile(r"out of memory|OutOfMemory|MemoryError|can't allocate memory", re.IGNORECASE)
"""What torch and Python say where there is none left."""


CLOCKED = ("seconds",)
"""What rows can be made to agree in and only a clock shows."""


@dataclass(frozen=True)
class Metric:
    """What ranks the rows; `better` is "lower" or "higher"."""

    name: str
    better: str = "lower"
    unit: str = ""

    def rank(self, value: float) -> float:
        """A number that is smaller for a better value."""
        return -value if self.better == "higher" else value


@dataclass(frozen=True)
class Mean:
    """Mean over n seeds, with the sample standard deviation (n - 1) where there are two seeds or more."""

    mean: float
    sd: float | None
    n: int

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Mean | None:
        kept = [value for value in values if value is not None]
        if not kept:
            return None
        return cls(fmean(kept), stdev(kept) if len(kept) > 1 else None, len(kept))


@dataclass(frozen=True)
class Run:
    """One seed of one row. `dev` chose the weights, `test` is what they score, and `probes` what they score on further
    splits, by name; all hold finite numbers only."""

    seed: int
    id: str
    status: str = "not run"
    reason: str | None = None
    dev: Mapping[str, float] = field(default_factory=dict)
    test: Mapping[str, float] = field(default_factory=dict)
    probes: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    record: Mapping[str, Any] = field(default_factory=dict, repr=False)
    curve: tuple[tuple[int, Mapping[str, float]], ...] = field(default=(), repr=False)

    @property
    def outcome(self) -> str:
        """How the run ended: its status, and of one that failed whether it was killed or out of memory."""
        if self.status == "failed" and (self.reason or "").startswith("killed by"):
            return "killed"
        return "out of memory" if self.status == "failed" and MEMORY.search(self.reason or "") else self.status

    def scores(self, split: str) -> Mapping[str, float]:
        """What the weights score on test, or on a probe."""
        return self.test if split == "test" else self.probes.get(split, {})

    def fact(self, part: str, name: str) -> Any:
        """`record[part][name]`, or None where either is not known."""
        return (self.record.get(part) or {}).get(name)


@dataclass(frozen=True)
class Row:
    """One variant over its seeds. Means are over the runs that are done, and None where there are none.

    `reference` rows were not trained. `cell` is the row's value on every axis that was varied, `match` how near it
    came to the figure that all rows agree in, `tuning` what its trials have chosen, and `halving` how it fared in the
    rounds before its runs, each empty where there was no such thing. Speeds are in tokens per second, memory in bytes.
    """

    name: str
    differs: Mapping[str, Any]
    runs: tuple[Run, ...]
    status: str
    reason: str | None = None
    reference: bool = False
    cell: Mapping[str, str] = field(default_factory=dict)
    match: Mapping[str, Any] = field(default_factory=dict)
    tuning: Mapping[str, Any] = field(default_factory=dict)
    halving: Mapping[str, Any] = field(default_factory=dict)
    test: Mean | None = None
    dev: Mean | None = None
    loss: Mean | None = None
    probes: Mapping[str, Mean] = field(default_factory=dict)
    difference: Mean | None = None
    parameters: float | None = None
    flops_per_token: float | None = None
    kv_bytes_per_token: float | None = None
    epochs: float | None = None
    tokens_per_second: float | None = None
    train_seconds: float | None = None
    decode_tokens_per_second: float | None = None
    peak_memory_bytes: float | None = None
    factorisation: str | None = None
    kernel: tuple[str | None, tuple[str, ...]] = (None, ())

    @property
    def done(self) -> int:
        return self.outcomes["done"]

    @property
    def task(self) -> dict[str, str]:
        """Its value on every axis that makes another task; another tokenizer makes none, for it is the same text."""
        return {axis: value for axis, value in self.cell.items() if re.match(r"task(?!\.tokenizer)(\.|$)", axis)}

    @property
    def dropped(self) -> bool:
        """Whether short runs ended it, so that it has no others."""
        return bool(self.halving and self.halving["dropped"])

    @property
    def outcomes(self) -> Counter[str]:
        """How many runs ended in which way."""
        return Counter(run.outcome for run in self.runs)

    @property
    def progress(self) -> str:
        """How many of its runs ended in which way."""
        if self.reference and self.status == "done":
            return "reference"
        runs = len(self.runs)
        return f"{runs}/{runs} {self.status}" if runs > 1 and len(self.outcomes) == 1 else self.status

    @property
    def step_seconds(self) -> float | None:
        """Wall clock of all training steps, evaluations left out, as the mean over the runs that are done."""
        done = [run for run in self.runs if run.status == "done"]
        facts = [(number(run.fact("train", "tokens")), number(run.fact("train", "tokens_per_second"))) for run in done]
        taken = [tokens / rate for tokens, rate in facts if tokens and rate]
        return fmean(taken) if taken else None

    def scores(self, metric: Metric) -> dict[int, float]:
        """The score of every seed that has one."""
        return {run.seed: run.test[metric.name] for run in self.runs if run.status == "done"}

    @property
    def trained(self) -> bool:
        """Whether there is a mean over seeds to speak of."""
        return self.test is not None and not self.reference


@dataclass(frozen=True)
class Table:
    """A comparison: rows with a finite score first, the better first, then the others as they were declared.

    `halving` is the rule by which rows were dropped. `file` and `sets` are what `zoo run` was given.
    `notes` say what the task's further splits are.
    """

    name: str
    task: str
    metric: Metric
    rows: tuple[Row, ...]
    baseline: str | None = None
    select: str = "best dev"
    test: str = "sign-flip"
    margin: float | None = None
    halving: Mapping[str, Any] | None = None
    file: str = ""
    sets: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return f"{self.name}: {self.task}"

    def agreement(self, row: Row) -> Mapping[str, Any]:
        """The row's `match`. Of seconds it is known only afterwards: `mismatch` is that of those `taken`, to the
        baseline's, and `planned` the one that was aimed at.
        """
        if not row.match or row.match["what"] not in CLOCKED:
            return row.match
        taken, target = row.step_seconds, row.match["value"] / (1 + row.match["mismatch"])
        theirs = self.base.step_seconds if self.base and not self.base.reference else target
        off = taken / theirs - 1 if taken and theirs else None
        return {**row.match, "planned": row.match["mismatch"], "taken": taken, "mismatch": off}

    @property
    def base(self) -> Row | None:
        """The row that the others are compared to."""
        return next((row for row in self.rows if row.name == self.baseline), None)

    @property
    def probes(self) -> list[str]:
        """The further splits that any row is scored on, in the order in which they were."""
        return list(dict.fromkeys(name for row in self.rows for name in row.probes))

    @property
    def one_machine(self) -> bool:
        """Whether times can be compared."""
        machines = [run.record["machine"] for row in self.rows for run in row.runs if run.record.get("machine")]
        return all(machine == machines[0] for machine in machines)

    @property
    def tasks(self) -> list[dict[str, str]]:
        """What rows were made on, where the task is among what varies; a reference, on the first of these, has none."""
        found = [row.task for row in self.rows if row.task]
        return [task for number, task in enumerate(found) if task not in found[:number]]

    def apart(self, row: Row) -> bool:
        """Whether the row was made on another task than the baseline, so that their scores cannot be compared."""
        return bool(self.base and row.cell and self.base.cell and row.task != self.base.task)

    def differences(self, row: Row) -> dict[int, float]:
        """Score of the row less the baseline's by shared seed; a reference has its one at all, another task none."""
        base = self.base
        if base is None or row.name == base.name or self.apart(row):
            return {}
        mine, theirs = row.scores(self.metric), base.scores(self.metric)
        if row.reference and mine:
            mine = dict.fromkeys(theirs, next(iter(mine.values())))
        elif base.reference and theirs:
            theirs = dict.fromkeys(mine, next(iter(theirs.values())))
        return {seed: score - theirs[seed] for seed, score in mine.items() if seed in theirs}


def number(value: Any) -> float | None:
    """The value if it is a finite number."""
    known = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return value if known else None
