"""A comparison: rows of models, shapes, tasks and training settings, each with its seeds, and the runs they make."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .builder import bind_task, fit, make, sketch
from .faults import Fault, SpecError, nearest
from .library import Library
from .reader import Reader
from .shape import Shape
from .signature import show
from .spec import MODEL_SLOTS, ModelSpec, Node, PartSpec, Train

SIDES = ("model", "shape", "task", "train")
"""What a row consists of; a path in `vary` begins with one of these or is a slot of the model."""
KEYS = (*SIDES, "models", "vary", "rows", "seeds", "baseline", "references")


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
        text = json.dumps([self.plain(), origin, self.text], sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def make_task(self):
        """The task, nothing read yet."""
        return bind_task(self.task, self.shape)

    def sized(self, task) -> Shape:
        """The shape with the vocabulary of a prepared task."""
        return dataclasses.replace(self.shape, vocab_size=task.vocab_size)

    def make_model(self, task, registry=None):
        """The model with its initial weights, for a prepared task."""
        return make(self.model, self.sized(task), seed=self.seed, registry=registry)


@dataclass(frozen=True)
class Row:
    """A line of the table: what is trained, and once per seed."""

    name: str
    runs: tuple[RunSpec, ...]
    differs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Comparison:
    name: str
    rows: tuple[Row, ...]
    baseline: str | None

    def plain(self) -> dict:
        """As YAML holds it, with every row written out and every default filled in."""
        trained = [row for row in self.rows if row.runs[0].model is not None]
        rows = {}
        for row in trained:
            run = row.runs[0].plain()
            rows[row.name] = {side: run[side] for side in SIDES}
        out = {"rows": rows, "seeds": [run.seed for run in trained[0].runs] if trained else []}
        if self.baseline is not None:
            out["baseline"] = self.baseline
        if len(trained) < len(self.rows):
            references = [row.runs[0] for row in self.rows if row.runs[0].reference is not None]
            out["references"] = [run.reference.plain() for run in references]
        return out


def read_comparison(library: Library, name: str) -> Comparison:
    """The comparison of that name, every part resolved and every row built without weights.

    Raises `SpecError` with all faults of the comparison.
    """
    node = library.find("comparisons", name)
    reader = library.reader()
    node = reader.mapping(node, f"comparison '{name}'")
    for key, _ in node.items():
        if key not in KEYS:
            reader.fail(node.fault(f"a comparison has no {show(key)}{nearest(key, KEYS)}", key))
    seeds = read_seeds(node, reader)
    raw = raw_rows(node, library, reader)
    rows = [row for name, sides in raw if (row := read_row(name, sides, seeds, library, reader))]
    rows += references(node, rows, reader)
    names = [name for name, _ in raw] + [row.name for row in rows[len(raw) :]]
    for twice in sorted({n for n in names if names.count(n) > 1}):
        reader.fail(node.fault(f"two rows are called '{twice}'; give them names of their own under 'rows'"))
    baseline = node.get("baseline").value if "baseline" in node.value else None
    if baseline is not None and baseline not in names:
        reader.fail(node.get("baseline").fault(f"no row is called {show(baseline)}{nearest(baseline, names)}"))
    reader.finish()
    base = next((row for row in rows if row.name == baseline), rows[0])
    rows = [dataclasses.replace(row, differs=difference(base.runs[0], row.runs[0])) for row in rows]
    return Comparison(name, tuple(rows), base.name)


def read_seeds(node: Node, reader: Reader) -> list[int]:
    """`seeds: [0, 1, 2]`, or a number of them."""
    child = node.get("seeds") if "seeds" in node.value else Node([0])
    value = child.plain()
    seeds = list(range(value)) if isinstance(value, int) and not isinstance(value, bool) else value
    whole = isinstance(seeds, list) and all(isinstance(s, int) and not isinstance(s, bool) for s in seeds)
    if not whole or not seeds or len(set(seeds)) < len(seeds):
        expected = "a number of seeds, or a list of different integers"
        reader.fail(child.fault(f"seeds is {show(value)}; it should be {expected}"))
        return [0]
    return seeds


def raw_rows(node: Node, library: Library, reader: Reader) -> list[tuple[str, dict[str, Node]]]:
    """Names and raw values of all rows: `rows` as written, or `models` times every combination of `vary`."""
    base = {side: node.get(side) for side in SIDES if side in node.value}
    if "rows" in node.value:
        if extra := [k for k in ("model", "models", "vary") if k in node.value]:
            reader.fail(node.fault(f"beside 'rows' there can be no {show(extra[0])}", extra[0]))
        rows = reader.mapping(node.get("rows"), "rows")
        return [(str(k), raw) for k, row in rows.items() if (raw := overlay(base, row, library, reader)) is not None]
    if ("model" in node.value) == ("models" in node.value):
        reader.fail(node.fault("a comparison needs either 'model' or 'models' (or 'rows')"))
        return []
    models = [base["model"]] if "model" in base else listed(node.get("models"), reader)
    vary = reader.mapping(node.get("vary"), "vary") if "vary" in node.value else Node({})
    axes = [[(path, n) for n in listed(values, reader)] for path, values in vary.items()]
    rows = []
    for model, *changes in itertools.product(models, *axes):
        raw = overlay(base, Node({"model": model}), library, reader)
        labels = [label(model)] if len(models) > 1 or not axes else []
        for path, value in changes:
            raw = raw and override(raw, path, value, vary, reader)
            labels.append(label(value) if isinstance(value.value, str | Mapping) else f"{path.split('.')[-1]}={label(value)}")
        if raw is not None:
            rows.append((", ".join(labels), raw))
    return rows


def listed(node: Node, reader: Reader) -> list[Node]:
    if isinstance(node.value, list) and node.value:
        return [child for _, child in node.items()]
    reader.fail(node.fault(f"it is {show(node.plain())}; it should be a list of at least one"))
    return []


def label(node: Node) -> str:
    """A raw value as a short name."""
    value = node.plain()
    if isinstance(value, Mapping):
        options = [f"{k}={show(v).strip(chr(39))}" for k, v in value.items() if k not in ("name", "like")]
        return " ".join([str(value.get("name", value.get("like", ""))), *options]).strip()
    return value if isinstance(value, str) else show(value)


def overlay(base: dict[str, Node], row: Node, library: Library, reader: Reader) -> dict[str, Node] | None:
    """The sides of one row, models and shapes expanded; what the row writes replaces what all rows share."""
    raw = dict(base)
    for key, child in reader.mapping(row, "a row").items():
        if key in SIDES:
            raw[key] = child
        else:
            reader.fail(row.fault(f"a row has no {show(key)}{nearest(key, SIDES)}", key))
    try:
        for kind in ("model", "shape"):
            raw[kind] = library.expand(kind, raw.get(kind, Node({})), reader)
    except SpecError as error:
        reader.faults += error.faults
        return None
    return raw


def override(raw: dict[str, Node], path: str, value: Node, vary: Node, reader: Reader) -> dict[str, Node] | None:
    """The sides of a row with the value at a dotted path replaced."""
    steps = str(path).split(".")
    if steps[0] in MODEL_SLOTS:
        steps = ["model", *steps]
    if steps[0] not in SIDES or len(steps) < 2:
        known = (*MODEL_SLOTS, *SIDES)
        beginnings = f"; a path begins with a slot of the model or with {', '.join(SIDES)}"
        reader.fail(vary.fault(f"vary has no {show(path)}{nearest(steps[0], known) or beginnings}", path))
        return None
    return {**raw, steps[0]: put(raw.get(steps[0], Node({})), steps[1:], value)}


def put(node: Node, steps: list[str], value: Node) -> Node:
    if not steps:
        return value
    inside = dict(node.items()) if isinstance(node.value, Mapping) else {"name": node}
    child = inside.get(steps[0], Node({}))
    return Node({**inside, steps[0]: put(child, steps[1:], value)}, node.path, node.document)


def read_row(name: str, raw: dict[str, Node], seeds: list[int], library: Library, reader: Reader) -> Row | None:
    """One row, its model built without weights and held against its task; None, and faults, where that fails."""
    if "task" not in raw:
        reader.fail(Fault(f"row '{name}' has no task"))
    if "vocab_size" in raw["shape"].value:
        reader.fail(raw["shape"].fault("a comparison takes vocab_size from its tokenizer; leave it out", "vocab_size"))
    before = len(reader.faults)
    model, shape = reader.model(raw["model"]), reader.shape(raw["shape"])
    task = reader.part(raw["task"], "task") if "task" in raw else None
    if model and shape:
        attempt(reader, lambda: sketch(model, shape, library.registry))
        if task and len(reader.faults) == before:
            attempt(reader, lambda: fit(model, shape, bind_task(task, shape), task, library.registry))
    train = reader.train(raw.get("train", Node({})))
    if None in (model, shape, task, train) or len(reader.faults) > before:
        return None
    return Row(name, tuple(RunSpec(model, shape, task, train, seed) for seed in seeds))


def attempt(reader: Reader, check: Callable[[], Any]) -> None:
    try:
        check()
    except SpecError as error:
        reader.faults += error.faults


def references(node: Node, rows: list[Row], reader: Reader) -> list[Row]:
    """A row for every reference, on the task and shape of the first row."""
    out = []
    for child in listed(node.get("references"), reader) if "references" in node.value else ():
        part = reader.part(child, "reference")
        if part is not None and rows:
            first = rows[0].runs[0]
            run = RunSpec(None, first.shape, first.task, None, 0, reference=part)
            out.append(Row(label(child), (run,)))
    return out


def difference(base: RunSpec, run: RunSpec) -> dict[str, str]:
    """What a run has that the baseline has not: slot or dotted setting to what stands there."""
    mine, theirs = facets(run), facets(base)
    return {k: v for k, v in mine.items() if theirs.get(k) != v}


def facets(run: RunSpec) -> dict[str, str]:
    """Everything that makes a run, one line a slot or setting, in short words."""
    out = {}
    if run.model is not None:
        out |= {slot: value.label() for slot, value in run.model.slots.items()}
        out |= {"share": show(run.model.share)} if run.model.share else {}
    for owner, record in (("shape", run.shape), ("train", run.train)):
        for f in dataclasses.fields(record) if record is not None else ():
            value = getattr(record, f.name)
            out[f"{owner}.{f.name}"] = value.label() if isinstance(value, PartSpec) else show(value)
    return out | {"task": run.task.label()}


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
    return RunSpec(model, shape, task, train, spec["seed"], reference)
