"""An earlier report as far as a later one is compared to it: scores by seed, and what must be the same for that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from zoo.faults import SpecError
from zoo.files import write_json
from zoo.record import FORMAT, PastRow, Unreadable, plain, read_baseline

from ..table import Metric, Row, Table


@dataclass(frozen=True)
class Past:
    """A row of an earlier report. `ended` has the outcome of each seed that has no score; `data` is the hash of its
    text, "" where the task makes its own, None where no run came so far; `settings` go by their path."""

    scores: Mapping[int, float]
    ended: Mapping[int, str] = field(default_factory=dict)
    reference: bool = False
    data: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Baseline:
    """An earlier report; `source` says where it lies."""

    name: str
    task: str
    metric: Metric
    rows: Mapping[str, Past]
    source: str = ""


def make_baseline(table: Table) -> Baseline:
    """What a later report needs of `table`. Rows that were refused have no part in it."""
    rows = {row.name: make_past(row, table.metric) for row in table.rows if row.runs}
    return Baseline(table.name, table.task, table.metric, rows)


def make_past(row: Row, metric: Metric) -> Past:
    scores = row.scores(metric)
    ended = {run.seed: run.outcome for run in row.runs if run.seed not in scores}
    hashes = sorted({sha for run in row.runs if (sha := run.fact("data", "sha256")) is not None})
    record = next((run.record for run in row.runs if run.record.get("spec")), {})
    spec = {name: value for name, value in record.get("spec", {}).items() if name != "seed"}
    settings = flatten({**spec, "versions": record.get("versions") or {}})
    return Past(scores, ended, row.reference, " ".join(hashes) if hashes else None, settings)


def flatten(values: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Nested mappings as one, by dotted path."""
    out: dict[str, Any] = {}
    for name, value in values.items():
        out |= flatten(value, f"{path}{name}.") if isinstance(value, Mapping) else {f"{path}{name}": value}
    return out


def to_document(baseline: Baseline) -> dict[str, Any]:
    """For a file whose versions differ little: everything is sorted, and what all rows share stands once."""
    rows = {name: baseline.rows[name] for name in sorted(baseline.rows)}
    shared = _find_shared([row.settings for row in rows.values()])
    entries = {}
    for name, row in rows.items():
        own = {path: value for path, value in sorted(row.settings.items()) if path not in shared}
        scores, ended = ({str(seed): of[seed] for seed in sorted(of)} for of in (row.scores, row.ended))
        entries[name] = {"scores": scores, "ended": ended, "reference": row.reference, "data": row.data} | {
            "settings": own
        }
    head = {"format": FORMAT, "name": baseline.name, "task": baseline.task, "metric": asdict(baseline.metric)}
    return {**head, "settings": shared, "rows": entries}


def _find_shared(settings: list[Mapping[str, Any]]) -> dict[str, Any]:
    if not settings:
        return {}
    first, *others = settings
    same = (path for path in first if all(path in other and other[path] == first[path] for other in others))
    return {path: first[path] for path in sorted(same)}


def save_baseline(table: Table, path: Path) -> None:
    """Write the file that `zoo baseline update` makes. Raises `SpecError` if there is no score to keep."""
    if not any(row.test for row in table.rows):
        raise SpecError(f"{table.name} has no score yet, so there is nothing to keep")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, to_document(make_baseline(table)))


def find_baseline(path: Path, name: str) -> Path:
    """The file under `path` that holds comparison `name`. Raises `SpecError` if there is none."""
    if not path.is_dir():
        return path
    places = [path / name / "report.json", path / f"{name}.json", path / "report.json"]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        looked = ", ".join(str(place.relative_to(path)) for place in places)
        raise SpecError(f"{path} holds no earlier report of '{name}' (looked for {looked})")
    return found


def load_baseline(path: Path) -> Baseline:
    """Of a `report.json`, or of a file of `zoo baseline update`. Raises `SpecError`."""
    try:
        found = read_baseline(path)
    except Unreadable as error:
        raise SpecError(f"{path} is no report to compare to: {error.why}") from error
    rows = {name: _read_past(row, found.settings) for name, row in found.rows.items()}
    return Baseline(found.name, found.task, Metric(**plain(found.metric)), rows, str(path))


def _read_past(row: PastRow, shared: Mapping[str, Any]) -> Past:
    return Past(row.scores, row.ended, row.reference, row.data, {**shared, **row.settings})
