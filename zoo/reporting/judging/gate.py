"""This report compared to an earlier one: what got worse, row by row, and the exit code that says so.

`docs/ci.md` says what the words mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from zoo import numbers
from zoo.faults import Fault, SpecError

from ..table import Metric, Row, Table
from .baseline import Baseline, Past, find_baseline, load_baseline, make_baseline
from .verdict import SHARE, UNFINISHED, phrase

if TYPE_CHECKING:
    from zoo.statistics import Verdict

FAIL_ON = ("regression", "unclear", "never")
KINDS = ("regression", "failed", "cannot tell", "gone", "no regression", "new")
"""What can have become of a row, the worst first."""

DIVERGED = "diverged"
ENDED = ("done", DIVERGED)
"""Outcomes that running again would not change; any other leaves the table incomplete."""


@dataclass(frozen=True)
class Change:
    """What became of one row; `amount` is how much worse its mean is, in the metric's unit."""

    name: str
    kind: str
    text: str
    amount: float = 0.0
    verdict: Verdict | None = None

    def __str__(self) -> str:
        return f"{self.name}: {self.text}."


@dataclass(frozen=True)
class Gate:
    """All rows compared to `baseline`, the worst first. `notes` are sentences on how, and on what was not the same."""

    baseline: Baseline
    fail_on: str
    threshold: float
    changes: tuple[Change, ...]
    notes: tuple[str, ...]

    def fails(self, change: Change) -> bool:
        """Whether the row is bad news under `fail_on`; "never" speaks of the exit code alone."""
        unclear = self.fail_on == "unclear" and change.kind in ("cannot tell", "gone")
        return change.kind in ("regression", "failed") or unclear

    @property
    def code(self) -> int:
        """The exit code: 1 for a regression, else 3 for a run that failed or is missing, else 0."""
        bad = {change.kind for change in self.changes if self.fails(change)}
        return 0 if self.fail_on == "never" or not bad else 3 if bad == {"failed"} else 1

    @property
    def summary(self) -> str:
        """In a few words, the worst first."""
        names = {"regression": ("regression", "regressions"), "failed": ("row failed", "rows failed"),
                 "cannot tell": ("row cannot tell", "rows cannot tell"), "gone": ("row gone", "rows gone")}  # fmt: skip
        counts = {kind: sum(change.kind == kind for change in self.changes) for kind in names}
        said = [f"{n} {names[kind][n > 1]}" for kind, n in counts.items() if n]
        return ", ".join(said if counts["regression"] else ["no regression", *said])

    @property
    def head(self) -> str:
        return f"Compared to {self.baseline.source}: {self.summary}."

    @property
    def lines(self) -> list[str]:
        """All there is to say, in sentences."""
        return [self.head, *map(str, self.changes), *self.notes]


@dataclass(frozen=True)
class Against:
    """What was asked for: where the earlier reports lie, when to fail, and the threshold in the metric's unit."""

    path: Path
    fail_on: str = "regression"
    threshold: float | None = None

    def names(self, names: Iterable[str], known: Iterable[str]) -> list[str]:
        """The comparisons to report: those named, or all that the earlier report is of."""
        names = list(names)
        if self.path.is_dir():
            return names or list(known)
        if len(names) > 1:
            raise SpecError(f"{self.path} holds one comparison, and not {len(names)}; name a directory")
        return names or [load_baseline(self.path).name]


def compare_all(tables: Mapping[str, Table], against: Against, out: Path) -> dict[str, Gate]:
    """The gate of every table of `out`. Raises `SpecError` with the faults of all."""
    found: dict[str, Gate] = {}
    faults: list[Fault] = []
    for name, table in tables.items():
        try:
            place = find_baseline(against.path, name)
            if place.resolve() == (out / name / "report.json").resolve():
                raise SpecError(f"{place} is this comparison's own report; 'zoo baseline update' keeps one")
            found[name] = compare(table, load_baseline(place), against.fail_on, against.threshold)
        except SpecError as error:
            faults += error.faults
    if faults:
        raise SpecError(faults)
    return found


def compare(table: Table, baseline: Baseline, fail_on: str = "regression", threshold: float | None = None) -> Gate:
    """Every row of `table` less the row of its name in `baseline`, paired by seed."""
    now = make_baseline(table)
    if faults := list(explain_incomparable(now, baseline)):
        raise SpecError([Fault(text, where=baseline.source) for text in faults])
    threshold, how = _choose_threshold(table, baseline) if threshold is None else (threshold, "as given")
    verdicts = _judge_rows(table, baseline, threshold)
    changes = [_judge_change(table, row, baseline.rows.get(row.name), verdicts.get(row.name), threshold)
               for row in table.rows]  # fmt: skip
    gone = sorted(set(baseline.rows) - {row.name for row in table.rows})
    changes += [Change(name, "gone", "was there, and is not in this comparison") for name in gone]
    changes.sort(key=lambda change: (KINDS.index(change.kind), -change.amount))
    notes = [
        _describe_method(table, threshold, how, len(verdicts)),
        *_warn_of_power(table, verdicts),
        *_name_differences(now, baseline),
    ]
    return Gate(baseline, fail_on, threshold, tuple(changes), tuple(notes))


def is_unfinished(row: Row) -> bool:
    """Whether a run of the row failed or is missing."""
    return any(outcome not in ENDED for outcome in row.outcomes)


def explain_incomparable(now: Baseline, then: Baseline) -> Iterator[str]:
    """Why the two cannot be compared: another task, metric or text."""
    if now.task != then.task:
        yield f"the task was {then.task} and is {now.task}"
    if now.metric != then.metric:
        yield f"the metric was {_describe_metric(then.metric)} and is {_describe_metric(now.metric)}"
    rows = {name: (now.rows[name], then.rows[name]) for name in now.rows if name in then.rows}
    if not rows:
        yield f"no row of this comparison is in it; it has {', '.join(sorted(then.rows)) or 'none'}"
    found: dict[str, list[str]] = {}
    for name, (new, old) in rows.items():
        for reason in _explain_other(new, old):
            found.setdefault(reason, []).append(name)
    yield from (f"{', '.join(names)}: {reason}" for reason, names in found.items())


def _explain_other(new: Past, old: Past) -> Iterator[str]:
    if new.scores and old.scores and new.reference != old.reference:
        was, now = ("a reference", "trained") if old.reference else ("trained", "a reference")
        yield f"it was {was} and is {now}"
    if None in (new.data, old.data):
        return
    if new.data != old.data:
        yield f"the data had sha256 {_shorten_hashes(old.data or '')} and has {_shorten_hashes(new.data or '')}"
    # where files lie does not matter if what they hold is the same
    passed = ("task.data", "task.data.") if new.data == old.data and new.data else ()
    for path, (was, now) in _find_unlike(new.settings, old.settings).items():
        if path.startswith("task.") and not (passed and (path == passed[0] or path.startswith(passed[1]))):
            yield f"{path} was {was} and is {now}"


def _shorten_hashes(text: str) -> str:
    return " ".join(sha[:12] for sha in text.split()) or "none"


def _describe_metric(metric: Metric) -> str:
    return f"{metric.name} ({metric.unit + ', ' if metric.unit else ''}{metric.better} is better)"


def _find_unlike(new: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Settings that are not the same, as they were and are."""
    paths = sorted(path for path in {*new, *old} if path not in new or path not in old or new[path] != old[path])
    was, now = ({path: _spell_setting(of[path]) if path in of else "not there" for path in paths} for of in (old, new))
    return {path: (was[path], now[path]) for path in paths}


def _spell_setting(value: Any) -> str:
    return "none" if value is None else str(value)


def _choose_threshold(table: Table, baseline: Baseline) -> tuple[float, str]:
    """The comparison's own margin, or a share of what its baseline scored, or of the mean of all rows without one."""
    if table.margin is not None:
        return table.margin, "the comparison's margin"
    base = baseline.rows.get(table.baseline or "")
    rows = [base] if base and base.scores else [row for row in baseline.rows.values() if row.scores]
    means = [fmean(row.scores.values()) for row in rows]
    whose = f"{table.baseline}'s earlier score" if base and base.scores else "the earlier mean over rows"
    return SHARE * abs(fmean(means)) if means else 0.0, f"{100 * SHARE:g} % of {whose}"


def _judge_rows(table: Table, baseline: Baseline, threshold: float) -> dict[str, Verdict]:
    """On each trained row with a seed that has a score on both sides, corrected over all of them."""
    from zoo.statistics import judge

    pairs = {row.name: _pair_scores(table, row, baseline.rows.get(row.name)) for row in table.rows if not row.reference}
    pairs = {name: differences for name, differences in pairs.items() if differences}
    return dict(zip(pairs, judge(list(pairs.values()), threshold, table.metric.better, table.test), strict=True))


def _pair_scores(table: Table, row: Row, past: Past | None) -> list[float]:
    """Score now less score then, seed by seed."""
    new, old = row.scores(table.metric), past.scores if past else {}
    return [new[seed] - old[seed] for seed in sorted(new) if seed in old]


def _judge_change(table: Table, row: Row, past: Past | None, verdict: Verdict | None, threshold: float) -> Change:
    found = []
    if past and (lost := [run.seed for run in row.runs if run.outcome == DIVERGED and run.seed in past.scores]):
        found.append(("regression", f"{len(lost)} of {len(past.scores)} seeds that had a score diverged"))
    refused = not row.runs and not row.dropped and past is not None and past.scores
    if refused or is_unfinished(row):
        found.append(("failed", f"{row.status}: {row.reason}".removesuffix(": None").rstrip(".")))
    amount = 0.0
    if past is None or not past.scores:
        ended = "" if row.test else f", {row.status}{f': {row.reason}' if row.reason else ''}".rstrip(".")
        found.append(("new", f"{'new' if past is None else 'no score before'}{ended}"))
    elif row.reference and (pairs := _pair_scores(table, row, past)):
        amount = table.metric.rank(pairs[0])
        found.append(_judge_reference(table, pairs[0], amount, threshold))
    elif verdict is not None:
        amount = table.metric.rank(verdict.mean)
        found.append(_judge_verdict(table, verdict, amount, threshold))
    elif not found or row.test:
        why = f"{row.status}, {row.reason}" if row.dropped else "no seed has a score on both sides"
        found.append(("cannot tell", f"cannot tell: {why}"))
    kinds = sorted((kind for kind, _ in found), key=KINDS.index)
    texts = [f"regression: {text}" if kind == "regression" else text for kind, text in found]
    return Change(row.name, kinds[0], "; ".join(texts), amount, verdict)


def _judge_reference(table: Table, difference: float, amount: float, threshold: float) -> tuple[str, str]:
    """One number that no chance is in."""
    if difference == 0:
        return "no regression", "a reference, the same as before"
    way = f"{'worse' if amount > 0 else 'better'} by {numbers.score(abs(difference))} {table.metric.name}"
    return ("regression" if amount > threshold else "no regression"), f"a reference, {way}"


def _judge_verdict(table: Table, verdict: Verdict, amount: float, threshold: float) -> tuple[str, str]:
    """What is worse for sure is a regression if its mean is beyond the threshold, and none if its interval is not."""
    unit = table.metric.name
    figures = [f"p = {numbers.chance(verdict.p_holm)}"]
    if verdict.interval:
        figures.insert(0, "95 % interval {} to {}".format(*map(numbers.signed, verdict.interval)))
    figures.append(f"{verdict.n} paired seed{'' if verdict.n == 1 else 's'}")
    if verdict.word not in ("better", "worse"):
        kind = "cannot tell" if verdict.word == "cannot tell" else "no regression"
        return kind, f"{phrase(verdict)} (difference {numbers.signed(verdict.mean)} {unit}, {', '.join(figures)})"
    by = f"{verdict.word} by {numbers.score(abs(verdict.mean))} {unit}"
    if verdict.word == "better":
        return "no regression", f"{by} ({', '.join(figures)})"
    limit = f"the threshold of {numbers.score(threshold)}"
    if amount > threshold:
        return "regression", f"{by}, beyond {limit} ({', '.join(figures)})"
    if verdict.bound is not None and verdict.bound <= threshold:
        return "no regression", f"{by}, within {limit} ({', '.join(figures)})"
    return "cannot tell", f"{by}, and cannot tell whether beyond {limit} ({', '.join(figures)})"


def _describe_method(table: Table, threshold: float, how: str, arms: int) -> str:
    test = {"sign-flip": "the exact sign-flip test", "paired-t": "a paired t-test"}[table.test]
    holm = f", after Holm's correction over {arms} rows" if arms > 1 else ""
    return (
        f"Differences are of {table.metric.name} on test ({table.metric.better} is better), this report less the "
        f"earlier one, paired by seed. A regression is p < 0.05 by {test}{holm}, a 95 % interval on the worse side of "
        f"zero, and a mean beyond the threshold of {numbers.score(threshold)} ({how}). Times are not compared."
    )


def _warn_of_power(table: Table, verdicts: Mapping[str, Verdict]) -> list[str]:
    """Rows in which no regression could be found, however large."""
    from zoo.statistics import ALPHA, fewest

    least = fewest(table.test, ALPHA / max(len(verdicts), 1))
    few = [name for name, verdict in verdicts.items() if verdict.n < least]
    if not few:
        return []
    rows = "any row" if len(few) == len(verdicts) else ", ".join(few)
    return [f"No regression can be found in {rows}, however large: it takes {least} paired seeds."]


def _name_differences(now: Baseline, then: Baseline) -> list[str]:
    """Settings and seeds that are not the same, with the rows that this holds for."""
    found: dict[str, list[str]] = {}
    shared = [name for name in now.rows if name in then.rows]
    for name in shared:
        for text in _list_unequal(now.rows[name], then.rows[name]):
            found.setdefault(text, []).append(name)
    whose = {text: "every row" if len(names) == len(shared) else ", ".join(names) for text, names in found.items()}
    joined = "; ".join(f"{text} ({rows})" for text, rows in whose.items())
    return [f"NOT the same as before: {joined}."] if joined else []


def _list_unequal(new: Past, old: Past) -> Iterator[str]:
    if new.settings and old.settings:
        for path, (was, now) in _find_unlike(new.settings, old.settings).items():
            yield f"{path} was {was}, is {now}"
    seeds = {"then": {*old.scores, *old.ended}, "now": {*new.scores, *new.ended}}
    if seeds["then"] != seeds["now"]:
        said = (f"{', '.join(map(str, sorted(seeds[when]))) or 'none'} {when}" for when in seeds)
        yield f"seeds {' and '.join(said)}"
    lost = sorted(seed for seed, outcome in old.ended.items() if outcome not in UNFINISHED and seed in new.scores)
    if lost:
        yield f"seeds {', '.join(map(str, lost))} had no score"
