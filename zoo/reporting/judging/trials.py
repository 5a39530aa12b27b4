"""What trials scored on dev at each value of a setting, as it is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..table import Row, Table


@dataclass(frozen=True)
class TrialLine:
    """One row's best score at each value of one setting, whatever the others were, and the value that was chosen.

    At an `edge` it is the least or the largest that was tried. At `lost` values no trial has a score. Scores are
    `joined` to a line unless the other settings were drawn anew at each value.
    """

    row: Row
    best: Mapping[float, float]
    chosen: float | None
    edge: bool
    lost: tuple[float, ...]
    joined: bool


def collect_trials(table: Table) -> dict[str, list[TrialLine]]:
    """By setting, the rows that have scores; one of which a single value has scores says nothing and is not there."""
    tuned = [row for row in table.rows if row.tuning.get("trials")]
    settings = dict.fromkeys(path for row in tuned for trial in row.tuning["trials"] for path in trial["values"])
    every = {name: [line for row in tuned if (line := _make_trial_line(table, row, name)).best] for name in settings}
    return {name: lines for name, lines in every.items() if len({v for line in lines for v in line.best}) > 1}


def _make_trial_line(table: Table, row: Row, name: str) -> TrialLine:
    found: dict[float, list[float]] = {}
    trials = [trial for trial in row.tuning["trials"] if isinstance(trial["values"].get(name), int | float)]
    for trial in trials:
        scores = found.setdefault(trial["values"][name], [])
        scores += [trial["dev"]] if trial.get("dev") is not None else []
    best = {value: min(scores, key=table.metric.rank) for value, scores in sorted(found.items()) if scores}
    chosen = (row.tuning.get("chosen") or {}).get(name)
    lost = tuple(sorted(found.keys() - best.keys())) if all(trial.get("status") for trial in trials) else ()
    joined = not row.tuning.get("drawn") or len(trials[0]["values"]) == 1 if trials else False
    return TrialLine(row, best, chosen, name in row.tuning.get("edge", ()), lost, joined)
