"""Raw values to typed specs, with every fault at once and each where it was written."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from zoo.faults import Fault, SpecError, nearest

from . import resize, signature
from .shape import MAIN, SIZES, Shape, resize_shape
from .signature import REQUIRED, RESERVED, Field, T, show
from .spec import MODEL_SLOTS, WHOLE, Layered, ModelSpec, Node, PartSpec, Published, SlotSpec, Train

MODEL_KEYS = (*MODEL_SLOTS, "share", "shape", "published", "weights")


class Reader:
    """Reads nodes into records and keeps every fault; `finish` raises them all, in the order of their places."""

    def __init__(self, registry, defaults: Node):
        self.registry = registry
        self.defaults = defaults
        self.faults: list[Fault] = []

    def finish(self) -> None:
        if self.faults:
            raise SpecError(sorted(dict.fromkeys(self.faults), key=lambda fault: fault.place))

    def fail(self, fault: Fault) -> None:
        self.faults.append(fault)

    def mapping(self, node: Node, what: str) -> Node:
        """The node if it is a mapping, else an empty one and a fault."""
        if isinstance(node.value, Mapping):
            return node
        self.fail(node.fault(f"{what} is {show(node.plain())}; it should be a mapping"))
        return Node({}, node.path, node.document)

    def fields(self, node: Node, fields: Mapping[str, Field], owner: str, skip: tuple[str, ...] = ()) -> dict:
        """The values of a mapping, each checked against its field. `skip` are keys that someone else reads."""
        for key in node.value:
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
        child = node.get(f.name) if f.name in node.value else None
        if child is None and f.default is REQUIRED:
            raise SpecError([node.fault(f"{owner} needs '{f.name}', {f.expected}")])
        if f.slot is not None:
            return self.inside(child, f, node)
        if child is None:
            return f.default
        try:
            value = f.check(child.plain())
        except ValueError as error:
            name = f"{owner}.{f.name}" if owner else f.name
            raise SpecError([child.fault(f"{name} is {error}")]) from None
        return child.beside(value) if f.is_path and value is not None else value

    def inside(self, node: Node | None, f: Field, owner: Node) -> PartSpec | None:
        """The part of a field; null is as good as nothing where the field has no default of its own."""
        assert f.slot is not None, "a field that is a part has a slot"
        own = None if f.default is None else Node(f.default).seen_from(owner)
        if node is None or (node.value is None and own is None):
            node = own or (None if f.slot in MODEL_SLOTS else self.default(f.slot))  # the model has its own slots
        return None if node is None else self.part(merge_options(own, node.seen_from(owner)), f.slot)

    def default(self, slot: str) -> Node | None:
        """What fills a slot that nobody wrote."""
        return self.defaults.get(slot) if slot in self.defaults.value else None

    def part(self, node: Node, slot: str) -> PartSpec | None:
        """`name`, or `{name: …, option: value, …}`; options without a name are the default's."""
        default = self.default(slot)
        node = merge_options(default and default.seen_from(node), node)
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
        except ValueError as error:
            self.fail(at.fault(f"{slot} '{name}' cannot be used: {error}"))
            return None
        before = len(self.faults)
        values = self.fields(options, sig.options, f"{slot} '{name}'", skip=("name",))
        fixed = {
            k: self.inside(Node(v, at.path, at.document), sig.fixed[k], at) if sig.fixed[k].slot else v
            for k, v in entry.variant.fixed.items()
        }
        if len(self.faults) > before:
            return None
        defaults = {k: f.default for k, f in sig.options.items() if f.slot is None and f.default is not REQUIRED}
        return PartSpec(slot, name, values, fixed, target, sig.requests, defaults, entry, self.registry, node)

    def layered(self, node: Node, slot: str) -> Layered | None:
        """`x`, `[a, b]` or `{first: [a], repeat: [b]}`."""
        value, kind = node.value, "attention" if slot == "cross" else slot
        groups = {"repeat": node}
        if isinstance(value, Mapping) and ("first" in value or "repeat" in value):
            self.alone(node, ("first", "repeat"))
            if "repeat" not in value:
                self.fail(node.fault(f"{slot} has 'first' and no 'repeat'"))
                return None
            groups = dict(node.items())
        first = self.group(groups["first"], slot, kind) if "first" in groups else ()
        repeat = self.group(groups["repeat"], slot, kind)
        if first is None or repeat is None:
            return None
        if slot in WHOLE and len(first + repeat) > 1:
            self.fail(node.fault(f"{slot} is a list; a model has one, not one per layer"))
            return None
        return Layered(repeat, first)

    def group(self, node: Node, slot: str, kind: str) -> tuple[PartSpec, ...] | None:
        """The parts of `x` or `[a, b]`, of the kind of variant that serves the slot."""
        nodes = [n for _, n in node.items()] if isinstance(node.value, list | tuple) else [node]
        if not nodes:
            self.fail(node.fault(f"{slot} is an empty list; it should name at least one"))
        parts = [self.part(n, kind) for n in nodes]
        known = tuple(part for part in parts if part)
        return known if known and len(known) == len(parts) else None

    def slot(self, node: Node, slot: str) -> SlotSpec | None:
        """Any of the four forms: `x`, `[a, b]`, `{first, repeat}`, `{encoder, decoder}`."""
        value = node.value
        if not (isinstance(value, Mapping) and ("encoder" in value or "decoder" in value)):
            layered = self.layered(node, slot)
            return SlotSpec({None: layered}, node) if layered else None
        self.alone(node, ("encoder", "decoder"))
        if slot == "architecture":
            self.fail(node.fault("architecture is given by stack; a model has one"))
        stacks = {stack: self.layered(child, slot) for stack, child in node.items() if stack in ("encoder", "decoder")}
        known: dict[str | None, Layered] = {stack: layered for stack, layered in stacks.items() if layered}
        return SlotSpec(known, node) if len(known) == len(stacks) else None

    def alone(self, node: Node, words: tuple[str, str]) -> None:
        """A fault for every key of a slot's form beside its own two."""
        for key in node.value:
            if key not in words:
                beside = " and ".join(f"'{word}'" for word in words)
                self.fail(node.fault(f"beside {beside} nothing else may stand, and {show(key)} does", key))

    def model(self, node: Node) -> ModelSpec | None:
        """A mapping of slots to values; what is not written comes from the defaults."""
        node = self.mapping(node, "model")
        slots: dict[str, SlotSpec | None] = {}
        share = shape = published = weights = None
        for key, child in node.items():
            if key == "share":
                share = child.value
                if not isinstance(share, int) or isinstance(share, bool) or share < 1:
                    self.fail(child.fault(f"share is {show(share)}; it should be an integer of at least 1"))
                    share = None
            elif key == "shape":
                shape = self.own_shape(child)
            elif key == "published":
                published = self.record(child, Published, key)
            elif key == "weights":
                weights = self.file(child, key)
            elif key in MODEL_SLOTS:
                slots[key] = self.slot(child, key)
            else:
                self.fail(node.fault(f"a model has no slot {show(key)}{nearest(key, MODEL_KEYS)}", key))
        given = frozenset(slots)
        for key, child in self.defaults.items():
            faulty = key in slots and slots[key] is None and key != "architecture"  # the others are still checked
            if key in MODEL_SLOTS and (key not in slots or faulty):
                slots[key] = self.slot(child.seen_from(node), key)
        missing = [s for s in MODEL_SLOTS if s not in slots and s != "cross"]
        if missing:
            self.fail(node.fault(f"the model says nothing of {', '.join(missing)}"))
        if missing or not all(slots.values()):
            return None
        known = {s: slot for s in MODEL_SLOTS if (slot := slots.get(s))}
        return ModelSpec(known, share, given, shape, published, weights, node)

    def file(self, node: Node, what: str) -> str | None:
        """The path of a file, from the folder of the document; null for none."""
        if not isinstance(node.value, str | None):
            self.fail(node.fault(f"{what} is {show(node.plain())}; it should be the path of a file"))
            return None
        return node.value and node.beside(node.value)

    def record(
        self, node: Node, cls: type[T], owner: str, short: str = "", among: Mapping[str, Iterable[str]] | None = None
    ) -> T | None:
        """A mapping as a dataclass; its own refusals are faults at the fields that they name.

        A value that is no mapping stands for the field `short`; `among` are the words that a field may be here. A
        dataclass that has a field `node` is given the mapping itself.
        """
        if short and not isinstance(node.value, Mapping):
            node = Node({short: node}, node.path, node.document)
        before = len(self.faults)
        node = self.mapping(node, owner)
        if len(self.faults) > before:
            return None
        fields = dict(signature.fields_of(cls))
        for name, words in (among or {}).items():
            fields[name] = dataclasses.replace(fields[name], annotation=Literal[tuple(words)])
        found = self.fields(node, fields, owner)
        if len(self.faults) > before:
            return None
        names = {f.name.rstrip("_"): f.name for f in dataclasses.fields(cls)}  # type: ignore[arg-type]  # a dataclass
        values = {names[name]: value for name, value in found.items()}
        return self.make_or_fail(node, lambda: cls(**values, **({"node": node} if "node" in names else {})))

    def make_or_fail(self, node: Node, make: Callable[[], Any]) -> Any:
        """What `make` returns, or None and its refusals as faults at the fields that they name."""
        try:
            return make()
        except SpecError as error:
            for fault in error.faults:
                key = fault.path[0] if fault.path and fault.path[0] in node.value else None
                self.fail((node.get(key) if key else node).fault(fault.text))
            return None

    def shape(self, node: Node, own: Shape | None = None, layers: int = 1) -> Shape | None:
        """A shape. Beside sizes of a model's own, what is not written follows these; `scale` multiplies them, down to
        so many `layers`.
        """
        node = self.mapping(node, "shape")
        before = len(self.faults)
        values = {name: value for name, value in self.fields(node, SIZES, "shape").items() if name in node.value}
        scale = values.pop("scale", 1.0)
        if own is None and "scale" in node.value:
            self.fail(node.fault("scale multiplies a model's own sizes, and this one has none", "scale"))
        if "scale" in node.value and all(size in values for size in MAIN):
            self.fail(node.fault("scale has nothing to multiply where all sizes are written", "scale"))
        if len(self.faults) > before:
            return None
        return self.make_or_fail(node, lambda: resize_shape(own, values, scale, layers) if own else Shape(**values))

    def own_shape(self, node: Node) -> Shape | None:
        """The sizes that a model says are its own."""
        if isinstance(node.value, Mapping) and "scale" in node.value:
            self.fail(node.fault("scale multiplies a model's own sizes; write it in a comparison", "scale"))
            return None
        return self.shape(node)

    def sized(self, model: Node, shape: Node) -> tuple[ModelSpec | None, Shape | None]:
        """A model and the shape at which it is built: its own, as far as `shape` says nothing else."""
        spec = self.model(model)
        faulty = spec is None and isinstance(model.value, Mapping) and "shape" in model.value
        own = Shape() if faulty else spec.shape if spec else None
        sizes = self.shape(shape, own, spec.period if spec else 1)
        return (spec and resize.resize_model(spec, sizes) if sizes else spec), sizes

    def train(self, node: Node) -> Train | None:
        return self.record(node, Train, "train")


def merge_options(base: Node | None, own: Node) -> Node:
    """What is written, and where that gives options without a name, the part that they are options of."""
    if base is None or not isinstance(own.value, Mapping) or any(word in own.value for word in RESERVED):
        return own
    options = dict(base.items()) if isinstance(base.value, Mapping) else {"name": base}
    return Node(options | dict(own.items()), own.path, own.document)
