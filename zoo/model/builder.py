"""A model declared and a shape become a module: parts are bound, what they need is checked, weights initialised."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from zoo.declare.library import open_library
from zoo.declare.reader import Reader
from zoo.declare.shape import Shape
from zoo.declare.spec import Layered, ModelSpec, Node, PartSpec
from zoo.faults import Fault, SpecError
from zoo.parts import Architecture, NoStep, Place, Position, required_support
from zoo.registry import Registry
from zoo.tasks import Metric, Task

from .stack import Layer, Stack
from .weights import initialise, load_matching

DEEPEST = 10_000
"""Layers of a stack. More were never trained, and are a slip that would take minutes to refuse."""


Written = str | Mapping[str, Any]
"""What a user writes of a thing: its name, or a mapping as in the YAML."""


def build(
    model: Written,
    *,
    shape: Written | None = None,
    task: Written | None = None,
    seed: int = 0,
    registry: Registry | None = None,
) -> Architecture:
    """The model that `model` and `shape` declare, with initial weights drawn from `seed`.

    `model` and `shape` are names (of the zoo's own `registry.yaml`) or mappings as in the YAML; a model that has a
    shape of its own needs no other. `task`, if given, is checked against the model's architecture. Raises `SpecError`
    with every fault. The global generator is not moved.
    """
    library = open_library(registry=registry)
    reader = library.reader()
    given = Node(model, ("model",))
    node = library.expand("model", given, reader)
    if shape is None and "shape" not in node.value:
        raise SpecError([given.fault("it has no shape of its own; give one")])
    sizes = Node({} if shape is None else shape, ("shape",))
    model_spec, shape_spec = reader.sized(node, library.expand("shape", sizes, reader))
    task_spec = reader.part(Node(task, ("task",)), "task") if task is not None else None
    reader.finish()
    assert model_spec is not None and shape_spec is not None, "what cannot be read is a fault, and `finish` raises it"
    build_on_meta(model_spec, shape_spec, library.registry)
    if task_spec is not None:
        check_task(model_spec, shape_spec, bind_task(task_spec, shape_spec), task_spec, library.registry)
    made = make(model_spec, shape_spec, seed=seed, registry=library.registry)
    if model_spec.weights:
        load_matching(made, model_spec.weights)
    return made


def make(spec: ModelSpec, shape: Shape, *, seed: int = 0, registry: Registry | None = None) -> Architecture:
    """The module of a typed spec, initialised. Raises `SpecError`."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Builder(spec, shape, registry).build()
    initialise(model, seed)
    return model


def build_on_meta(spec: ModelSpec, shape: Shape, registry: Registry | None = None) -> Architecture:
    """The module without weights, on the meta device: what checks and counts need. A pass of two tokens is tried, so
    that parts that do not fit each other are refused here. Raises `SpecError`.
    """
    return build_and_run(spec, shape, registry)[0]


def bind_on_meta(spec: ModelSpec, shape: Shape, registry: Registry | None = None) -> Architecture:
    """The same, but no pass is tried. Raises `SpecError`."""
    with torch.device("meta"):
        return Builder(spec, shape, registry).build()


def drop_unused_slots(
    spec: ModelSpec, shape: Shape, registry: Registry | None = None, device: str = "meta"
) -> ModelSpec:
    """The spec without the slots that nothing in its model asks for. Raises what `build_on_meta` raises."""
    return spec.only(spec.slots.keys() - build_and_run(spec, shape, registry, device)[1].find_unused().keys())


def build_and_run(
    spec: ModelSpec, shape: Shape, registry: Registry | None, device: str = "meta"
) -> tuple[Architecture, Builder]:
    """A model that has passed two tokens, and the builder that made it. Raises `SpecError`."""
    try:
        with torch.device(device), torch.no_grad(), torch.random.fork_rng(devices=[]):
            builder = Builder(spec, shape, registry)
            model = builder.build()
            two = torch.zeros(1, 2, dtype=torch.long)
            model(two, two)
    except SpecError:
        raise
    except Exception as error:
        fault = spec.node.fault(f"the parts do not fit: {describe_error(error)}")
        own = None if isinstance(error, ValueError) else error
        raise SpecError([replace(fault, error=own)]) from error
    return model, builder


def describe_error(error: Exception) -> str:
    """An exception in one line; torch puts a trace of its own below that."""
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


def bind(part: PartSpec, given: Mapping[str, Any], parts: Callable[[PartSpec], Any] | None = None) -> Any:
    """Call a variant's target with what it asks for and its options.

    `parts` turns a part inside an option into what the constructor receives. A `ValueError` of the constructor
    becomes a fault where the part was written, and so does any other failure, as the plugin's own.
    """
    make_part = parts or (lambda p: functools.partial(bind, p, given))
    inside = {k: make_part(v) for k, v in {**part.options, **part.fixed}.items() if isinstance(v, PartSpec)}
    options = {k: v for k, v in {**part.options, **part.fixed, **inside}.items() if k not in part.requests}
    requested = [inside[r] if r in inside else given[r] for r in part.requests]
    assert part.target is not None, "a part that was read has its target"
    try:
        return part.target(*requested, **options)
    except SpecError:
        raise
    except ValueError as error:
        raise SpecError([part.fault(str(error))]) from error
    except Exception as error:
        whose = f"plugin '{part.entry.plugin}'" if part.entry else "its plugin"
        raise SpecError([replace(part.fault(f"{whose} failed with {describe_error(error)}"), error=error)]) from error


def bind_task(part: PartSpec, shape: Shape) -> Any:
    """A task with its data, its tokenizer and its metrics, nothing read yet."""
    task = bind(part, {"shape": shape.of_tokens}, parts=lambda inner: bind(inner, {}))
    if part.registry is not None:
        task.scorers = {name: bind_metric(part, name) for name in task.metrics}
    return task


def bind_metric(task: PartSpec, name: str) -> Metric:
    """The metric that a task names. Raises `SpecError`, as a failure of the task's plugin, if nobody offers it."""
    reader = Reader(task.registry, Node({}))
    part = reader.part(Node(name, task.node.path, task.node.document), "metric")
    if part is None:
        fault = task.fault("; ".join(fault.text for fault in reader.faults))
        raise SpecError([replace(fault, error=SpecError(reader.faults))])
    return bind(part, {})


def check_task(model: ModelSpec, shape: Shape, task: Task, part: PartSpec, registry: Registry) -> None:
    """Raise `SpecError` if the task asks for what the architecture cannot express."""
    chosen = model.architecture
    kind: Any = chosen.target  # a class of `Architecture`
    name, refused = f"architecture '{chosen.name}'", []
    if kind.needs_source and not task.has_source:
        ways = [task.source_hint, suggest_variants(registry, chosen, "needs_source", False)]
        refused.append(f"{name} reads a source, and task '{part.name}' has none; {', or '.join(filter(None, ways))}")
    if task.asks_in_target and not kind.autoregressive:
        refused.append(
            f"task '{part.name}' asks its questions inside the target, which {name} does not read; "
            f"{suggest_variants(registry, chosen, 'autoregressive', True)}"
        )
    faults = [Fault(text, part.node.path, part.node.fault("").where) for text in refused]
    needed = kind.positions_needed(task.source_len, task.target_len, task.aligned)
    for position in model.slots["position"].parts():
        with torch.device("meta"):
            limit = bind(position, {"shape": shape}).limit
        if limit is not None and limit < needed:
            faults.append(
                position.fault(
                    f"it has {limit} positions, and task '{part.name}' needs {needed} of {name}; "
                    f"raise max_len or shorten the task"
                )
            )
    if faults:
        raise SpecError(faults)


def suggest_variants(registry: Registry, part: PartSpec, fact: str, value: Any) -> str:
    """`use 'a' or 'b'`: the variants of the same slot whose class states this fact."""
    return f"use {list_variants(registry, part.slot, lambda target: getattr(target, fact) == value)}"


def list_variants(registry: Registry, slot: str, test: Callable[[Any], bool]) -> str:
    """`'a', 'b' or 'c'`: the variants of a slot whose target passes a test, 'another' if there is none."""
    found = []
    for entry in registry.variants(slot):
        try:
            if test(registry.load(entry)):
                found.append(f"'{entry.variant.name}'")
        except (AttributeError, SpecError):  # a function, which has no facts before it is called, or a broken plugin
            continue
    return " or ".join(filter(None, [", ".join(found[:-1]), *found[-1:]])) or f"another {slot}"


@dataclass
class Parts:
    """What an architecture asks for: its stacks and its head, over one vocabulary table."""

    builder: Builder
    shape: Shape

    def stack(
        self, name: str, *, depth: int, causal: bool, cross: bool = False, depths: Mapping[str, int] | None = None
    ) -> nn.Module:
        """A stack of `depth` layers; `depths` gives the layers of all stacks where there are several."""
        return self.builder.stack(name, depths or {name: depth}, causal, cross)

    def head(self) -> nn.Module:
        return self.builder.head()


class Builder:
    """Binds the parts of one model and keeps every fault."""

    def __init__(self, spec: ModelSpec, shape: Shape, registry: Registry | None = None):
        self.spec = spec
        self.shape = shape
        self.registry = registry or open_library().registry
        self.faults: list[Fault] = []
        self.table = nn.Embedding(shape.vocab_size, shape.embed_width)
        self.asked: set[str] = set()
        self.stacks: list[str] = []

    def build(self) -> Architecture:
        model = self.try_bind(self.spec.architecture, {"parts": Parts(self, self.shape)})
        if model is not None:
            self.refuse_unused()
        if self.faults:
            raise SpecError(dict.fromkeys(self.faults))
        return model

    def try_bind(self, part: PartSpec, given: Mapping[str, Any], parts=None) -> Any:
        """The bound part, or None and its faults kept."""
        try:
            return bind(part, given, parts)
        except SpecError as error:
            self.faults += error.faults
            return None

    def find_unused(self) -> dict[str, str]:
        """The slots of the spec that nothing in the model asked for, and why."""
        reasons = {
            "kernel": "no attention of this model asks for a kernel",
            "cross": f"architecture '{self.spec.architecture.name}' has no cross-attention",
        }
        return {slot: why for slot, why in reasons.items() if slot in self.spec.slots and slot not in self.asked}

    def refuse_unused(self) -> None:
        """What was written and serves nothing is a fault."""
        spec = self.spec
        for slot, why in self.find_unused().items():
            if slot in spec.given:
                self.faults.append(next(spec.slots[slot].parts()).fault(why))
        for chosen in spec.slots.values():
            for stack in chosen.stacks:
                if stack is not None and stack not in self.stacks:
                    text = f"architecture '{spec.architecture.name}' has no {stack}"
                    self.faults.append(chosen.node.fault(text, stack))

    def part(self, slot: str, stack: str, layer: int = 0) -> PartSpec:
        return self.layered(slot, stack).at(layer)

    def layered(self, slot: str, stack: str) -> Layered:
        if slot not in self.spec.slots:
            raise SpecError([self.spec.node.fault(f"the model says nothing of {slot}")])
        found = self.spec.slots[slot].of(stack)
        if found is None:
            node = self.spec.slots[slot].node
            raise SpecError([node.fault(f"{slot} says nothing of the {stack}")])
        return found

    def norm(self, stack: str, layer: int) -> Callable[..., nn.Module]:
        """A factory: `norm(dim=d_model)`."""
        part = self.part("norm", stack, layer)
        return lambda dim=self.shape.d_model: bind(part, {"dim": dim, "shape": self.shape})

    def head(self) -> nn.Module:
        stack = self.stacks[-1] if self.stacks else "decoder"
        given = {"shape": self.shape, "table": self.table, "norm": self.norm(stack, 0)}
        return self.try_bind(self.part("head", stack), given, self.inner(given)) or NoStep()

    def stack(self, name: str, depths: Mapping[str, int], causal: bool, cross: bool) -> nn.Module:
        self.stacks.append(name)
        depth, before = depths[name], len(self.faults)
        if depth > DEEPEST:
            raise ValueError(f"{depth:,} layers in one stack; at most {DEEPEST:,} can be built")
        given = {"shape": self.shape, "table": self.table, "norm": self.norm(name, 0)}
        embedding = self.try_bind(self.part("embedding", name), given, self.inner(given))
        entries = self.layered("position", name)
        width = embedding.width if embedding else self.shape.d_model
        shape = replace(self.shape, d_model=width, head_dim=self.shape.head_width)
        used = sorted({entries.index(i) for i in range(depth)})
        positions = {i: self.try_bind(entries.entries[i], {"shape": shape}) for i in used}
        distinct = range(min(self.spec.share or depth, depth))
        made = [self.layer(Place(name, i, depths, causal), positions[entries.index(i)], cross) for i in distinct]
        layers = [layer for layer in made if layer is not None]
        if len(self.faults) > before:
            return NoStep()
        last = layers[(depth - 1) % len(layers)]
        final = last.residual.final(self.norm(name, depth - 1))
        position_of = [used.index(entries.index(i)) for i in range(depth)]
        return Stack(embedding, list(positions.values()), position_of, layers, final, self.shape, causal)

    def layer(self, place: Place, position: Position | None, cross: bool) -> Layer | None:
        steps = {"attention": self.mixer("attention", place, position)}
        if cross:
            steps["cross"] = self.mixer("cross", place, Position(self.shape))
        given = {"shape": self.shape, "norm": self.norm(place.stack, place.index), "layer": place}
        steps["ffn"] = self.try_bind(self.part("ffn", place.stack, place.index), given, self.inner(given))
        steps = {name: step for name, step in steps.items() if not isinstance(step, NoStep)}
        given = {**given, "n_steps": len(steps)}
        residual = self.try_bind(self.part("residual", place.stack, place.index), given, self.inner(given))
        if residual is None or None in steps.values():
            return None
        return Layer(residual, self.shape.dropout, {name: step for name, step in steps.items() if step is not None})

    def inner(self, given: Mapping[str, Any]) -> Callable[[PartSpec], Callable]:
        """What a part inside an option becomes: a factory that takes over what its owner was given."""
        given = {"dim": self.shape.d_model, **given}
        return lambda part: lambda **more: bind(part, {**given, **more}, self.inner({**given, **more}))

    def mixer(self, step: str, place: Place, position: Position | None) -> nn.Module | None:
        """The attention of one step of one layer, with its needs compared to what it supports."""
        slot = step if step in self.spec.slots else "attention"
        part = self.part(slot, place.stack, place.index)
        asked = frozenset() if position is None else required_support(type(position))
        needs = asked | ({"cross"} if step == "cross" else set() if place.causal else {"bidirectional"})
        self.asked.add(slot)
        learned = position is not None and "bias" in asked and any(True for _ in position.parameters())

        def kernel(*, n_heads: int, head_dim: int, needs: tuple[str, ...] = (), chosen: PartSpec | None = None):
            if chosen is None:
                self.asked.add("kernel")
                chosen = self.part("kernel", place.stack, place.index)
            all_needs = frozenset(needs) | ({"bias"} & asked) | ({"cross"} if step == "cross" else set())
            slow = {"learned-bias"} if learned else set()
            given = {"n_heads": n_heads, "head_dim": head_dim, "needs": all_needs | slow}
            made = bind(chosen, given)
            lacking = sorted(all_needs - made.supports)
            if lacking:
                names = list_variants(self.registry, "kernel", lambda target: all_needs <= target.supports)
                what = " and ".join(lacking)
                raise SpecError([chosen.fault(f"it does not support {what}, which is needed here; use {names}")])
            return made

        given = {"shape": self.shape, "norm": self.norm(place.stack, place.index), "layer": place, "kernel": kernel}
        inner = self.inner(given)
        parts = lambda p: functools.partial(kernel, chosen=p) if p.slot == "kernel" else inner(p)  # noqa: E731
        try:
            made = bind(part, given, parts)
        except SpecError as error:
            self.faults += error.faults
            return None
        supports = frozenset(getattr(made, "supports", ()))
        if position is not None:
            self.faults += self.refusals(part, place, needs - supports, supports)
        return made

    def refusals(self, part: PartSpec, place: Place, lacking: frozenset, supports: frozenset) -> list[Fault]:
        """Why this attention cannot serve in this place, and what can."""
        found = []
        if "cross" in lacking:
            names = list_variants(self.registry, "attention", lambda target: "cross" in target.supports)
            found.append(f"it does not support cross; write 'cross:' with {names}")
        if "bidirectional" in lacking:
            names = list_variants(self.registry, "attention", lambda target: "bidirectional" in target.supports)
            whose = f"the {place.stack} of architecture '{self.spec.architecture.name}'"
            found.append(f"it does not support bidirectional, which {whose} needs; use {names}")
        if closed := sorted(lacking - {"cross", "bidirectional"}):
            position = self.part("position", place.stack, place.index)
            names = list_variants(self.registry, "position", lambda target: required_support(target) <= supports)
            what = " and ".join(closed)
            found.append(f"it does not support {what}, which position '{position.name}' needs; use {names}")
        return [part.fault(text) for text in found]
