"""Folders of comparisons as runs leave them, and the tables made of them."""

from __future__ import annotations

import io
import re
from pathlib import Path

from rich.console import Console

from zoo import reporting
from zoo.files import dumps
from zoo.reporting import Table

BPB = {"name": "bpb", "better": "lower", "unit": "bits per byte"}


def run(seed=0, test=None, status="done", *, loss=None, dev=None, curve=(), **parts):
    """What one run leaves behind; `parts` replaces whole parts of its record."""
    scores = {"bpb": test} | ({"loss": loss} if loss is not None else {})
    record = {
        "format": 1,
        "seed": seed,
        "status": status,
        "reason": None,
        "data": {"sha256": "3fa4b1c2" * 8, "train_tokens": 102_000, "vocab_size": 1024},
        "model": {
            "parameters": 165_504,
            "flops_per_token": 331_008,
            "kv_bytes_per_token": 1024,
            "kernel": {"requested": "auto", "effective": ["auto"]},
            "factorisation": "left to right",
        },
        "train": {"epochs": 4.94, "tokens_per_second": 31_234.5, "peak_memory_bytes": 222_404_608},
        "best": {"step": 500, "dev": {"bpb": test if dev is None else dev}},
        "metrics": {"dev": {"bpb": dev}, "test": scores},
        "provenance": [{"slot": "position", "name": "p", "distribution": "transformer-zoo", "version": "0.1.0"}],
    }
    return record | parts, curve


def folder(out: Path, rows, name="sweep", cells=(), first=0, **document):
    """A comparison's folders. `rows` maps a name to its runs, to the reason of its refusal, or to a row's entry;
    `cells` maps a name to its values on the axes; ids count rows from `first`."""
    entries = []
    for number, (row, runs) in enumerate(rows.items(), first):
        entry = {"name": row, "differs": {"position": row}, "refused": None, "runs": []}
        entry |= runs if isinstance(runs, dict) else {"refused": runs} if isinstance(runs, str) else {}
        entry |= {"cell": cells[row]} if row in cells else {}
        for seed, given in enumerate(runs if isinstance(runs, list) else ()):
            id = f"{number:08x}{seed:08x}"
            record, curve = given or ({}, ())
            entry["runs"].append({"seed": record.get("seed", seed), "id": id})
            if given:
                write(out / id / "run.json", dumps(record | {"id": id}))
                write(out / id / "metrics.jsonl", "".join(dumps(point) + "\n" for point in curve))
        entries.append(entry)
    base = {"format": 1, "name": name, "file": "zoo.yaml", "task": "language-modeling", "metric": BPB,
            "select": "best dev", "baseline": None, "rows": entries}  # fmt: skip
    write(out / name / "comparison.json", dumps(base | document))


def write(path: Path, text: str):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def table(out, rows, **document):
    folder(out, rows, **document)
    return reporting.read(out, document.get("name", "sweep"))


def markdown_rows(text: str) -> list[list[str]]:
    """The cells of a Markdown table, split as GitHub splits them: at every bar that has no backslash before it."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def shown(given: Table, width: int, gate: reporting.Gate | None = None) -> str:
    console = Console(width=width, file=io.StringIO(), color_system=None)
    console.print(reporting.Terminal(given, gate))
    return console.file.getvalue()
