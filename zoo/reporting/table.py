"""A comparison's folders read back into one table of typed cells, without torch."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from zoo.claims import Claim
from zoo.faults import SpecError, nearest
from zoo.runs import Run as Folder

if TYPE_CHECKING:
    from .gate import Gate

FORMAT = 1

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
    rounds before its runs. Speeds are in tokens per second, memory in bytes.
    """

    name: str
    differs: Mapping[str, Any]
    runs: tuple[Run, ...]
    status: str
    reason: str | None = None
    reference: bool = False
    cell: Mapping[str, str] = field(default_factory=dict)
    match: Mapping[str, Any] | None = None
    tuning: Mapping[str, Any] | None = None
    halving: Mapping[str, Any] | None = None
    test: Mean | None = None
    dev: Mean | None = None
    loss: Mean | None = None
    probes: Mapping[str, Mean] = field(default_factory=dict)
    difference: Mean | None = None
    parameters: int | None = None
    flops_per_token: int | None = None
    kv_bytes_per_token: int | None = None
    epochs: float | None = None
    tokens_per_second: float | None = None
    train_seconds: float | None = None
    decode_tokens_per_second: float | None = None
    peak_memory_bytes: int | None = None
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

    `halving` is the rule by which rows were dropped. `file` and `sets` are what `zoo run` was given; `gate` is there
    where an earlier report is compared to. `notes` say what the task's further splits are.
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
    gate: Gate | None = None

    def agreement(self, row: Row) -> Mapping[str, Any] | None:
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


def comparisons(out: Path) -> list[str]:
    """The names of the comparisons that have a folder in `out`."""
    return sorted(path.parent.name for path in Path(out).glob("*/comparison.json"))


def read(out: Path, name: str) -> Table:
    """The comparison `name` of the folder `out`. Raises `SpecError` if there is none or it cannot be read."""
    out = Path(out)
    known = comparisons(out)
    if name not in known:
        have = f"it holds {', '.join(known)}" if known else "it holds none; 'zoo run FILE' makes one"
        raise SpecError(f"no comparison '{name}' in {out}{nearest(name, known)} ({have})")
    path = out / name / "comparison.json"
    try:
        return _table(out, json.loads(path.read_text("utf-8")))
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        raise SpecError(f"{path} cannot be read: {type(error).__name__}: {error}") from error


def _table(out: Path, document: Mapping[str, Any]) -> Table:
    if document["format"] != FORMAT:
        raise ValueError(f"format {document['format']}, and this version reads {FORMAT}")
    metric = Metric(**document["metric"])
    rows = []
    for entry in document["rows"]:
        rows.append(_row(entry, tuple(_run(out, run, metric.name) for run in entry["runs"]), metric))
    rows.sort(key=lambda row: (0, metric.rank(row.test.mean)) if row.test else (1, 0.0))
    known = ("baseline", "select", "test", "margin", "halving", "file", "sets")
    given = {key: document[key] for key in known if key in document}
    given["notes"] = tuple(document.get("notes") or ())
    given["claims"] = tuple(map(Claim.read, document.get("claims") or ()))
    if strange := {name for claim in given["claims"] for name in (claim.row, claim.than)} - {row.name for row in rows}:
        raise ValueError(f"a claim is about {', '.join(sorted(strange))}, which is no row")
    table = Table(document["name"], document["task"], metric, tuple(rows), **given)
    known = ((row, Mean.of(table.differences(row).values()), table.agreement(row)) for row in rows)
    return replace(table, rows=tuple(replace(row, difference=mean, match=match) for row, mean, match in known))


def _run(out: Path, entry: Mapping[str, Any], metric: str) -> Run:
    seed, id = entry["seed"], entry["id"]
    folder = Folder(out / id)
    try:
        record = folder.read()
        if not record:
            return Run(seed, id)
        status, reason, curve = record["status"], record.get("reason"), _curve(folder)
    except (ValueError, KeyError, TypeError, OSError) as error:
        return Run(seed, id, "failed", f"its folder cannot be read: {type(error).__name__}: {error}")
    metrics, best = record.get("metrics") or {}, record.get("best") or {}
    dev, test = _finite(best.get("dev") or metrics.get("dev")), _finite(metrics.get("test"))
    if status == "done" and metric not in test:  # strict JSON writes a number that is not finite as null
        status = "diverged" if metric in (metrics.get("test") or {}) else "failed"
        reason = f"no finite {metric} on test"
    probes = {split: _finite(values) for split, values in metrics.items() if split not in ("dev", "test")}
    return Run(seed, id, status, reason, dev, test, probes, record, curve)


def _curve(folder: Folder) -> tuple[tuple[int, Mapping[str, float]], ...]:
    return tuple((point["step"], _finite(point)) for point in folder.lines() if point.get("kind") == "dev")


def number(value: Any) -> float | None:
    """The value if it is a finite number."""
    known = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return value if known else None


def _finite(values: Mapping[str, Any] | None) -> dict[str, float]:
    return {name: value for name, value in (values or {}).items() if number(value) is not None}


def _row(entry: Mapping[str, Any], runs: tuple[Run, ...], metric: Metric) -> Row:
    done = [run for run in runs if run.status == "done"]
    status, reason = _status(entry.get("refused"), runs)
    tuning = entry.get("tuning") or {}
    if tuning.get("reason"):
        status, reason = "failed in trials", tuning["reason"]
    halving = entry.get("halving")
    if halving and halving["dropped"]:
        status, reason = _dropped(halving["rounds"][-1])

    def known(part: str, name: str) -> list[Any]:
        return [value for run in done or runs if (value := run.fact(part, name)) is not None]

    def first(name: str) -> Any:
        return next(iter(known("model", name)), None)

    def mean(name: str, part: str = "train") -> float | None:
        values = [value for value in map(number, known(part, name)) if value is not None]
        return fmean(values) if values else None

    kernel = first("kernel") or {}
    return Row(
        name=entry["name"],
        differs=entry.get("differs") or {},
        runs=runs,
        status=status,
        reason=reason,
        reference=_reference(runs),
        cell=entry.get("cell") or {},
        match=entry.get("match"),
        tuning=tuning or None,
        halving=halving,
        test=Mean.of(run.test.get(metric.name) for run in done),
        dev=Mean.of(run.dev.get(metric.name) for run in done),
        loss=Mean.of(run.test.get("loss") for run in done),
        probes=_probes(done, metric.name),
        parameters=number(first("parameters")),
        flops_per_token=number(first("flops_per_token")),
        kv_bytes_per_token=number(first("kv_bytes_per_token")),
        epochs=mean("epochs"),
        tokens_per_second=mean("tokens_per_second"),
        train_seconds=mean("seconds"),
        decode_tokens_per_second=mean("tokens_per_second", "decode"),
        peak_memory_bytes=max(filter(None, map(number, known("train", "peak_memory_bytes"))), default=None),
        factorisation=first("factorisation"),
        kernel=(kernel.get("requested"), tuple(kernel.get("effective") or ())),
    )


def _dropped(last: Mapping[str, Any]) -> tuple[str, str]:
    """After how many steps, and why."""
    lost = ": ".join(filter(None, (last["status"], last["reason"])))
    steps = f"{last['steps']:,} step{'' if last['steps'] == 1 else 's'}"
    return f"dropped after {steps}", f"{ordinal(last['rank'])} of {last['of']} on dev" if last["rank"] else lost


def ordinal(number: int) -> str:
    ending = "th" if 10 < number % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _probes(done: list[Run], metric: str) -> dict[str, Mean]:
    names = dict.fromkeys(name for run in done for name in run.probes)
    means = {name: Mean.of(run.scores(name).get(metric) for run in done) for name in names}
    return {name: mean for name, mean in means.items() if mean}


def _reference(runs: tuple[Run, ...]) -> bool:
    """Whether no gradient is involved: a finished run says so of itself, another one was at least asked for it."""
    done = [run for run in runs if run.status == "done"]
    if done:
        return all(run.record.get("train", 0) is None for run in done)
    return any("reference" in (run.record.get("spec") or {}) for run in runs)


def _status(refused: str | None, runs: tuple[Run, ...]) -> tuple[str, str | None]:
    """One phrase for all seeds of a row, and the reason of those that are not done."""
    if refused is not None:
        return "refused", refused
    counts = Counter(run.outcome for run in runs)
    reasons: dict[str, list[int]] = {}
    for run in runs:
        if run.reason and run.status != "done":
            reasons.setdefault(run.reason, []).append(run.seed)
    reason = next(iter(reasons), None)
    if len(reasons) > 1:
        reason = "; ".join(f"seed {', '.join(map(str, seeds))}: {text}" for text, seeds in reasons.items())
    if len(counts) < 2:
        return next(iter(counts), "not run"), reason
    ordered = {"done": counts.pop("done")} | counts if "done" in counts else counts
    return ", ".join(f"{count}/{len(runs)} {outcome}" for outcome, count in ordered.items()), reason
