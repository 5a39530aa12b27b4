"""The table as strict JSON: all that the other forms show, and what a later report needs of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from zoo.files import strict
from zoo.record import FORMAT

from ..judging.baseline import make_baseline
from ..judging.baseline import to_document as baseline_document
from ..judging.effects import Effect, describe_effect, judge_effects
from ..judging.gate import Gate
from ..judging.method import collect_method
from ..judging.pareto import find_best
from ..judging.verdict import Finding, describe_rows, findings, rule
from ..table import Mean, Row, Run, Table
from .caption import caption, footnotes
from .claims import list_claims


def to_json(table: Table, gate: Gate | None = None) -> str:
    """Strict JSON: a number that is not finite is null, and texts are as they were."""
    found, best, slots = findings(table), find_best(table), judge_effects(table)
    document = {
        "format": FORMAT,
        "name": table.name,
        "task": table.task,
        "metric": asdict(table.metric),
        "select": table.select,
        "baseline": table.baseline,
        "rule": asdict(rule(table)),
        "earlier": _earlier(gate),
        "verdicts": describe_rows(table),
        "caption": caption(table),
        "footnotes": footnotes(table),
        "method": collect_method(table),
        "rows": [_entry(row, found.get(row.name), best) for row in table.rows],
        "claims": list_claims(table),
        "effects": {
            "main": [_effect(effect, table.metric.name) for effect in slots.main],
            "interactions": [_effect(effect, table.metric.name) for effect in slots.interactions],
            "why_not": slots.why_not,
        },
        "basis": baseline_document(make_baseline(table)),
    }
    return json.dumps(strict(document), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _earlier(gate: Gate | None) -> dict[str, Any] | None:
    """How the table stands against an earlier report, row by row."""
    if gate is None:
        return None
    rows = [{"name": each.name, "became": each.kind, "text": each.text} | (asdict(each.verdict) if each.verdict else {})
            for each in gate.changes]  # fmt: skip
    head = {"source": gate.baseline.source, "summary": gate.summary, "code": gate.code, "fail_on": gate.fail_on}
    return {**head, "threshold": gate.threshold, "notes": gate.notes, "rows": rows}


def _effect(effect: Effect, unit: str) -> dict[str, Any]:
    contrast, verdict = effect.contrast, effect.verdict
    sides = {"values": dict(contrast.values), "against": dict(contrast.against)}
    return {**sides, "settings": contrast.settings, "lost": contrast.lost, **asdict(verdict), "phrase": effect.phrase,
            "sentence": describe_effect(effect, unit), "differences": contrast.differences}  # fmt: skip


def _verdict(finding: Finding) -> dict[str, Any]:
    """All figures; a reference, which is not judged, has its wins."""
    counts = {key: getattr(finding, key) for key in ("phrase", "pairs", "planned", "lost", "wins")}
    verdict = finding.verdict
    return {**(asdict(verdict) | {"bound": verdict.bound} if verdict else {"word": None}), **counts}


def _entry(row: Row, finding: Finding | None, best: Mapping[str, list[str]]) -> dict[str, Any]:
    requested, effective = row.kernel
    entry = {name: value for name, value in vars(row).items() if name not in ("runs", "kernel")}
    entry = {name: asdict(value) if isinstance(value, Mean) else value for name, value in entry.items()}
    entry |= {name: entry[name] or None for name in ("match", "tuning", "halving")}
    entry["probes"] = {name: asdict(mean) for name, mean in row.probes.items()}
    parts = (part for run in row.runs for part in run.record.get("provenance") or ())
    return entry | {
        "verdict": finding and _verdict(finding),
        "pareto": {cost: row.name in names for cost, names in best.items()},
        "outcomes": dict(row.outcomes),
        "seeds": {"done": row.done, "planned": len(row.runs)},
        "kernel": {"requested": requested, "effective": effective},
        "provenance": list({(part.get("slot"), part.get("name")): part for part in parts}.values()),
        "runs": [_run(run) for run in row.runs],
    }


def _run(run: Run) -> dict[str, Any]:
    entry = {key: getattr(run, key) for key in ("seed", "id", "status", "reason", "dev", "test", "probes")}
    curve = [{key: value for key, value in point.items() if key != "kind"} for _, point in run.curve]
    return {**entry, "train_seconds": run.fact("train", "seconds"), "curve": curve}
