"""The table as a spreadsheet reads it: numbers in full, a line for each row."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from ..judging.gate import Gate
from ..judging.verdict import Finding, findings
from ..table import Row, Table
from ..text import one_line, spell_choices

FIGURES = ("p", "p_holm", "improvement", "detectable", "more")


def to_csv(table: Table, gate: Gate | None = None) -> str:
    """Numbers in full; a text that a spreadsheet would take for a formula has an apostrophe before it."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    found = findings(table)
    became = {each.name: each.kind for each in gate.changes} if gate else {}
    earlier = {row.name: {"earlier": became[row.name]} if became else {} for row in table.rows}
    records = [_record(row, found.get(row.name), table.probes) | earlier[row.name] for row in table.rows]
    writer.writerow([*_record(Row("", {}, (), ""), None, table.probes), *(["earlier"] if became else [])])
    writer.writerows([[_safe(value) for value in record.values()] for record in records])
    return buffer.getvalue()


def to_records(table: Table) -> list[dict[str, Any]]:
    """A mapping per row with the columns of the CSV; numbers and texts are as they were."""
    found = findings(table)
    return [_record(row, found.get(row.name), table.probes) for row in table.rows]


def _record(row: Row, finding: Finding | None, probes: Sequence[str]) -> dict[str, Any]:
    requested, effective = row.kernel
    verdict = finding and finding.verdict
    means = {"test": row.test, "dev": row.dev, "test_loss": row.loss}
    means |= {f"probe_{probe}": row.probes.get(probe) for probe in probes} | {"difference": row.difference}
    return {
        "variant": row.name,
        "differs": spell_choices(row.differs),
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
    text = one_line(value)
    return f"'{text}" if text.lstrip().startswith(tuple("=+-@＝＋－＠")) else text
