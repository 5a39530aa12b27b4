"""A comparison's folders read back into a table, without torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from zoo.faults import SpecError, nearest
from zoo.record import COMPARISON, ComparisonRecord, RowRecord, Seeded, Unreadable, plain, read_comparison
from zoo.record.folder import Run as Folder

from .table import Mean, Metric, Row, Run, Table, number


def comparisons(out: Path) -> list[str]:
    """The names of the comparisons that have a folder in `out`."""
    return sorted(path.parent.name for path in Path(out).glob(f"*/{COMPARISON}"))


def read(out: Path, name: str) -> Table:
    """The comparison `name` of the folder `out`. Raises `SpecError` if there is none or it cannot be read."""
    out = Path(out)
    known = comparisons(out)
    if name not in known:
        have = f"it holds {', '.join(known)}" if known else "it holds none; 'zoo run FILE' makes one"
        raise SpecError(f"no comparison '{name}' in {out}{nearest(name, known)} ({have})")
    return _read_table(out, read_comparison(out / name))


def _read_table(out: Path, document: ComparisonRecord) -> Table:
    metric = Metric(**plain(document.metric))
    rows = [
        _make_row(entry, tuple(_read_run(out, run, metric.name) for run in entry.runs), metric)
        for entry in document.rows
    ]
    rows.sort(key=lambda row: (0, metric.rank(row.test.mean)) if row.test else (1, 0.0))
    table = Table(
        document.name, document.task, metric, tuple(rows), document.baseline, document.select, document.test,
        document.margin, plain(document.halving), document.file or "", document.sets or (), document.claims,
        document.notes,
    )  # fmt: skip
    differences = {row.name: Mean.of(table.differences(row).values()) for row in rows}
    rows = [replace(row, difference=differences[row.name], match=table.agreement(row)) for row in rows]
    return replace(table, rows=tuple(rows))


def _read_run(out: Path, entry: Seeded, metric: str) -> Run:
    seed, id = entry.seed, entry.id
    folder = Folder(out / id)
    try:
        if not folder.record.exists():
            return Run(seed, id)
        record, curve = plain(folder.read()), _read_curve(folder)
    except Unreadable as error:
        return Run(seed, id, "failed", f"its folder cannot be read: {error.why}")
    except OSError as error:
        return Run(seed, id, "failed", f"its folder cannot be read: {error}")
    status, reason = record["status"], record["reason"]
    metrics, best = record.get("metrics") or {}, record.get("best") or {}
    dev, test = _keep_finite(best.get("dev") or metrics.get("dev")), _keep_finite(metrics.get("test"))
    if status == "done" and metric not in test:  # strict JSON writes a number that is not finite as null
        status = "diverged" if metric in (metrics.get("test") or {}) else "failed"
        reason = f"no finite {metric} on test"
    probes = {split: _keep_finite(values) for split, values in metrics.items() if split not in ("dev", "test")}
    return Run(seed, id, status, reason, dev, test, probes, record, curve)


def _read_curve(folder: Folder) -> tuple[tuple[int, Mapping[str, float]], ...]:
    return tuple((point["step"], _keep_finite(point)) for point in folder.lines() if point.get("kind") == "dev")


def _keep_finite(values: Mapping[str, Any] | None) -> dict[str, float]:
    return {name: value for name, value in (values or {}).items() if number(value) is not None}


def _make_row(entry: RowRecord, runs: tuple[Run, ...], metric: Metric) -> Row:
    done = [run for run in runs if run.status == "done"]
    status, reason = _summarise_status(entry.refused, runs)
    if entry.tuning and entry.tuning.reason:
        status, reason = "failed in trials", entry.tuning.reason
    halving = plain(entry.halving) or {}
    if halving and halving["dropped"]:
        status, reason = _explain_drop(halving["rounds"][-1])

    def known(part: str, name: str) -> list[Any]:
        return [value for run in done or runs if (value := run.fact(part, name)) is not None]

    def first(name: str) -> Any:
        return next(iter(known("model", name)), None)

    def mean(name: str, part: str = "train") -> float | None:
        values = [value for value in map(number, known(part, name)) if value is not None]
        return fmean(values) if values else None

    kernel = first("kernel") or {}
    return Row(
        name=entry.name,
        differs=entry.differs,
        runs=runs,
        status=status,
        reason=reason,
        reference=_is_reference(runs),
        cell=entry.cell,
        match=plain(entry.match) or {},
        tuning=plain(entry.tuning) or {},
        halving=halving,
        test=Mean.of(run.test.get(metric.name) for run in done),
        dev=Mean.of(run.dev.get(metric.name) for run in done),
        loss=Mean.of(run.test.get("loss") for run in done),
        probes=_average_probes(done, metric.name),
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


def _explain_drop(last: Mapping[str, Any]) -> tuple[str, str]:
    """After how many steps, and why."""
    lost = ": ".join(filter(None, (last["status"], last["reason"])))
    steps = f"{last['steps']:,} step{'' if last['steps'] == 1 else 's'}"
    return f"dropped after {steps}", f"{ordinal(last['rank'])} of {last['of']} on dev" if last["rank"] else lost


def ordinal(number: int) -> str:
    ending = "th" if 10 < number % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _average_probes(done: list[Run], metric: str) -> dict[str, Mean]:
    names = dict.fromkeys(name for run in done for name in run.probes)
    means = {name: Mean.of(run.scores(name).get(metric) for run in done) for name in names}
    return {name: mean for name, mean in means.items() if mean}


def _is_reference(runs: tuple[Run, ...]) -> bool:
    """Whether no gradient is involved: a run says what it was asked for, and a finished one without that shows it."""
    done = [run for run in runs if run.status == "done"]
    if done and not any(run.record.get("spec") for run in done):
        return all(run.record.get("train", 0) is None for run in done)
    return any("reference" in (run.record.get("spec") or {}) for run in runs)


def _summarise_status(refused: str | None, runs: tuple[Run, ...]) -> tuple[str, str | None]:
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
