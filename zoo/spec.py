"""What a user declared, typed: parts, slots, models, training settings; read with every fault at once.

A `Node` is a raw value that knows where it was written; the records below it are what the builder works from.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from . import signature
from .faults import Fault, Path, SpecError, nearest
from .hooks import SLOTS
from .shape import Shape
from .signature import REQUIRED, Field, Part, show

MODEL_SLOTS = (
    "architecture", "embedding", "position", "norm", "residual", "attention", "cross", "kernel", "ffn", "head",
)  # fmt: skip
WHOLE = {"architecture", "embedding", "head"}
"""Slots that a model fills once, or once per stack, not layer by layer."""
RESERVED = ("name", "first", "repeat", "encoder", "decoder")


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

    def fault(self, text: str, key: Any = None) -> Fault:
        """A fault at this value, or at the key `key` in it."""
        path = self.path if key is None else (*self.path, key)
        where = self.document.where(path, key=key is not None) if self.document else ""
        return Fault(text, path, where)

    def plain(self) -> Any:
        """The value without any node in it."""
        if isinstance(self.value, Mapping):
            return {k: v.plain() for k, v in self.items()}
        return [v.plain() for _, v in self.items()] if isinstance(self.value, list | tuple) else self.value


@dataclass(frozen=True)
class PartSpec:
    """A variant and its options, defaults filled in. An option that is a part is a `PartSpec` (None = the model's)."""

    slot: str
    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict, compare=False)
    target: Callable | None = field(default=None, compare=False, repr=False)
    requests: tuple[str, ...] = field(default=(), compare=False, repr=False)
    entry: Any = field(default=None, compare=False, repr=False)
    node: Node = field(default=Node(None), compare=False, repr=False)

    def __hash__(self):
        return hash((self.slot, self.name))

    def plain(self) -> Any:
        """The part as YAML would hold it."""
        options = {k: plain(v) for k, v in self.options.items() if not (v is None and k in SLOTS)}
        return {"name": self.name, **options} if options else self.name

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


@dataclass(frozen=True)
class ModelSpec:
    """A part for every slot of a model. `given` are the slots that the user wrote, the others are defaults."""

    slots: Mapping[str, SlotSpec]
    share: int | None = None
    given: frozenset[str] = field(default=frozenset(), compare=False)
    node: Node = field(default=Node(None), compare=False, repr=False)

    @property
    def architecture(self) -> PartSpec:
        return next(iter(self.slots["architecture"].stacks.values())).at(0)

    def parts(self) -> Iterator[PartSpec]:
        return (p for slot in self.slots.values() for p in slot.parts())

    def plain(self) -> dict:
        share = {"share": self.share} if self.share else {}
        return {**{name: slot.plain() for name, slot in self.slots.items()}, **share}


@dataclass(frozen=True)
class Train:
    """How a run is trained. Exactly one of `steps` and `tokens` (targets that count) is the budget.

    `batch_size` rows make a batch and `accumulate` batches a step; `threads` are CPU threads of the run's process.
    """

    steps: int | None = None
    tokens: int | None = None
    batch_size: int = 8
    accumulate: int = 1
    lr: float = 3e-3
    warmup: int = 0
    schedule: Part["schedule"] = None
    optimizer: Part["optimizer"] = None
    clip: float | None = 1.0
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    device: str = "auto"
    compile: bool = False
    threads: int = 1
    eval_every: int | None = None
    log_every: int = 10
    checkpoint_seconds: float = 30.0

    def __post_init__(self):
        at_least = {name: 1 for name in ("steps", "tokens", "batch_size", "accumulate", "threads", "log_every")}
        at_least |= {"warmup": 0, "eval_every": 1, "checkpoint_seconds": 0}
        faults = [
            Fault(f"train.{name} is {value}; it should be at least {low}", (name,))
            for name, low in at_least.items()
            if (value := getattr(self, name)) is not None and value < low
        ]
        if (self.steps is None) == (self.tokens is None):
            faults.append(Fault("train needs one budget: either 'steps' or 'tokens'"))
        if not self.lr > 0:
            faults.append(Fault(f"train.lr is {self.lr}; it should be above 0", ("lr",)))
        if self.clip is not None and not self.clip > 0:
            faults.append(Fault(f"train.clip is {self.clip}; it should be above 0, or null", ("clip",)))
        if faults:
            raise SpecError(faults)

    def plain(self) -> dict:
        return {f.name: plain(getattr(self, f.name)) for f in dataclasses.fields(self)}


def plain(value: Any) -> Any:
    """A value as YAML and JSON hold it."""
    if isinstance(value, PartSpec):
        return value.plain()
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return value


class Reader:
    """Reads nodes into records and keeps every fault; `finish` raises them all."""

    def __init__(self, registry, defaults: Node = Node({})):
        self.registry = registry
        self.defaults = defaults
        self.faults: list[Fault] = []

    def finish(self) -> None:
        if self.faults:
            raise SpecError(dict.fromkeys(self.faults))

    def fail(self, fault: Fault) -> None:
        self.faults.append(fault)

    def mapping(self, node: Node, what: str) -> Node:
        """The node if it is a mapping, else an empty one and a fault."""
        if isinstance(node.value, Mapping):
            return node
        self.fail(node.fault(f"{what} is {show(node.value)}; it should be a mapping"))
        return Node({}, node.path, node.document)

    def fields(self, node: Node, fields: Mapping[str, Field], owner: str, skip: tuple[str, ...] = ()) -> dict:
        """The values of a mapping, each checked against its field. `skip` are keys that someone else reads."""
        for key, child in node.items():
            if key not in fields and key not in skip:
                near = nearest(key, fields)
                known = "" if near or not fields else f"; it has {', '.join(fields)}"
                self.fail(node.fault(f"{owner} has no option {show(key)}{near}{known}", key))
        out = {}
        for name, f in fields.items():
            try:
                out[name] = self.field(node, f, owner)
            except SpecError as error:
                self.faults += error.faults
        return out

    def field(self, node: Node, f: Field, owner: str) -> Any:
        if f.name not in node.value:
            if f.default is REQUIRED:
                raise SpecError([node.fault(f"{owner} needs '{f.name}', {f.expected}")])
            if f.slot is None:
                return f.default
            child = Node(f.default) if f.default is not None else self.default(f.slot)
        else:
            child = node.get(f.name)
        if f.slot is not None:
            return None if child is None else self.part(child, f.slot)
        try:
            return f.check(child.plain())
        except ValueError as error:
            raise SpecError([child.fault(f"{owner}.{f.name} is {error}")]) from None

    def default(self, slot: str) -> Node | None:
        """What fills a slot that nobody wrote; a model's own slots are left to the model."""
        return self.defaults.get(slot) if slot in self.defaults.value and slot not in MODEL_SLOTS else None

    def part(self, node: Node, slot: str) -> PartSpec | None:
        """`name`, or `{name: …, option: value, …}`."""
        value = node.value
        name = value.get("name") if isinstance(value, Mapping) else value
        name = name.value if isinstance(name, Node) else name
        if not isinstance(name, str):
            text = f"{slot} is {show(node.plain())}; it should be a name, or a mapping with a 'name'"
            self.fail(node.fault(text))
            return None
        options = node if isinstance(value, Mapping) else Node({}, node.path, node.document)
        at = node.get("name") if isinstance(value, Mapping) else node
        try:
            entry = self.registry.find(slot, name)
            target = self.registry.load(entry)
            sig = signature.read(target, slot, entry.variant.fixed)
        except SpecError as error:
            self.faults += [at.fault(f.text) for f in error.faults]
            return None
        except (ValueError, NameError) as error:
            self.fail(at.fault(f"{slot} '{name}' cannot be used: {error}"))
            return None
        before = len(self.faults)
        values = self.fields(options, sig.options, f"{slot} '{name}'", skip=("name",))
        fixed = {k: self.part(Node(v), k) if k in SLOTS else v for k, v in entry.variant.fixed.items()}
        if len(self.faults) > before:
            return None
        return PartSpec(slot, name, values, fixed, target, sig.requests, entry, node)

    def layered(self, node: Node, slot: str) -> Layered | None:
        """`x`, `[a, b]` or `{first: [a], repeat: [b]}`."""
        value, kind = node.value, "attention" if slot == "cross" else slot
        groups = {"repeat": node}
        if isinstance(value, Mapping) and ("first" in value or "repeat" in value):
            for key, _ in node.items():
                if key not in ("first", "repeat"):
                    self.fail(node.fault(f"beside 'first' and 'repeat' nothing else may stand, and {show(key)} does", key))
            if "repeat" not in value:
                self.fail(node.fault(f"{slot} has 'first' and no 'repeat'"))
                return None
            groups = dict(node.items())
        parts = {}
        for key in ("first", "repeat"):
            if key not in groups:
                continue
            group = groups[key]
            nodes = [n for _, n in group.items()] if isinstance(group.value, list | tuple) else [group]
            if not nodes:
                self.fail(group.fault(f"{slot} is an empty list; it should name at least one"))
            parts[key] = tuple(self.part(n, kind) for n in nodes)
        if not all(p and all(p) for p in parts.values()):
            return None
        if slot in WHOLE and sum(map(len, parts.values())) > 1:
            self.fail(node.fault(f"{slot} is a list; a model has one, not one per layer"))
            return None
        return Layered(**parts)

    def slot(self, node: Node, slot: str) -> SlotSpec | None:
        """Any of the four forms: `x`, `[a, b]`, `{first, repeat}`, `{encoder, decoder}`."""
        value = node.value
        if not (isinstance(value, Mapping) and ("encoder" in value or "decoder" in value)):
            layered = self.layered(node, slot)
            return layered and SlotSpec({None: layered}, node)
        stacks = {}
        for stack, child in node.items():
            if stack not in ("encoder", "decoder"):
                self.fail(node.fault(f"beside 'encoder' and 'decoder' nothing else may stand, and {show(stack)} does", stack))
            else:
                stacks[stack] = self.layered(child, slot)
        return SlotSpec(stacks, node) if all(stacks.values()) else None

    def model(self, node: Node) -> ModelSpec | None:
        """A mapping of slots to values; what is not written comes from the defaults."""
        node = self.mapping(node, "model")
        slots: dict[str, SlotSpec | None] = {}
        share = None
        for key, child in node.items():
            if key == "share":
                share = child.value
                if not isinstance(share, int) or isinstance(share, bool) or share < 1:
                    self.fail(child.fault(f"share is {show(share)}; it should be an integer of at least 1"))
            elif key in MODEL_SLOTS:
                slots[key] = self.slot(child, key)
            else:
                self.fail(node.fault(f"a model has no slot {show(key)}{nearest(key, MODEL_SLOTS)}", key))
        given = frozenset(slots)
        for key, child in self.defaults.items():
            if key in MODEL_SLOTS and key not in slots:
                slots[key] = self.slot(child, key)
        missing = [s for s in MODEL_SLOTS if s not in slots and s != "cross"]
        if missing:
            self.fail(node.fault(f"the model says nothing of {', '.join(missing)}"))
        if missing or not all(slots.values()):
            return None
        return ModelSpec({s: slots[s] for s in MODEL_SLOTS if s in slots}, share, given, node)

    def record(self, node: Node, cls: type, owner: str) -> Any:
        """A mapping as a dataclass; its own refusals are faults at the fields that they name."""
        node = self.mapping(node, owner)
        before = len(self.faults)
        values = self.fields(node, signature.fields_of(cls), owner)
        if len(self.faults) > before:
            return None
        try:
            return cls(**values)
        except SpecError as error:
            for fault in error.faults:
                key = fault.path[0] if fault.path and fault.path[0] in node.value else None
                self.fail((node.get(key) if key else node).fault(fault.text))
            return None

    def shape(self, node: Node) -> Shape | None:
        return self.record(node, Shape, "shape")

    def train(self, node: Node) -> Train | None:
        return self.record(node, Train, "train")
