"""What was done so that rows can be compared: in what they were made to agree, and how their settings were chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from zoo import numbers

from ..table import CLOCKED, Row, Table

CLOSE = 0.01
"""The share by which rows may differ and still be called equal."""
CLOCK = 0.05
"""The same of wall clock: runs of one model on one machine differ by some per cent."""


def describe_fairness(table: Table) -> list[str]:
    """Sentences for the caption; none where nothing was matched, nothing tuned, and no row dropped."""
    return [*_describe_matching(table), *_describe_tuning(table), *_describe_halving(table)]


def _describe_matching(table: Table) -> list[str]:
    rows = [row for row in table.rows if row.match]
    if not rows:
        return []
    rule = rows[0].match
    if rule["what"] in CLOCKED:
        return [_describe_clock(table, rows)]
    off = {row.name: row.match["mismatch"] for row in rows}
    line = f"Matched in {rule['what']} by {rule['by']}, within {100 * max(map(abs, off.values())):.2g} %."
    return [line + _name_unequal(off, CLOSE)]


def _describe_clock(table: Table, rows: Sequence[Row]) -> str:
    """Of what was solved from steps timed beforehand, what the clock showed in the end."""
    rule, off = rows[0].match, {row.name: row.match["mismatch"] for row in rows if row.match["mismatch"] is not None}
    line = f"{rule['by'].capitalize()} were chosen for equal {rule['what']}, from steps timed before the runs"
    took = [f"{row.match['taken']:.3g} s ({row.name})" for row in rows if row.match["taken"]]
    line += f". In the runs, evaluations left out, they took {', '.join(took)}" if took else ""
    if off:
        line += f": within {100 * max(map(abs, off.values())):.2g} %, where {100 * CLOCK:g} % is put down to the clock"
    unknown = [row.name for row in rows if row.name not in off]
    line += f". Not known yet of {', '.join(unknown)}." if unknown else "."
    machines = {str(run.record["machine"]) for row in rows for run in row.runs if run.record.get("machine")}
    several = " NOT one clock: the runs are of several machines." if len(machines) > 1 else ""
    return line + _name_unequal(off, CLOCK) + several


def _name_unequal(off: Mapping[str, float], close: float) -> str:
    far = [f"{name} {format_share(value)}" for name, value in off.items() if abs(value) > close]
    return f" NOT equal: {', '.join(far)}." if far else ""


def _describe_tuning(table: Table) -> list[str]:
    trials = [trial for row in table.rows if row.tuning for trial in row.tuning["trials"]]
    if not trials:
        return []
    rows = [row for row in table.rows if row.tuning]
    each, seeds = len(rows[0].tuning["trials"]), [run["seed"] for run in trials[0]["runs"]]
    tried = f"{', '.join(trials[0]['values'])}, {each} choices for every row"
    if drawn := rows[0].tuning.get("drawn"):
        axes = ", ".join(f"{path} {_spell_axis(axis)}" for path, axis in drawn["axes"].items())
        tried = (
            f"{axes}; {drawn['trials']} trials for every row, drawn by {drawn['sampler']} of Optuna {drawn['optuna']}"
        )
        tried += f", {drawn['per_round']} at once" if drawn["per_round"] < drawn["trials"] else ""
    line = f"Tuned: {tried}, chosen on dev with seed {', '.join(map(str, seeds))}"
    lost = [trial for trial in trials if trial["status"] not in (None, "done")]
    return [f"{line}; {len(lost)} of {len(trials)} trials ended without a score." if lost else f"{line}."]


def _spell_axis(axis: Any) -> str:
    """A range or a list as it was written."""
    if not isinstance(axis, Mapping):
        return f"one of {', '.join(spell_value(value) for value in axis)}"
    scale = " on a log scale" if axis["scale"] == "log" else ""
    return f"from {spell_value(axis['from'])} to {spell_value(axis['to'])}{scale}"


def _describe_halving(table: Table) -> list[str]:
    """What successive halving is, and what it leaves unknown."""
    found = [row.halving["rounds"] for row in table.rows if row.halving]
    if not table.halving or not any(found):
        return []
    rule, many = table.halving, max(map(len, found))
    told = []
    for number in range(many):
        each = [rounds[number] for rounds in found if len(rounds) > number]
        least, most = min(one["steps"] for one in each), max(one["steps"] for one in each)
        steps = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        of = next((one["of"] for one in each if one["of"]), None)
        told.append(f"after {steps} steps {f'of {of} rows' if of else 'once all have come so far'}")
    seeds = ", ".join(map(str, rule["seeds"]))
    dropped = sum(row.dropped for row in table.rows)
    return [
        "Rows were dropped by successive halving (Jamieson and Talwalkar 2016, arXiv:1502.07943): of those beside the "
        f"baseline, the best 1/{rule['factor']} on dev went on, {', '.join(told)}. Each round is a run of its own with "
        f"seed {seeds}. This favours variants that learn fast. Verdicts are on the rows that are left, and corrected "
        f"over these alone; the {dropped} dropped are not shown to be worse."
    ]


EDGES = {
    "smallest": "is the smallest value tried",
    "largest": "is the largest value tried",
    "low": "is at the low end of its range",
    "high": "is at the high end of its range",
}


def warn_of_edges(table: Table) -> list[str]:
    """Rows whose best value is the last that was tried, or near the end of its range."""
    edges = [(row, path, way) for row in table.rows if row.tuning for path, way in row.tuning["edge"].items()]
    return [
        f"{row.name}: {path} {spell_value(row.tuning['chosen'][path])} {EDGES[way]}; a better may lie beyond."
        for row, path, way in edges
    ]


def format_share(value: float) -> str:
    return f"{100 * value:+.2g} %"


def format_mismatch(row: Row) -> str:
    off = row.match.get("mismatch")
    return "" if off is None else format_share(off)


def tabulate_trials(table: Table) -> tuple[list[str], list[list[str]]]:
    """The mean on dev of every row at every choice of values, the chosen one marked; of values that were drawn, how far
    the scores lie apart. Empty where nothing was tuned.
    """
    rows = [row for row in table.rows if row.tuning]
    if any(row.tuning.get("drawn") for row in rows):
        return ["variant", "best", "median", "worst", "trials with a score", "chosen"], [
            _summarise_drawn(table, row) for row in rows
        ]
    choices = list(dict.fromkeys(spell_values(trial["values"]) for row in rows for trial in row.tuning["trials"]))
    cells = []
    for row in rows:
        found = {spell_values(trial["values"]): _format_dev(trial, row) for trial in row.tuning["trials"]}
        cells.append([row.name, *(found.get(choice, "") for choice in choices)])
    return (["variant", *choices], cells) if rows else ([], [])


def _summarise_drawn(table: Table, row: Row) -> list[str]:
    trials = row.tuning["trials"]
    found = sorted((trial["dev"] for trial in trials if trial["dev"] is not None), key=table.metric.rank)
    scores = [numbers.score(value) for value in (found[0], median(found), found[-1])] if found else ["", "", ""]
    return [
        row.name,
        *scores,
        f"{len(found)} of {row.tuning['drawn']['trials']}",
        spell_values(row.tuning["chosen"] or {}),
    ]


def _format_dev(trial: Mapping[str, Any], row: Row) -> str:
    if trial["dev"] is None:
        return trial["status"] or "not run"
    return numbers.score(trial["dev"]) + (" (chosen)" if trial["values"] == row.tuning["chosen"] else "")


def spell_values(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{path} {spell_value(value)}" for path, value in values.items())


def spell_value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
