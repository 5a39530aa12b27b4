"""One run as it is declared, fully resolved: a model trained from one seed, or a reference."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from zoo.declare.library import Library
from zoo.declare.shape import IDS, Shape
from zoo.declare.signature import show
from zoo.declare.spec import ModelSpec, Node, PartSpec, Train
from zoo.faults import SpecError
from zoo.model.builder import bind_task, make
from zoo.model.weights import hash_file, load_matching
from zoo.parts import Architecture
from zoo.registry import Registry
from zoo.tasks import Task


@dataclass(frozen=True)
class BaseRun:
    """What both kinds of run have. `text` is the sha256 of what the task reads, "" until the data was read: another
    text makes another run.
    """

    shape: Shape
    task: PartSpec
    seed: int
    text: str = field(default="", kw_only=True)

    def plain(self) -> dict[str, Any]:
        """As JSON holds it; `read_run` reads it back."""
        shape = {k: v for k, v in dataclasses.asdict(self.shape).items() if k != "vocab_size"}
        return {"shape": shape, "task": self.task.plain(), "seed": self.seed}

    def parts(self) -> Iterator[PartSpec]:
        return self.task.parts()

    def provenance(self) -> list[dict[str, str]]:
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
        spec = replace_paths(self.plain(), self.files())
        text = json.dumps([spec, origin, self.text], sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def files(self) -> dict[str, str]:
        """The files that the run reads beside its data, and the sha256 of each."""
        return {path: hash_file(path) for part in self.parts() for path in part.files()}

    def make_task(self) -> Task:
        """The task, nothing read yet."""
        return bind_task(self.task, self.shape)

    def shape_for(self, task: Task) -> Shape:
        """The shape with the vocabulary of a prepared task. Raises `SpecError` for reserved ids that lie outside it."""
        outside = [name for name in IDS if getattr(self.shape, name) >= task.vocab_size]
        if outside:
            named = ", ".join(f"{name} {getattr(self.shape, name)}" for name in outside)
            raise SpecError(f"the shape reserves {named}, and the tokenizer of this task has {task.vocab_size} tokens")
        return dataclasses.replace(self.shape, vocab_size=task.vocab_size)


@dataclass(frozen=True)
class ReferenceRun(BaseRun):
    """A reference, which no gradient trains, on a task."""

    reference: PartSpec

    def plain(self) -> dict[str, Any]:
        return {"reference": self.reference.plain(), **super().plain()}

    def parts(self) -> Iterator[PartSpec]:
        yield from super().parts()
        yield from self.reference.parts()


@dataclass(frozen=True)
class TrainedRun(BaseRun):
    """A model trained on a task, from one seed."""

    model: ModelSpec
    train: Train

    def plain(self) -> dict[str, Any]:
        return {"model": self.model.plain(), **super().plain(), "train": self.train.plain()}

    def parts(self) -> Iterator[PartSpec]:
        yield from super().parts()
        for part in (self.train.optimizer, self.train.schedule):
            yield from part.parts()
        yield from self.model.parts()

    def files(self) -> dict[str, str]:
        weights = self.model.weights
        return super().files() | ({weights: hash_file(weights)} if weights else {})

    def make_model(self, task: Task, registry: Registry | None = None) -> Architecture:
        """The model with its initial weights, for a prepared task: those of its file, and drawn ones for the rest."""
        model = make(self.model, self.shape_for(task), seed=self.seed, registry=registry)
        if self.model.weights:
            load_matching(model, self.model.weights)
        return model


RunSpec = TrainedRun | ReferenceRun


def read_run(spec: Mapping[str, Any], library: Library) -> RunSpec:
    """The run from what its `plain` wrote. Raises `SpecError`."""
    needed = ("shape", "task", "seed", *(("reference",) if "reference" in spec else ("model", "train")))
    if lacking := [key for key in needed if key not in spec]:
        raise SpecError(f"what is recorded of the run lacks {', '.join(lacking)}")
    if isinstance(spec.get("model"), Mapping) and "architecture" not in spec["model"]:
        raise SpecError("what is recorded of the run's model lacks architecture")
    if not isinstance(spec["seed"], int) or isinstance(spec["seed"], bool):
        raise SpecError(f"seed is {show(spec['seed'])}; it should be an integer")
    reader = library.reader()
    top = Node(spec)
    task, shape = reader.part(top.get("task"), "task"), reader.shape(top.get("shape"))
    if "reference" in spec:
        reference = reader.part(top.get("reference"), "reference")
        reader.finish()
        assert shape and task and reference, "or it would have raised"
        return ReferenceRun(shape, task, spec["seed"], reference)
    model, train = reader.model(top.get("model")), reader.train(top.get("train"))
    reader.finish()
    assert shape and task and model and train, "or it would have raised"
    return TrainedRun(shape, task, spec["seed"], model.only(spec["model"]), train)


def difference(base: RunSpec, run: RunSpec) -> dict[str, str]:
    """What a run has that the baseline has not: slot or dotted setting to what stands there."""
    mine, theirs = facets(run), facets(base)
    return {k: v for k, v in mine.items() if theirs.get(k) != v}


def facets(run: RunSpec) -> dict[str, str]:
    """Everything that makes a run, one line a slot or setting, in short words."""
    shape, task = settings("shape", run.shape), {"task": run.task.label()}
    if isinstance(run, ReferenceRun):
        return shape | task
    model = {slot: value.label() for slot, value in run.model.slots.items()}
    model |= {"share": show(run.model.share), "weights": show(run.model.weights)}
    return model | shape | settings("train", run.train) | task


def settings(owner: str, record: Shape | Train) -> dict[str, str]:
    values = {f.name: getattr(record, f.name) for f in dataclasses.fields(record)}
    return {f"{owner}.{k}": v.label() if isinstance(v, PartSpec) else show(v) for k, v in values.items()}


def replace_paths(value: Any, files: Mapping[str, str]) -> Any:
    """A plain value with every path of a file replaced by what the file holds, so that a folder may be moved."""
    if isinstance(value, dict):
        return {k: replace_paths(v, files) for k, v in value.items()}
    if isinstance(value, list):
        return [replace_paths(v, files) for v in value]
    return files.get(value, value) if isinstance(value, str) else value
