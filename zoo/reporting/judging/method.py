"""How a table came about: what was set, on which text, by which parts, on which machine, and how to do it again."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from ..table import Run, Table
from . import speed

PARTS = ("model", "shape", "task", "train", "reference")
"""What a run can be told, in the order in which it is printed."""


def collect_method(table: Table) -> dict[str, Any]:
    """Facts from the records. `settings` are those of the baseline; what a row has instead stands in its `differs`."""
    runs = [run for row in table.rows for run in row.runs]
    return {
        "file": table.file,
        "sets": list(table.sets),
        "seeds": sorted({run.seed for row in table.rows if not row.reference for run in row.runs}),
        "settings": collect_settings(table),
        "text": drop_repeats(_describe_text(run) for run in runs if run.fact("data", "sha256")),
        "machines": drop_repeats(run.record["machine"] for run in runs if run.record.get("machine")),
        "devices": drop_repeats(run.fact("train", "device") for run in runs if run.fact("train", "device")),
        "decode": speed.collect_decode(table),
        "versions": drop_repeats(run.record["versions"] for run in runs if run.record.get("versions")),
        "plugins": collect_plugins(runs),
        "commands": list_commands(table),
    }


def collect_settings(table: Table) -> dict[str, dict[str, Any]]:
    """By part, every setting of the baseline with its dotted path; a seed is none."""
    rows = [row for row in (table.base, *table.rows) if row]
    spec: Mapping[str, Any] = next(
        (run.record["spec"] for row in rows for run in row.runs if run.record.get("spec")), {}
    )
    return {part: dict(list_paths(spec[part])) for part in PARTS if spec.get(part) is not None}


def list_paths(value: Any, path: str = "") -> Iterable[tuple[str, Any]]:
    """The leaves of nested mappings; a part's own name stands at its path."""
    if not isinstance(value, Mapping):
        yield path or "name", value
        return
    for key, inside in value.items():
        yield from list_paths(inside, path if key == "name" and path else f"{path}.{key}".lstrip("."))


def collect_plugins(runs: Iterable[Run]) -> list[dict[str, Any]]:
    """What the parts came from, with its version, and which parts."""
    out: dict[tuple, dict[str, Any]] = {}
    for part in (part for run in runs for part in run.record.get("provenance") or ()):
        told = {key: part.get(key) for key in ("plugin", "distribution", "version", "source")}
        held = out.setdefault(tuple(told.values()), told | {"parts": []})["parts"]
        if (name := f"{part.get('slot')}: {part.get('name')}") not in held:
            held.append(name)
    return [plugin | {"parts": sorted(plugin["parts"])} for plugin in out.values()]


def list_commands(table: Table) -> list[str]:
    """What a shell takes to install the same versions, run the same, and draw the same."""
    versions = [run.record["versions"] for row in table.rows for run in row.runs if run.record.get("versions")]
    found: Mapping[str, str] = next(iter(versions), {})
    wanted = " ".join(f"{name}=={version.partition('+')[0]}" for name, version in found.items() if name != "python")
    out = [f"pip install {wanted}"] if wanted else []
    if table.file:
        sets = "".join(f" --set {shlex.quote(each)}" for each in table.sets)
        out.append(f"zoo run {shlex.quote(table.file)} {shlex.quote(table.name)}{sets}")
    return [*out, f"zoo report {shlex.quote(table.name)}"]


def drop_repeats(values: Iterable[Any]) -> list[Any]:
    """Each value once."""
    out: list[Any] = []
    for value in values:
        if value not in out:
            out.append(value)
    return out


def _describe_text(run: Run) -> dict[str, Any]:
    return {key: run.fact("data", key) for key in ("sha256", "train_tokens", "vocab_size", "notes")}
