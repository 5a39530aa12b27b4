"""What the folders of a comparison and of its runs say before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zoo.compare.comparison import Comparison, ReferenceRow, Refusal, Row
from zoo.compare.prepared import Prepared
from zoo.compare.run_spec import RunSpec, TrainedRun
from zoo.declare.spec import ModelSpec
from zoo.model.weights import TensorMatch, hash_file
from zoo.record import FORMAT


def describe_run(run: RunSpec, prepared: Prepared) -> dict[str, Any]:
    """What a run's folder says before it starts: enough for another process to make the same, and its counts.

    They are taken here, since a model without weights costs a process that has none seconds of imports.
    """
    train = run.train if isinstance(run, TrainedRun) else None
    return {
        "spec": run.plain(),
        "model": describe_model(run, prepared) if isinstance(run, TrainedRun) else None,
        "seed": run.seed,
        "threads": train.threads if train else 1,
        "processes": train.processes if train else 1,
        "provenance": run.provenance(),
        "plugins": prepared.library.describe_discovery(),
    }


def describe_model(run: TrainedRun, prepared: Prepared) -> dict[str, Any]:
    """The part `model` of the record."""
    facts = prepared.facts(run)
    counted = facts.cost
    kernels = dict.fromkeys(part.name for part in run.model.parts() if part.slot == "kernel")
    return {
        "parameters": counted.parameters,
        "flops_per_token": counted.flops_per_token,
        "kv_bytes_per_token": counted.kv_bytes_per_token,
        "kernel": {"requested": ", ".join(kernels) or None, "effective": list(counted.kernels)},
        "factorisation": "left to right" if facts.autoregressive else "independent",
        "weights": describe_weights(run.model, facts.fit),
    }


def describe_weights(spec: ModelSpec, fit: TensorMatch | None) -> dict[str, Any] | None:
    """The file that a model starts from, and which tensors one of the two has alone."""
    if spec.weights is None or fit is None:
        return None
    counts = {"filled": len(fit.filled), "drawn": fit.drawn, "unused": fit.unused}
    return {"file": spec.weights, "sha256": hash_file(spec.weights), **counts}


def describe_comparison(comparison: Comparison, prepared: Prepared, file: str) -> dict[str, Any]:
    """The record of a comparison: its rows, and what ranks them."""
    first = comparison.rows[0].first
    ranking = prepared.ranking(first)
    rows = [describe_row(row, prepared) for row in comparison.lines]
    return {
        "format": FORMAT,
        "name": comparison.name,
        "file": file,
        "sets": prepared.library.overrides,
        "task": first.task.name,
        "metric": {"name": prepared.metric(first), "better": ranking.better, "unit": ranking.unit},
        "select": "best dev",
        "baseline": comparison.baseline,
        "test": comparison.test,
        "margin": comparison.margin,
        "match": comparison.match and comparison.match.plain(),
        "tune": comparison.tune and comparison.tune.plain(),
        "halving": comparison.halving and comparison.halving.plain(),
        "claims": [claim.record() for claim in comparison.claims],
        "notes": collect_notes(comparison, prepared),
        "rows": [*rows, *map(describe_refusal, comparison.refused)],
    }


def describe_row(row: Row | ReferenceRow, prepared: Prepared) -> dict[str, Any]:
    trained = row if isinstance(row, Row) else None
    runs: Sequence[RunSpec] = trained.settled if trained else row.runs
    return {
        "name": row.name,
        "differs": dict(row.differs),
        "cell": dict(trained.cell) if trained else {},
        "refused": None,
        "match": trained and trained.match,
        "tuning": trained and trained.tuning,
        "halving": trained and trained.halving,
        "runs": [{"seed": run.seed, "id": prepared.id(run)} for run in runs],
    }


def describe_refusal(refusal: Refusal) -> dict[str, Any]:
    raw = refusal.raw
    return {"name": raw.name, "differs": {}, "cell": dict(raw.cell), "refused": refusal.reason, "runs": []}


def collect_notes(comparison: Comparison, prepared: Prepared) -> list[str]:
    """What the tasks of a comparison say of the splits that they are scored on beside dev and test."""
    tasks = (prepared.bound_task(row.first.task, row.first.shape) for row in comparison.lines)
    return list(dict.fromkeys(task.probe_note for task in tasks if task.probe_note))
