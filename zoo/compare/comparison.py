"""A comparison: rows of models, shapes, tasks and training settings, each with its seeds, and the runs they make."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from zoo.claims import Claim
from zoo.declare.library import Library
from zoo.declare.reader import Reader
from zoo.declare.shape import Shape
from zoo.declare.signature import show
from zoo.declare.spec import Node, Train
from zoo.faults import Fault, SpecError, nearest

from .prepared import Prepared
from .rows import COMBINED, SIDES, Raw, describe_value, read_list, read_raw_rows
from .rules import Match, read_claims, read_judging, read_match
from .run_spec import ReferenceRun, RunSpec, TrainedRun, difference
from .tuning_rules import Halving, Tune, read_halving, read_tune

KEYS = (*SIDES, *COMBINED[1:], "rows", "seeds", "baseline", "references", "test", "margin", "match", "tune", "halving",
        "claims")  # fmt: skip


T = TypeVar("T")


@dataclass(frozen=True)
class Trial:
    """Settings that a row is tried with, and the runs that try them."""

    values: Mapping[str, Any]
    runs: tuple[TrainedRun, ...]

    @property
    def name(self) -> str:
        short = {k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in self.values.items()}
        return " ".join(f"{path.rpartition('.')[2]}={describe_value(Node(value))}" for path, value in short.items())


@dataclass(frozen=True)
class Row:
    """A line of the table: what is trained, and once per seed. `cell` is its value on every axis that is varied.

    Of a row with `trials`, these choose the settings of the runs; `tuning` is how that came out, None before. `halving`
    is how the row fared in rounds before them. While either is open, and if the row was dropped, the runs are `held`.
    `match` says how its sizes or steps were made to agree with the baseline's.
    """

    name: str
    runs: tuple[TrainedRun, ...]
    differs: Mapping[str, Any] = field(default_factory=dict)
    cell: Mapping[str, str] = field(default_factory=dict, compare=False)
    trials: tuple[Trial, ...] = ()
    tuning: Mapping[str, Any] | None = field(default=None, compare=False)
    halving: Mapping[str, Any] | None = field(default=None, compare=False)
    held: bool = field(default=False, compare=False)
    match: Mapping[str, Any] | None = field(default=None, compare=False)

    @property
    def first(self) -> TrainedRun:
        """The run of the first seed: the others have all but the seed of it."""
        return self.runs[0]

    @property
    def settled(self) -> tuple[TrainedRun, ...]:
        """The runs as far as it is known what they are."""
        return () if self.held else self.runs

    def change_runs(self, change: Callable[[TrainedRun], TrainedRun]) -> Row:
        """The row with every run changed, those of its trials too."""
        trials = tuple(dataclasses.replace(t, runs=tuple(map(change, t.runs))) for t in self.trials)
        return dataclasses.replace(self, runs=tuple(map(change, self.runs)), trials=trials)


@dataclass(frozen=True)
class ReferenceRow:
    """A line of the table that no gradient trained."""

    name: str
    first: ReferenceRun
    differs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def runs(self) -> tuple[ReferenceRun, ...]:
        return (self.first,)


@dataclass(frozen=True)
class Refusal:
    """A combination that cannot be built, and why."""

    raw: Raw
    faults: list[Fault] = field(default_factory=list)

    @property
    def reason(self) -> str:
        return "; ".join(fault.text for fault in self.faults)


@dataclass(frozen=True)
class Comparison:
    """Rows, the one that the others are compared to, and how: `docs/verdict.md` says what `test` and `margin` are.
    `refused` are the combinations of the design that cannot be built, `claims` what its runs are held against.
    """

    name: str
    rows: tuple[Row, ...]
    baseline: str
    references: tuple[ReferenceRow, ...] = ()
    refused: tuple[Refusal, ...] = field(default=(), compare=False)
    test: str = "sign-flip"
    margin: float | None = None
    match: Match | None = None
    tune: Tune | None = field(default=None, compare=False)
    halving: Halving | None = field(default=None, compare=False)
    claims: tuple[Claim, ...] = field(default=(), compare=False)

    @property
    def lines(self) -> tuple[Row | ReferenceRow, ...]:
        """All that have runs, the trained ones first."""
        return (*self.rows, *self.references)

    @property
    def base(self) -> Row | ReferenceRow:
        return next(row for row in self.lines if row.name == self.baseline)

    def replace_rows(self, rows: Iterable[Row]) -> Comparison:
        """The comparison with these trained rows, and what each line has that the baseline has not."""
        changed = dataclasses.replace(self, rows=tuple(rows))
        base = changed.base.first
        differing = [dataclasses.replace(row, differs=difference(base, row.first)) for row in changed.rows]
        bars = [dataclasses.replace(row, differs=difference(base, row.first)) for row in changed.references]
        return dataclasses.replace(changed, rows=tuple(differing), references=tuple(bars))

    def plain(self) -> dict[str, Any]:
        """As YAML holds it, with every row written out and every default filled in."""
        rows = {row.name: {side: row.first.plain()[side] for side in SIDES} for row in self.rows}
        out: dict[str, Any] = {"rows": rows, "seeds": [run.seed for run in self.rows[0].runs]}
        out |= {"baseline": self.baseline, "test": self.test}
        out |= {} if self.margin is None else {"margin": self.margin}
        out |= {key: rule.plain() for key in ("match", "tune", "halving") if (rule := getattr(self, key))}
        out |= {"claims": [claim.plain() for claim in self.claims]} if self.claims else {}
        references = [row.first.reference.plain() for row in self.references]
        return {**out, "references": references} if references else out


def read_comparison(library: Library, name: str, prepared: Prepared | None = None) -> Comparison:
    """The comparison of that name, every part resolved and every row built without weights. `prepared` keeps what is
    made on the way.

    Raises `SpecError` with all faults of the comparison.
    """
    prepared = prepared or Prepared(library)
    reader = library.reader()
    node = reader.mapping(library.find("comparisons", name), f"comparison '{name}'")
    reader.finish()
    for key in node.value:
        if key not in KEYS:
            reader.fail(node.fault(f"a comparison has no {show(key)}{nearest(key, KEYS)}", key))
    judging = read_judging(node, reader)
    match, tune, halving = read_match(node, reader), read_tune(node, reader), read_halving(node, reader)
    raw = read_raw_rows(node, library, reader)
    read = [read_row(each, judging.seeds, tune, prepared, reader) for each in raw]
    rows = [row for row in read if isinstance(row, Row)]
    baseline = node.get("baseline").value if "baseline" in node.value else None
    refused = keep_refusals(raw, read, baseline, reader)
    references = read_references(node, rows, reader)
    names = [each.name for each in raw] + [row.name for row in references]
    for twice in sorted({n for n in names if names.count(n) > 1}):
        reader.fail(node.fault(f"two rows are called '{twice}'; give them names of their own under 'rows'"))
    if baseline is not None and baseline not in names and None not in read:
        reader.fail(node.get("baseline").fault(f"no row is called {show(baseline)}{nearest(baseline, names)}"))
    check_metrics(rows, prepared, reader)
    first_runs: dict[str, RunSpec] = {row.name: row.first for row in rows}
    first_runs |= {row.name: row.first for row in references}
    metric = next((prepared.metric(run) for run in first_runs.values()), "")
    known = {each: first_runs.get(each) for each in names}
    claims = read_claims(node, known, metric, baseline or next(iter(names), None), reader)
    reader.finish()
    base = baseline if baseline in first_runs else rows[0].name
    rules = (judging.test, judging.margin, match, tune, halving, claims)
    return Comparison(name, tuple(rows), base, tuple(references), refused, *rules).replace_rows(rows)


def keep_refusals(
    raw: list[Raw], read: list[Row | Refusal | None], baseline: str | None, reader: Reader
) -> tuple[Refusal, ...]:
    """The refusals that are rows of the design: each of its values stands in another row, and nothing hangs on it.

    The faults of the others go to the reader: of a value that no row can have, of the baseline, and of a plugin's
    failure, which is no refusal.
    """
    cells = [each.cell for each, row in zip(raw, read, strict=True) if not isinstance(row, Refusal)]
    first = raw[0].name if raw and baseline is None else baseline
    kept = []
    for refusal in (row for row in read if isinstance(row, Refusal)):
        cell = refusal.raw.cell
        stands = cell and all(any(other.get(k) == v for other in cells) for k, v in cell.items())
        if refusal.raw.name == first and stands:
            text = f"; row '{first}' is the baseline of the others"
            reader.faults += [dataclasses.replace(fault, text=fault.text + text) for fault in refusal.faults]
        elif not stands or any(fault.error for fault in refusal.faults):
            reader.faults += refusal.faults
        else:
            kept.append(refusal)
    return tuple(kept)


def read_row(
    raw: Raw, seeds: Sequence[int], tune: Tune | None, prepared: Prepared, reader: Reader
) -> Row | Refusal | None:
    """One row, its model built without weights and held against its task; a refusal where that fails, and None, with
    faults, where it cannot be read.
    """
    sides, before = raw.sides, len(reader.faults)
    written = sides.get("task") or reader.default("task")
    if written is None:
        reader.fail(raw.node.fault("there is no task"))
    if "vocab_size" in sides["shape"].value:
        text = "a comparison takes vocab_size from its tokenizer; leave it out"
        reader.fail(sides["shape"].fault(text, "vocab_size"))
    model, shape = reader.sized(sides["model"], sides["shape"])
    shape = shape and dataclasses.replace(shape, vocab_size=Shape.vocab_size)
    trains = [(values, reader.train(node)) for values, node in tune.choices(sides["train"])] if tune else []
    trains = [] if tune and tune.draw else trains  # what is drawn is known later: its ends are read for their faults
    train = trains[0][1] if trains else reader.train(sides["train"])
    task = reader.part(written, "task") if written else None
    if model and model.weights and not Path(model.weights).is_file():
        reader.fail(model.node.fault(f"there is no file {model.weights}", "weights"))
    refusal = Refusal(raw)
    used = attempt(refusal, lambda: prepared.used_slots(model, shape)) if model and shape else None
    if used and shape and task:
        attempt(refusal, lambda: prepared.check_fit(used, shape, task))
    if len(reader.faults) > before:
        reader.faults += refusal.faults
        return None
    if refusal.faults:
        return refusal

    assert used and shape and task and train, "or there would be a fault"

    def make_runs(train: Train, seeds: Iterable[int]) -> tuple[TrainedRun, ...]:
        return tuple(TrainedRun(shape, task, seed, used, train) for seed in seeds)

    trials = tuple(Trial(values, make_runs(each, tune.seeds)) for values, each in trains if tune and each)
    return Row(raw.name, make_runs(train, seeds), cell=raw.cell, trials=trials)


def attempt(keeper: Reader | Refusal, check: Callable[[], T]) -> T | None:
    """What `check` returns, or None and its faults kept."""
    try:
        return check()
    except SpecError as error:
        keeper.faults.extend(error.faults)
        return None


def read_references(node: Node, rows: list[Row], reader: Reader) -> list[ReferenceRow]:
    """A row for every reference, on the task and shape of the first row."""
    out = []
    for child in read_list(node.get("references"), reader) if "references" in node.value else ():
        part = reader.part(child, "reference")
        if part is not None and rows:
            first = rows[0].first
            out.append(ReferenceRow(part.label(), ReferenceRun(first.shape, first.task, 0, part)))
    return out


def check_metrics(rows: list[Row], prepared: Prepared, reader: Reader) -> None:
    """A fault for every row whose task does not give the metric by which the first row's is ranked."""
    for row in rows[1:]:
        ranked = prepared.metric(rows[0].first)
        given = prepared.bound_task(row.first.task, row.first.shape).metrics
        if ranked not in given:
            text = f"row '{row.name}' has no {ranked}, which ranks '{rows[0].name}'; it has {', '.join(given)}"
            reader.fail(row.first.task.fault(text))


def warnings(comparison: Comparison) -> list[str]:
    """What is allowed and known to go wrong."""
    out = []
    seeds = {run.seed for row in comparison.rows for run in row.runs}
    for rule, what, who in ((comparison.tune, "settings", "trials"), (comparison.halving, "rows", "rounds")):
        if shared := ", ".join(map(str, sorted(seeds & set(rule.seeds if rule else ())))):
            out.append(f"seed {shared} chooses {what} and is scored with them; let {who} have others")
    for row in comparison.rows:
        model, layers = row.first.model, row.first.shape.n_layers
        for part in () if row.first.train.warmup else model.slots["residual"].parts():
            if getattr(part.target, "needs_warmup", False):
                out.append(f"row '{row.name}': residual '{part.name}' needs a warm-up, and train.warmup is 0")
        for part in model.beyond(layers) if model.shape else ():
            out.append(f"row '{row.name}': {part.slot} '{part.label()}' is in none of its {layers} layers")
    return list(dict.fromkeys(out))
