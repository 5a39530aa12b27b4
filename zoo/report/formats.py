"""One table in every form that it leaves in: terminal, Markdown, plain text, CSV, JSON."""

from __future__ import annotations

import csv as csv_file
import io
import json as json_file
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tabulate import tabulate

from ..runs import strict
from . import units
from .caption import caption, footnotes, title
from .table import FORMAT, Mean, Row, Table

LONGEST = 200  # characters of a reason in a table; CSV and JSON hold all of it


@dataclass(frozen=True)
class Column:
    """`priority` 1 is the last to go where there is no room; `breaks` is "commas" or "anywhere" where lines may."""

    head: str
    text: Callable[[Row], str]
    priority: int
    right: bool = True
    breaks: str = ""


def columns(table: Table) -> list[Column]:
    """The columns that say something about at least one row."""
    name = table.metric.name
    plain = all(row.status == "done" for row in table.rows)
    several = [Column("test loss", lambda row: units.mean(row.loss), 10)] if name != "loss" else []
    every = [
        Column("variant", lambda row: flat(row.name), 1, right=False, breaks="anywhere"),
        Column("what differs", lambda row: flat(differs(row.differs)), 8, right=False, breaks="commas"),
        Column("parameters", lambda row: units.count(row.parameters), 5),
        Column("FLOPs/token", lambda row: units.flops(row.flops_per_token), 9),
        Column(f"test {flat(name)}", lambda row: units.mean(row.test), 2),
        *several,
        Column("difference", lambda row: _difference(table, row), 4),
        Column("epochs", lambda row: units.epochs(row.epochs), 11),
        Column("tokens/s", lambda row: units.rate(row.tokens_per_second), 6),
        Column("peak memory", lambda row: units.size(row.peak_memory_bytes), 12),
        Column("KV/token", lambda row: units.size(row.kv_bytes_per_token), 7),
        Column("seeds", lambda row: f"{row.done}/{len(row.runs)}" if row.runs else "", 13),
        Column("status", status, 14 if plain else 3, right=False, breaks="commas"),
    ]
    return [column for column in every if any(column.text(row) for row in table.rows)]


def _difference(table: Table, row: Row) -> str:
    return "baseline" if row.name == table.baseline and row.test else units.difference(row.difference)


def status(row: Row) -> str:
    return "reference" if row.reference and row.status == "done" else flat(row.status)


def differs(values: Mapping[str, Any]) -> str:
    """Choices as in YAML without its quotes: `slot: name (option: value), slot: [name, name]`."""
    return ", ".join(f"{path}: {_value(value)}" for path, value in values.items())


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        name, rest = value.get("name"), differs({k: v for k, v in value.items() if k != "name"})
        return f"{{{rest}}}" if name is None else f"{name} ({rest})" if rest else str(name)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return value if isinstance(value, str) else json_file.dumps(value)


def flat(text: str) -> str:
    """The text on one line, without control characters."""
    text = re.sub(r"\s*[\r\n\v\f\x85\u2028\u2029]\s*", " ", str(text).strip("\r\n"))
    return re.sub(r"[\x00-\x1f\x7f-\x9f]", "", text.replace("\t", " "))


def short(text: str) -> str:
    text = flat(text)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def plain(table: Table) -> str:
    """Plain text, the reasons beside the status."""
    head, cells, align = _grid(table, str)
    body = tabulate(cells, head, "simple", disable_numparse=True, colalign=align if cells else None)
    lines = [flat(title(table)), "", *map(flat, caption(table)), "", body, "", *map(flat, footnotes(table))]
    return "\n".join(lines).rstrip() + "\n"


def markdown(table: Table) -> str:
    """GitHub's Markdown; whatever a name holds is escaped."""
    head, cells, align = _grid(table, escape)
    body = tabulate(cells, head, "pipe", disable_numparse=True, colalign=align if cells else None)
    notes = "\n".join(f"- {_prose(line)}" for line in footnotes(table))
    parts = [f"# {_prose(title(table))}", " ".join(map(_prose, caption(table))), body, notes]
    return "\n\n".join(part for part in parts if part) + "\n"


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
    writer.writerow(_record(Row("", {}, (), "")))
    writer.writerows([[_safe(value) for value in _record(row).values()] for row in table.rows])
    return buffer.getvalue()


def _record(row: Row) -> dict[str, Any]:
    requested, effective = row.kernel
    means = {"test": row.test, "dev": row.dev, "test_loss": row.loss, "difference": row.difference}
    return {
        "variant": row.name,
        "differs": differs(row.differs),
        "parameters": row.parameters,
        "flops_per_token": row.flops_per_token,
        **{f"{name}_{part}": getattr(mean, part, None) for name, mean in means.items() for part in ("mean", "sd", "n")},
        "epochs": row.epochs,
        "tokens_per_second": row.tokens_per_second,
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
    document = {
        "format": FORMAT,
        "name": table.name,
        "task": table.task,
        "metric": asdict(table.metric),
        "select": table.select,
        "baseline": table.baseline,
        "caption": caption(table),
        "footnotes": footnotes(table),
        "rows": [_entry(row) for row in table.rows],
    }
    return json_file.dumps(strict(document), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _entry(row: Row) -> dict[str, Any]:
    requested, effective = row.kernel
    entry = {name: value for name, value in vars(row).items() if name not in ("runs", "kernel")}
    entry = {name: asdict(value) if isinstance(value, Mean) else value for name, value in entry.items()}
    parts = (part for run in row.runs for part in run.record.get("provenance") or ())
    return entry | {
        "seeds": {"done": row.done, "planned": len(row.runs)},
        "kernel": {"requested": requested, "effective": effective},
        "provenance": list({(part.get("slot"), part.get("name")): part for part in parts}.values()),
        "runs": [{k: getattr(run, k) for k in ("seed", "id", "status", "reason", "dev", "test")} for run in row.runs],
    }
