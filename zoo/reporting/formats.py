"""One table in every form that it leaves in: terminal, Markdown, plain text, CSV, JSON."""

from __future__ import annotations

import csv as csv_file
import io
import json as json_file
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from operator import attrgetter
from typing import Any

from tabulate import tabulate

from zoo import numbers
from zoo.runs import strict

from . import baseline, claims, fairness
from .caption import caption, footnotes, title
from .column import Column, Small, flat, short
from .effects import Effect, effects, sentence
from .method import method
from .pareto import COSTS, fronts
from .table import FORMAT, Mean, Row, Run, Table
from .verdict import Finding, findings, rule, sentences

FIGURES = ("p", "p_holm", "improvement", "detectable", "more")

EFFECT = (
    Column("effect of", lambda effect: flat(effect.name), 1, right=False, breaks="words"),
    Column("against", lambda effect: flat(effect.against), 5, right=False, breaks="commas"),
    Column("difference [95 %]", lambda effect: numbers.between(effect.verdict), 2, value=lambda e: e.verdict.mean),
    Column("p", lambda effect: numbers.chance(effect.verdict.p_holm), 4, value=lambda effect: effect.verdict.p_holm),
    Column("verdict", lambda effect: effect.phrase, 3, right=False, breaks="words"),
    Column("settings", lambda effect: str(effect.contrast.settings), 7, value=lambda e: e.contrast.settings),
    Column("seeds", lambda effect: str(effect.verdict.n), 6, value=lambda effect: effect.verdict.n),
)
"""The columns of the small tables."""


def columns(table: Table) -> list[Column]:
    """The columns that say something about at least one row."""
    name = table.metric.name
    plain = all(row.status == "done" for row in table.rows)
    loss = Column("test loss", lambda row: numbers.mean(row.loss), 12, value=lambda row: _mean(row.loss))
    several = [loss] if name != "loss" else []
    found, best = findings(table), fronts(table)
    every = [
        Column("variant", lambda row: flat(row.name), 1, right=False, breaks="anywhere"),
        Column("what differs", lambda row: flat(differs(row.differs)), 10, right=False, breaks="commas"),
        Column("parameters", lambda row: numbers.count(row.parameters), 6, value=lambda row: row.parameters),
        Column("FLOPs/token", lambda row: numbers.flops(row.flops_per_token), 11, value=attrgetter("flops_per_token")),
        Column("mismatch", fairness.mismatch, 10, value=lambda row: row.match and row.match["mismatch"]),
        Column(f"test {flat(name)}", lambda row: numbers.mean(row.test), 2, value=lambda row: _mean(row.test)),
        *several,
        *(_probe(probe, flat(name)) for probe in table.probes),
        Column("difference [95 %]", lambda row: _difference(table, row, found), 4, value=lambda r: _mean(r.difference)),
        Column("p", lambda row: numbers.chance(_p(found.get(row.name))), 7, value=lambda row: _p(found.get(row.name))),
        Column("verdict", lambda row: _phrase(found.get(row.name)), 5, right=False, breaks="words"),
        Column("epochs", lambda row: numbers.epochs(row.epochs), 13, value=lambda row: row.epochs),
        Column("tokens/s", lambda row: numbers.rate(row.tokens_per_second), 8, value=lambda row: row.tokens_per_second),
        Column("decode tokens/s", _decoded, 9, value=lambda row: row.decode_tokens_per_second),
        Column("peak memory", lambda row: numbers.size(row.peak_memory_bytes), 14, value=lambda r: r.peak_memory_bytes),
        Column("KV/token", lambda row: numbers.size(row.kv_bytes_per_token), 9, value=lambda r: r.kv_bytes_per_token),
        Column("Pareto", lambda row: _best(best, row), 15, right=False, breaks="commas"),
        Column("status", status, 16 if plain else 3, right=False, breaks="commas"),
    ]
    return [column for column in every if any(column.text(row) for row in table.rows)]


def _decoded(row: Row) -> str:
    return numbers.rate(row.decode_tokens_per_second)


def _probe(split: str, metric: str) -> Column:
    """A further split; where fewer seeds have a score on it than on test, how many do."""

    def text(row: Row) -> str:
        mean = row.probes.get(split)
        few = f" ({mean.n} of {row.test.n} seeds)" if mean and row.test and mean.n < row.test.n else ""
        return numbers.mean(mean) + few

    return Column(f"{flat(split)} {metric}", text, 6, value=lambda row: _mean(row.probes.get(split)))


def _difference(table: Table, row: Row, found: Mapping[str, Finding]) -> str:
    if row.name == table.baseline:
        return "baseline" if row.test else ""
    if verdict := found[row.name].verdict:
        return numbers.between(verdict)
    return numbers.signed(row.difference.mean) if row.difference else ""


def _p(finding: Finding | None) -> float | None:
    return finding.verdict.p_holm if finding and finding.verdict else None


def _mean(value: Mean | None) -> float | None:
    return value and value.mean


def _phrase(finding: Finding | None) -> str:
    return finding.phrase if finding else ""


def _best(best: Mapping[str, list[str]], row: Row) -> str:
    return ", ".join(COSTS[cost][0] for cost, names in best.items() if row.name in names)


def status(row: Row) -> str:
    """How many of a row's runs ended in which way."""
    if row.reference and row.status == "done":
        return "reference"
    runs = len(row.runs)
    return f"{runs}/{runs} {row.status}" if runs > 1 and len(row.outcomes) == 1 else flat(row.status)


def differs(values: Mapping[str, Any]) -> str:
    """Choices as in YAML without its quotes: `slot: name (option: value), slot: [name, name]`."""
    return ", ".join(f"{path}: {spelled(value)}" for path, value in values.items())


def spelled(value: Any) -> str:
    if isinstance(value, Mapping):
        name, rest = value.get("name"), differs({k: v for k, v in value.items() if k != "name"})
        return f"{{{rest}}}" if name is None else f"{name} ({rest})" if rest else str(name)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(spelled, value))}]"
    return value if isinstance(value, str) else json_file.dumps(value)


def plain(table: Table) -> str:
    """Plain text, the reasons beside the status."""
    head, cells, align = _grid(table, str)
    body = tabulate(cells, head, "simple", disable_numparse=True, colalign=align if cells else None)
    blocks = [[title(table)], against(table), sentences(table), caption(table)]
    blocks = [*("\n".join(map(flat, lines)) for lines in blocks), body]
    blocks += [_small(each, flat, "simple") for each in small_tables(table)]
    blocks += [_sensitivity(table, flat, "simple"), "\n".join(map(flat, footnotes(table)))]
    return "\n\n".join(block for block in blocks if block) + "\n"


def markdown(table: Table) -> str:
    """GitHub's Markdown; whatever a name holds is escaped."""
    head, cells, align = _grid(table, escape)
    body = tabulate(cells, head, "pipe", disable_numparse=True, colalign=align if cells else None)
    notes = "\n".join(f"- {_prose(line)}" for line in footnotes(table))
    verdicts = "\n".join(f"- {_prose(line)}" for line in sentences(table))
    parts = [f"# {_prose(title(table))}", *_gate(table), verdicts, " ".join(map(_prose, caption(table))), body]
    parts += [f"## {_small(each, _prose, 'pipe')}" for each in small_tables(table)]
    parts += [_sensitivity(table, _prose, "pipe"), notes]
    return "\n\n".join(part for part in parts if part) + "\n"


def _gate(table: Table) -> list[str]:
    if (gate := table.gate) is None:
        return []
    changes = "\n".join(f"- {_prose(str(change))}" for change in gate.changes)
    return [f"**{_prose(gate.head)}**", changes, " ".join(map(_prose, gate.notes))]


def against(table: Table) -> list[str]:
    """How the table stands against an earlier report, if it is held against one."""
    return table.gate.lines if table.gate else []


def small_tables(table: Table) -> list[Small]:
    """What stands under the large one."""
    held = claims.small(table)
    return [*([held] if held else []), *slots(table)]


def slots(table: Table) -> list[Small]:
    """The effects of slots, each of two of them too."""
    found = effects(table)
    named = {"Each slot, averaged over the others": found.main, "Two slots together": found.interactions}
    return [Small(title, EFFECT, some) for title, some in named.items() if some]


def _small(small: Small, quote: Callable[[str], str], form: str) -> str:
    heads, align = [c.head for c in small.columns], ["right" if c.right else "left" for c in small.columns]
    cells = [[quote(column.text(row)) for column in small.columns] for row in small.rows]
    body = tabulate(cells, heads, form, disable_numparse=True, colalign=align)
    return "\n\n".join([small.title, *([" ".join(map(quote, small.lines))] if small.lines else []), body])


def _sensitivity(table: Table, quote: Callable[[str], str], form: str) -> str:
    """The scores on dev by the settings that were tried; nothing where none were."""
    head, cells = fairness.sensitivity(table)
    body = [[quote(cell) for cell in line] for line in cells]
    title = f"{'## ' if form == 'pipe' else ''}What the trials scored on dev, {flat(table.metric.name)}"
    return f"{title}\n\n{tabulate(body, [*map(quote, head)], form, disable_numparse=True)}" if cells else ""


def _prose(text: str) -> str:
    return escape(flat(text))


def escape(text: str) -> str:
    """Text that Markdown shows as it is, within a table too."""
    marks = r"[\\|*`~]|<(?=[\w/!?])|(?<![^\W_])_|_(?![^\W_])|\](?=[(\[])|&(?=#?\w+;)"
    return re.sub(marks, r"\\\g<0>", text)


def _grid(table: Table, quote: Callable[[str], str]) -> tuple[list[str], list[list[str]], list[str]]:
    chosen = columns(table)
    cells = [[quote(column.text(row)) for column in chosen] for row in table.rows]
    for line, row in zip(cells, table.rows, strict=True):
        if row.reason:
            line[-1] += f": {quote(short(row.reason))}"
    return [quote(column.head) for column in chosen], cells, ["right" if c.right else "left" for c in chosen]


def csv(table: Table) -> str:
    """Numbers in full; a text that a spreadsheet would take for a formula has an apostrophe before it."""
    buffer = io.StringIO()
    writer = csv_file.writer(buffer, lineterminator="\n")
    found = findings(table)
    became = {each.name: each.kind for each in table.gate.changes} if table.gate else {}
    earlier = {row.name: {"earlier": became[row.name]} if became else {} for row in table.rows}
    records = [_record(row, found.get(row.name), table.probes) | earlier[row.name] for row in table.rows]
    writer.writerow([*_record(Row("", {}, (), ""), None, table.probes), *(["earlier"] if became else [])])
    writer.writerows([[_safe(value) for value in record.values()] for record in records])
    return buffer.getvalue()


def _record(row: Row, finding: Finding | None, probes: Sequence[str]) -> dict[str, Any]:
    requested, effective = row.kernel
    verdict = finding and finding.verdict
    means = {"test": row.test, "dev": row.dev, "test_loss": row.loss}
    means |= {f"probe_{probe}": row.probes.get(probe) for probe in probes} | {"difference": row.difference}
    return {
        "variant": row.name,
        "differs": differs(row.differs),
        "parameters": row.parameters,
        "flops_per_token": row.flops_per_token,
        **{f"{name}_{part}": getattr(mean, part, None) for name, mean in means.items() for part in ("mean", "sd", "n")},
        **{f"difference_{part}": getattr(verdict, part, None) for part in ("low", "high")},
        **{part: getattr(verdict, part, None) for part in FIGURES},
        "verdict": finding and finding.phrase,
        "pairs_lost": finding and finding.lost,
        "epochs": row.epochs,
        "tokens_per_second": row.tokens_per_second,
        "train_seconds": row.train_seconds,
        "decode_tokens_per_second": row.decode_tokens_per_second,
        "peak_memory_bytes": row.peak_memory_bytes,
        "kv_bytes_per_token": row.kv_bytes_per_token,
        "seeds_done": row.done,
        "seeds_planned": len(row.runs),
        "status": row.status,
        "reason": row.reason,
        "reference": str(row.reference).lower(),
        "factorisation": row.factorisation,
        "kernel_requested": requested,
        "kernel_effective": " and ".join(effective),
    }


def _safe(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = flat(value)
    return f"'{text}" if text.lstrip().startswith(tuple("=+-@＝＋－＠")) else text


def json(table: Table) -> str:
    """Strict JSON: a number that is not finite is null, and texts are as they were."""
    found, best, slots = findings(table), fronts(table), effects(table)
    document = {
        "format": FORMAT,
        "name": table.name,
        "task": table.task,
        "metric": asdict(table.metric),
        "select": table.select,
        "baseline": table.baseline,
        "rule": asdict(rule(table)),
        "earlier": _earlier(table),
        "verdicts": sentences(table),
        "caption": caption(table),
        "footnotes": footnotes(table),
        "method": method(table),
        "rows": [_entry(row, found.get(row.name), best) for row in table.rows],
        "claims": claims.entries(table),
        "effects": {
            "main": [_effect(effect, table.metric.name) for effect in slots.main],
            "interactions": [_effect(effect, table.metric.name) for effect in slots.interactions],
            "why_not": slots.why_not,
        },
        "basis": baseline.document(baseline.remember(table)),
    }
    return json_file.dumps(strict(document), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _earlier(table: Table) -> dict[str, Any] | None:
    """How the table stands against an earlier report, row by row."""
    if (gate := table.gate) is None:
        return None
    rows = [{"name": each.name, "became": each.kind, "text": each.text} | (asdict(each.verdict) if each.verdict else {})
            for each in gate.changes]  # fmt: skip
    head = {"source": gate.baseline.source, "summary": gate.summary, "code": gate.code, "fail_on": gate.fail_on}
    return {**head, "threshold": gate.threshold, "notes": gate.notes, "rows": rows}


def _effect(effect: Effect, unit: str) -> dict[str, Any]:
    contrast, verdict = effect.contrast, effect.verdict
    sides = {"values": dict(contrast.values), "against": dict(contrast.against)}
    return {**sides, "settings": contrast.settings, "lost": contrast.lost, **asdict(verdict), "phrase": effect.phrase,
            "sentence": sentence(effect, unit), "differences": contrast.differences}  # fmt: skip


def _verdict(finding: Finding) -> dict[str, Any]:
    """All figures; a reference, which is not judged, has its wins."""
    counts = {key: getattr(finding, key) for key in ("phrase", "pairs", "planned", "lost", "wins")}
    verdict = finding.verdict
    return {**(asdict(verdict) | {"bound": verdict.bound} if verdict else {"word": None}), **counts}


def _entry(row: Row, finding: Finding | None, best: Mapping[str, list[str]]) -> dict[str, Any]:
    requested, effective = row.kernel
    entry = {name: value for name, value in vars(row).items() if name not in ("runs", "kernel")}
    entry = {name: asdict(value) if isinstance(value, Mean) else value for name, value in entry.items()}
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
