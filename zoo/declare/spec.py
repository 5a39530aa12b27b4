"""What a user declared, typed: parts, slots, models, training settings.

A `Node` is a raw value that knows where it was written; the records below it are what the builder works from.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Annotated, Any, Literal

from zoo.faults import Fault, Path, SpecError
from zoo.hooks import SLOTS

from .shape import Shape
from .signature import (
    Budget,
    Count,
    CountsSteps,
    Natural,
    NotNegative,
    Part,
    Positive,
    SameSpeed,
    T,
    Tunable,
    check_bounds,
    constructor,
    fields_of,
    show,
)  # fmt: skip

MODEL_SLOTS = (
    "architecture", "embedding", "position", "norm", "residual", "attention", "cross", "kernel", "ffn", "head",
)  # fmt: skip
DEFAULTED = (*MODEL_SLOTS, "task", "data", "tokenizer", "optimizer", "schedule")
"""Slots that a default can fill where nobody wrote them."""
WHOLE = {"architecture", "embedding", "head"}
"""Slots that a model fills once, or once per stack, not layer by layer."""


@dataclass(frozen=True)
class Node:
    """A raw value, the path that leads to it and the document that it stands in (None in Python)."""

    value: Any
    path: Path = ()
    document: Any = None

    def get(self, key: str | int) -> Node:
        child = self.value[key]
        return child if isinstance(child, Node) else Node(child, (*self.path, key), self.document)

    def items(self) -> Iterator[tuple[Any, Node]]:
        keys = self.value if isinstance(self.value, Mapping) else range(len(self.value))
        return ((key, self.get(key)) for key in keys)

    def only(self, keys: Iterable[str]) -> Node:
        """This mapping with these keys alone, as far as it has them."""
        return Node({key: self.get(key) for key in keys if key in self.value}, self.path, self.document)

    def fault(self, text: str, *key: Any) -> Fault:
        """A fault at this value, or at the one key in it that is given."""
        at = self.get(*key) if key else self
        return Fault(text, at.path, at.document.where(at.path, key=bool(key)) if at.document else "")

    def seen_from(self, node: Node) -> Node:
        """This value, but with its faults shown at `node` if that stands in another document: the one to mend."""
        if self.document is node.home:
            return self
        return dataclasses.replace(self, document=Elsewhere(node, self.document))

    @property
    def fits_any(self) -> bool:
        """Whether this was written of a model in general, not in a comparison or in Python for the sizes at hand."""
        return self.path[:1] not in (("comparisons",), ("model",))

    @property
    def home(self) -> Any:
        """The document in which faults of this value are shown."""
        return self.document.node.home if isinstance(self.document, Elsewhere) else self.document

    def beside(self, path: str) -> str:
        """A path that stands here, from the folder of the file in which it is written."""
        document = self.document
        while isinstance(document, Elsewhere):
            document = document.written
        return str((FilePath(document.name).parent if document else FilePath()).joinpath(path).absolute())

    def plain(self) -> Any:
        """The value without any node in it."""
        if isinstance(self.value, Mapping):
            return {k: v.plain() for k, v in self.items()}
        return [v.plain() for _, v in self.items()] if isinstance(self.value, list | tuple) else self.value


@dataclass(frozen=True)
class Elsewhere:
    """The document `written`, whose faults are shown at a node of another one."""

    node: Node
    written: Any = None

    def where(self, path: Path, key: bool = False) -> str:
        return self.node.fault("").where


@dataclass(frozen=True)
class PartSpec:
    """A variant and its options, defaults filled in. An option that is a part is a `PartSpec` (None = the model's)."""

    slot: str
    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict, compare=False)
    target: Callable | None = field(default=None, compare=False, repr=False)
    requests: tuple[str, ...] = field(default=(), compare=False, repr=False)
    defaults: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    entry: Any = field(default=None, compare=False, repr=False)
    registry: Any = field(default=None, compare=False, repr=False)
    node: Node = field(default=Node(None), compare=False, repr=False)

    def __hash__(self):
        return hash((self.slot, self.name))

    def plain(self) -> Any:
        """The part as YAML would hold it."""
        options = {k: plain(v) for k, v in self.options.items() if not (v is None and k in SLOTS)}
        return {"name": self.name, **options} if options else self.name

    @functools.cached_property
    def content(self) -> str:
        """The same text for equal parts of one registry."""
        return json.dumps(self.plain(), sort_keys=True)

    def label(self) -> str:
        """The part as a person would call it: its name, and the options that are not at their defaults."""
        own = {k: v for k, v in self.options.items() if v is not None or self.defaults.get(k) is not None}
        told = {k: v for k, v in own.items() if k not in self.defaults or self.defaults[k] != v}
        words = [f"{k}={v.label() if isinstance(v, PartSpec) else show(v)}" for k, v in told.items()]
        return " ".join([self.name, *words])

    def files(self) -> Iterator[str]:
        """The files that its options name."""
        fields = constructor(self.target, self.slot).options if self.target else {}
        yield from (v for k, v in self.options.items() if v is not None and k in fields and fields[k].is_path)

    def parts(self) -> Iterator[PartSpec]:
        """This part and all parts in its options."""
        yield self
        for value in (*self.options.values(), *self.fixed.values()):
            if isinstance(value, PartSpec):
                yield from value.parts()

    def fault(self, text: str) -> Fault:
        return self.node.fault(f"{self.slot} '{self.name}': {text}")


@dataclass(frozen=True)
class Layered:
    """The parts of a slot in one stack: `first` once, then `repeat` over and over."""

    repeat: tuple[PartSpec, ...]
    first: tuple[PartSpec, ...] = ()

    @property
    def entries(self) -> tuple[PartSpec, ...]:
        return self.first + self.repeat

    def index(self, layer: int) -> int:
        """Which of `entries` serves this layer."""
        n = len(self.first)
        return layer if layer < n else n + (layer - n) % len(self.repeat)

    def at(self, layer: int) -> PartSpec:
        return self.entries[self.index(layer)]

    def plain(self) -> Any:
        if self.first:
            return {"first": [p.plain() for p in self.first], "repeat": [p.plain() for p in self.repeat]}
        return [p.plain() for p in self.repeat] if len(self.repeat) > 1 else self.repeat[0].plain()

    def label(self) -> str:
        return ", then ".join(" / ".join(runs(group)) for group in (self.first, self.repeat) if group)


def runs(parts: Iterable[PartSpec]) -> Iterator[str]:
    """The parts as a person would call them, those that follow themselves as so many of one."""
    for label, group in itertools.groupby(part.label() for part in parts):
        times = len(list(group))
        yield f"{times} x {label}" if times > 1 else label


@dataclass(frozen=True)
class SlotSpec:
    """A slot's value in every stack: the same (`{None: …}`) or stack by stack."""

    stacks: Mapping[str | None, Layered]
    node: Node = field(default=Node(None), compare=False, repr=False)

    def of(self, stack: str) -> Layered | None:
        return self.stacks.get(stack, self.stacks.get(None))

    def parts(self) -> Iterator[PartSpec]:
        return (p for layered in self.stacks.values() for part in layered.entries for p in part.parts())

    def plain(self) -> Any:
        if None in self.stacks:
            return self.stacks[None].plain()
        return {stack: layered.plain() for stack, layered in self.stacks.items()}

    def label(self) -> str:
        return ", ".join(f"{k}: {v.label()}" if k else v.label() for k, v in self.stacks.items())


@dataclass(frozen=True)
class Published:
    """What is known of a model of others. `parameters` counts it with its head, tied weights once; `body`, where that
    is the figure in use, without what the head alone has, but with a `pooler` of so many that is not built here.
    """

    parameters: int
    body: int | None = None
    pooler: int = 0
    paper: str = ""


@dataclass(frozen=True)
class ModelSpec:
    """A part for every slot of a model. `given` are the slots that the user wrote, the others are defaults. `shape`
    holds the model's own sizes, if it has such, and `published` what is known of it at these. `weights` is the file of
    tensors from which a run starts.
    """

    slots: Mapping[str, SlotSpec]
    share: int | None = None
    given: frozenset[str] = field(default=frozenset(), compare=False)
    shape: Shape | None = field(default=None, compare=False)
    published: Published | None = field(default=None, compare=False)
    weights: str | None = None
    node: Node = field(default=Node(None), compare=False, repr=False)

    @property
    def architecture(self) -> PartSpec:
        return next(iter(self.slots["architecture"].stacks.values())).at(0)

    @property
    def period(self) -> int:
        """The layers after which every part has been used: no smaller model has all of them."""
        patterns = (len(layered.entries) for slot in self.slots.values() for layered in slot.stacks.values())
        return max(self.share or 1, *patterns)

    def beyond(self, layers: int) -> Iterator[PartSpec]:
        """The parts that none of so many layers uses."""
        for layered in (layered for slot in self.slots.values() for layered in slot.stacks.values()):
            used = {layered.index(i) for i in range(layers)}
            built = [layered.entries[i] for i in used]
            yield from (part for part in layered.entries if part not in built)

    def only(self, slots: Iterable[str]) -> ModelSpec:
        """The model without its other slots."""
        kept = frozenset(slots)
        return dataclasses.replace(self, slots={slot: value for slot, value in self.slots.items() if slot in kept})

    def parts(self) -> Iterator[PartSpec]:
        return (p for slot in self.slots.values() for p in slot.parts())

    @functools.cached_property
    def content(self) -> str:
        """The same text for equal models of one registry, whatever their sizes."""
        return json.dumps(self.plain(), sort_keys=True)

    def plain(self) -> dict:
        more = {"share": self.share, "weights": self.weights}
        return {name: slot.plain() for name, slot in self.slots.items()} | {k: v for k, v in more.items() if v}


@dataclass(frozen=True)
class Train:
    """How a run is trained. Exactly one of `steps` and `tokens` (targets that count) is the budget.

    `batch_size` rows make a batch and `accumulate` batches a step; `threads` are CPU threads of each of the run's
    `processes`, which divide the rows of a batch, and under `fsdp` the tensors too. The marks of a setting are all
    that others know of it: what trials may choose, what halving shortens, what the time of a step does not hang on.
    """

    steps: Annotated[Count | None, Budget(), SameSpeed(1)] = None
    tokens: Annotated[Count | None, Budget(), SameSpeed(None)] = None
    batch_size: Count = 8
    accumulate: Count = 1
    lr: Annotated[Positive, Tunable(), SameSpeed(1.0)] = 3e-3
    warmup: Annotated[Natural, Tunable(), CountsSteps(), SameSpeed(0)] = 0
    schedule: Annotated[Any, Part("schedule"), Tunable()] = None
    optimizer: Annotated[Any, Part("optimizer"), Tunable()] = None
    clip: Annotated[Positive | None, Tunable()] = 1.0
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    device: str = "auto"
    compile: bool = False
    threads: Count = 1
    processes: Count = 1
    parallel: Literal["ddp", "fsdp"] = "ddp"
    eval_every: Annotated[Count | None, CountsSteps(), SameSpeed(None)] = None
    log_every: Annotated[Count, SameSpeed(1)] = 10
    checkpoint_seconds: Annotated[NotNegative, SameSpeed(0.0)] = 30.0

    def __post_init__(self):
        faults = check_bounds(self, "train.")
        if self.processes > 1 and self.batch_size % self.processes:
            text = f"train.batch_size is {self.batch_size}; it should be a multiple of the {self.processes} processes"
            faults.append(Fault(text, ("batch_size",)))
        budgets = self.marked(Budget)
        if sum(getattr(self, name) is not None for name in budgets) != 1:
            faults.append(Fault(f"train needs one budget: either {' or '.join(map(show, budgets))}"))
        if faults:
            raise SpecError(faults)

    @classmethod
    def marked(cls, kind: type[T]) -> dict[str, T]:
        """The settings with a mark of this kind, and each one's mark."""
        marks = {name: field.mark(kind) for name, field in fields_of(cls).items()}
        return {name: mark for name, mark in marks.items() if mark is not None}

    def of_steps(self, steps: int) -> Train:
        """The settings with so many steps as their budget."""
        return self.with_settings({**dict.fromkeys(self.marked(Budget)), "steps": steps})

    def shortened(self, steps: int, share: int) -> Train:
        """The settings for 1/`share` of so many steps, and so of every setting that counts them."""
        counts = {name: getattr(self, name) for name in self.marked(CountsSteps)}
        parts = {name: count and math.ceil(count / share) for name, count in counts.items()}
        return self.of_steps(math.ceil(steps / share)).with_settings(parts)

    def of_one_step(self) -> Train:
        """The settings on which the time of a step hangs, the others at the values at which steps are timed."""
        return self.with_settings({name: mark.timed_at for name, mark in self.marked(SameSpeed).items()})

    def with_settings(self, values: Mapping[str, Any]) -> Train:
        return dataclasses.replace(self, **values)

    def plain(self) -> dict:
        return {f.name: plain(getattr(self, f.name)) for f in dataclasses.fields(self)}


def plain(value: Any) -> Any:
    """A value as YAML and JSON hold it."""
    if isinstance(value, PartSpec):
        return value.plain()
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return value
