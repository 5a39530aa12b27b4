"""A comparison: rows of models, shapes, tasks and training settings, each with its seeds, and the runs they make."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from zoo.claims import Claim
from zoo.declare.library import Library
from zoo.declare.reader import Reader
from zoo.declare.shape import IDS, Shape
from zoo.declare.signature import show
from zoo.declare.spec import ModelSpec, Node, PartSpec, Train
from zoo.faults import Fault, SpecError, nearest
from zoo.model.builder import bind_task, fit, make, trimmed
from zoo.model.weights import begin, digest

from .rows import COMBINED, SIDES, Raw, label, listed, raw_rows
from .rules import Match, read_claims, read_match, read_rule, read_seeds
from .tuning_rules import Halving, Tune, read_halving, read_tune

KEYS = (*SIDES, *COMBINED[1:], "rows", "seeds", "baseline", "references", "test", "margin", "match", "tune", "halving",
        "claims")  # fmt: skip


@dataclass(frozen=True)
class RunSpec:
    """One model trained with one seed, or (`model` None) a reference row, fully resolved.

    `text` is the sha256 of what the task reads, once that is known: another text makes another run.
    """

    model: ModelSpec | None
    shape: Shape
    task: PartSpec
    train: Train | None
    seed: int
    reference: PartSpec | None = None
    text: str = ""

    def plain(self) -> dict:
        """As JSON holds it; `read_run` reads it back."""
        shape = {k: v for k, v in dataclasses.asdict(self.shape).items() if k != "vocab_size"}
        out = {"shape": shape, "task": self.task.plain(), "seed": self.seed}
        if self.reference is not None:
            return {"reference": self.reference.plain(), **out}
        return {"model": self.model.plain(), **out, "train": self.train.plain()}

    def parts(self) -> Iterator[PartSpec]:
        owners = [self.reference] if self.reference else [self.train.optimizer, self.train.schedule]
        yield from (p for owner in (self.task, *owners) for p in owner.parts())
        if self.model is not None:
            yield from self.model.parts()

    def provenance(self) -> list[dict]:
        """Slot, name and origin of every part in use, each once."""
        found = {(p.slot, p.name): p.entry for p in self.parts()}
        return [
            {"slot": slot, "name": name, "plugin": e.plugin, "distribution": e.distribution, "version": e.version,
             "source": e.source}
            for (slot, name), e in sorted(found.items())
        ]  # fmt: skip

    def id(self) -> str:
        """Names the run's folder: a hash of all that decides its result."""
        origin = sorted({(e["plugin"], e["distribution"], e["version"]) for e in self.provenance()}, key=str)
        spec = by_content(self.plain(), self.files())
        text = json.dumps([spec, origin, self.text], sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def files(self) -> dict[str, str]:
        """The files that the run reads beside its data, and the sha256 of each."""
        paths = [path for part in self.parts() for path in part.files()]
        paths += [self.model.weights] if self.model and self.model.weights else []
        return {path: digest(path) for path in paths}

    def make_task(self):
        """The task, nothing read yet."""
        return bind_task(self.task, self.shape)

    def sized(self, task) -> Shape:
        """The shape with the vocabulary of a prepared task. Raises `SpecError` for reserved ids that lie outside it."""
        outside = [name for name in IDS if getattr(self.shape, name) >= task.vocab_size]
        if outside:
            named = ", ".join(f"{name} {getattr(self.shape, name)}" for name in outside)
            raise SpecError(f"the shape reserves {named}, and the tokenizer of this task has {task.vocab_size} tokens")
        return dataclasses.replace(self.shape, vocab_size=task.vocab_size)

    def make_model(self, task, registry=None):
        """The model with its initial weights, for a prepared task: those of its file, and drawn ones for the rest."""
        model = make(self.model, self.sized(task), seed=self.seed, registry=registry)
        if self.model.weights:
            begin(model, self.model.weights)
        return model


@dataclass(frozen=True)
class Trial:
    """Settings that a row is tried with, and the runs that try them."""

    values: Mapping[str, Any]
    runs: tuple[RunSpec, ...]

    @property
    def name(self) -> str:
        short = {k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in self.values.items()}
        return " ".join(f"{path.rpartition('.')[2]}={label(Node(value))}" for path, value in short.items())


@dataclass(frozen=True)
class Row:
    """A line of the table: what is trained, and once per seed. `cell` is its value on every axis that is varied.

    Of a row with `trials`, these choose the settings of the runs; `tuning` is how that came out, None before. `halving`
    is how the row fared in rounds before them. While either is open, and if the row was dropped, the runs are `held`.
    `match` says how its sizes or steps were made to agree with the baseline's.
    """

    name: str
    runs: tuple[RunSpec, ...]
    differs: Mapping[str, Any] = field(default_factory=dict)
    cell: Mapping[str, str] = field(default_factory=dict, compare=False)
    trials: tuple[Trial, ...] = ()
    tuning: Mapping[str, Any] | None = field(default=None, compare=False)
    halving: Mapping[str, Any] | None = field(default=None, compare=False)
    held: bool = field(default=False, compare=False)
    match: Mapping[str, Any] | None = field(default=None, compare=False)

    @property
    def settled(self) -> tuple[RunSpec, ...]:
        """The runs as far as it is known what they are."""
        return () if self.held else self.runs

    def each(self, change: Callable[[RunSpec], RunSpec]) -> Row:
        """The row with every run changed, those of its trials too."""
        trials = tuple(dataclasses.replace(t, runs=tuple(map(change, t.runs))) for t in self.trials)
        return dataclasses.replace(self, runs=tuple(map(change, self.runs)), trials=trials)


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
    refused: tuple[Refusal, ...] = field(default=(), compare=False)
    test: str = "sign-flip"
    margin: float | None = None
    match: Match | None = None
    tune: Tune | None = field(default=None, compare=False)
    halving: Halving | None = field(default=None, compare=False)
    claims: tuple[Claim, ...] = field(default=(), compare=False)

    @property
    def base(self) -> Row:
        return next(row for row in self.rows if row.name == self.baseline)

    def told_apart(self, rows: Iterable[Row]) -> Comparison:
        """The comparison with these rows, and what each of them has that the baseline has not."""
        rows = tuple(rows)
        base = next(row for row in rows if row.name == self.baseline).runs[0]
        rows = tuple(dataclasses.replace(row, differs=difference(base, row.runs[0])) for row in rows)
        return dataclasses.replace(self, rows=rows)

    def plain(self) -> dict:
        """As YAML holds it, with every row written out and every default filled in."""
        trained = [row for row in self.rows if row.runs[0].model is not None]
        rows = {row.name: {side: row.runs[0].plain()[side] for side in SIDES} for row in trained}
        out = {"rows": rows, "seeds": [run.seed for run in trained[0].runs], "baseline": self.baseline}
        out |= {"test": self.test} | ({} if self.margin is None else {"margin": self.margin})
        out |= {key: rule.plain() for key in ("match", "tune", "halving") if (rule := getattr(self, key))}
        out |= {"claims": [claim.plain() for claim in self.claims]} if self.claims else {}
        references = [run.reference.plain() for row in self.rows for run in row.runs if run.reference is not None]
        return {**out, "references": references} if references else out


def read_comparison(library: Library, name: str) -> Comparison:
    """The comparison of that name, every part resolved and every row built without weights.

    Raises `SpecError` with all faults of the comparison.
    """
    reader = library.reader()
    node = reader.mapping(library.find("comparisons", name), f"comparison '{name}'")
    reader.finish()
    for key in node.value:
        if key not in KEYS:
            reader.fail(node.fault(f"a comparison has no {show(key)}{nearest(key, KEYS)}", key))
    seeds, rule = read_seeds(node, reader), read_rule(node, reader)
    match, tune, halving = read_match(node, reader), read_tune(node, reader), read_halving(node, reader)
    raw = raw_rows(node, library, reader)
    made = [read_row(each, seeds, tune, library, reader) for each in raw]
    rows = [row for row in made if isinstance(row, Row)]
    baseline = node.get("baseline").value if "baseline" in node.value else None
    refused = excused(raw, made, baseline, reader)
    extra = references(node, rows, reader)
    names = [each.name for each in raw] + [row.name for row in extra]
    for twice in sorted({n for n in names if names.count(n) > 1}):
        reader.fail(node.fault(f"two rows are called '{twice}'; give them names of their own under 'rows'"))
    if baseline is not None and baseline not in names and None not in made:
        reader.fail(node.get("baseline").fault(f"no row is called {show(baseline)}{nearest(baseline, names)}"))
    same_metric(rows, reader)
    known = {row.name: row.runs[0] for row in [*rows, *extra]}
    first = next((run.make_task().metrics[0] for run in known.values()), "")
    claims = read_claims(node, {n: known.get(n) for n in names}, first, baseline or next(iter(names), None), reader)
    reader.finish()
    rows += extra
    base = next((row for row in rows if row.name == baseline), rows[0])
    rule |= {"match": match, "tune": tune, "halving": halving, "claims": claims}
    return Comparison(name, tuple(rows), base.name, refused, **rule).told_apart(rows)


def excused(
    raw: list[Raw], made: list[Row | Refusal | None], baseline: str | None, reader: Reader
) -> tuple[Refusal, ...]:
    """The refusals that are rows of the design: each of its values stands in another row, and nothing hangs on it.

    The faults of the others go to the reader: of a value that no row can have, of the baseline, and of a plugin's
    failure, which is no refusal.
    """
    cells = [each.cell for each, row in zip(raw, made, strict=True) if not isinstance(row, Refusal)]
    first = raw[0].name if raw and baseline is None else baseline
    kept = []
    for refusal in (row for row in made if isinstance(row, Refusal)):
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


def read_row(raw: Raw, seeds: list[int], tune: Tune | None, library: Library, reader: Reader) -> Row | Refusal | None:
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
    if model and shape:
        model = attempt(refusal, lambda: trimmed(model, shape, library.registry))
    if model and shape and task:
        attempt(refusal, lambda: fit(model, shape, bind_task(task, shape), task, library.registry))
    if len(reader.faults) > before:
        reader.faults += refusal.faults
        return None
    if refusal.faults:
        return refusal
    runs = tuple(RunSpec(model, shape, task, train, seed) for seed in seeds)
    trials = [(values, [RunSpec(model, shape, task, tried, seed) for seed in tune.seeds]) for values, tried in trains]
    return Row(raw.name, runs, cell=raw.cell, trials=tuple(Trial(values, tuple(each)) for values, each in trials))


def attempt(keeper: Reader | Refusal, check: Callable[[], Any]) -> Any:
    """What `check` returns, or None and its faults kept."""
    try:
        return check()
    except SpecError as error:
        keeper.faults.extend(error.faults)
        return None


def references(node: Node, rows: list[Row], reader: Reader) -> list[Row]:
    """A row for every reference, on the task and shape of the first row."""
    out = []
    for child in listed(node.get("references"), reader) if "references" in node.value else ():
        part = reader.part(child, "reference")
        if part is not None and rows:
            first = rows[0].runs[0]
            out.append(Row(part.label(), (RunSpec(None, first.shape, first.task, None, 0, reference=part),)))
    return out


def same_metric(rows: list[Row], reader: Reader) -> None:
    """A fault for every row whose task does not give the metric by which the first row's is ranked."""
    for row in rows[1:]:
        ranked, given = (each.runs[0].make_task().metrics for each in (rows[0], row))
        if ranked[0] not in given:
            text = f"row '{row.name}' has no {ranked[0]}, which ranks '{rows[0].name}'; it has {', '.join(given)}"
            reader.fail(row.runs[0].task.fault(text))


def warnings(comparison: Comparison) -> list[str]:
    """What is allowed and known to go wrong."""
    out = []
    seeds = {run.seed for row in comparison.rows for run in row.runs if run.model}
    for rule, what, who in ((comparison.tune, "settings", "trials"), (comparison.halving, "rows", "rounds")):
        if shared := ", ".join(map(str, sorted(seeds & set(rule.seeds if rule else ())))):
            out.append(f"seed {shared} chooses {what} and is scored with them; let {who} have others")
    for row in comparison.rows:
        run = row.runs[0]
        for part in () if run.model is None or run.train.warmup else run.model.slots["residual"].parts():
            if getattr(part.target, "needs_warmup", False):
                out.append(f"row '{row.name}': residual '{part.name}' needs a warm-up, and train.warmup is 0")
        for part in run.model.beyond(run.shape.n_layers) if run.model and run.model.shape else ():
            out.append(f"row '{row.name}': {part.slot} '{part.label()}' is in none of its {run.shape.n_layers} layers")
    return list(dict.fromkeys(out))


def difference(base: RunSpec, run: RunSpec) -> dict[str, str]:
    """What a run has that the baseline has not: slot or dotted setting to what stands there."""
    mine, theirs = facets(run), facets(base)
    return {k: v for k, v in mine.items() if theirs.get(k) != v}


def facets(run: RunSpec) -> dict[str, str]:
    """Everything that makes a run, one line a slot or setting, in short words."""
    out = {}
    if run.model is not None:
        out |= {slot: value.label() for slot, value in run.model.slots.items()}
        out |= {"share": show(run.model.share), "weights": show(run.model.weights)}
    for owner, record in (("shape", run.shape), ("train", run.train)):
        for f in dataclasses.fields(record) if record is not None else ():
            value = getattr(record, f.name)
            out[f"{owner}.{f.name}"] = value.label() if isinstance(value, PartSpec) else show(value)
    return out | {"task": run.task.label()}


def by_content(value: Any, files: Mapping[str, str]) -> Any:
    """A plain value with every path of a file replaced by what the file holds, so that a folder may be moved."""
    if isinstance(value, dict):
        return {k: by_content(v, files) for k, v in value.items()}
    if isinstance(value, list):
        return [by_content(v, files) for v in value]
    return files.get(value, value) if isinstance(value, str) else value


def read_run(spec: Mapping[str, Any], library: Library) -> RunSpec:
    """A `RunSpec` from what its `plain` wrote. Raises `SpecError`."""
    reader = library.reader()
    top = Node(spec)
    task, shape = reader.part(top.get("task"), "task"), reader.shape(top.get("shape"))
    model = train = reference = None
    if "reference" in spec:
        reference = reader.part(top.get("reference"), "reference")
    else:
        model, train = reader.model(top.get("model")), reader.train(top.get("train"))
    reader.finish()
    return RunSpec(model and model.only(spec["model"]), shape, task, train, spec["seed"], reference)
