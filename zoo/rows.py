"""The rows of a comparison as they were written: models times every combination of `vary`, or row by row."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field

from .faults import SpecError, nearest
from .library import Library
from .reader import Reader, merged
from .signature import show
from .spec import MODEL_SLOTS, Node

SIDES = ("model", "shape", "task", "train")
"""What a row consists of; a path in `vary` begins with one of these or with a key of the model."""
BEGINNINGS = (*MODEL_SLOTS, "share", *SIDES)

Sides = Mapping[str, Node]


@dataclass(frozen=True)
class Raw:
    """A row: its name, where it was written, its sides, models and shapes expanded, and its value on every axis."""

    name: str
    node: Node
    sides: Sides
    cell: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Change:
    """One value of one axis of `vary`: the steps that lead to it, and what it is called."""

    steps: tuple[str, ...]
    value: Node
    name: str

    @property
    def axis(self) -> str:
        """The path as one writes it: that of a slot begins with the slot."""
        return ".".join(self.steps[1:] if self.steps[0] == "model" and len(self.steps) > 1 else self.steps)


def raw_rows(node: Node, library: Library, reader: Reader) -> list[Raw]:
    """All rows of a comparison; faults go to the reader."""
    base = {side: node.get(side) for side in SIDES if side in node.value}
    if "rows" not in node.value:
        return combinations(base, node, library, reader)
    for key in ("model", "models", "vary"):
        if key in node.value:
            reader.fail(node.fault(f"beside 'rows' there can be no '{key}'", key))
    rows = reader.mapping(node.get("rows"), "rows")
    if rows.value == {}:
        reader.fail(rows.fault("rows is empty; it should have one at least"))
    out = []
    for name, row in rows.items():
        if not isinstance(name, str):
            reader.fail(rows.fault(f"the name {show(name)} is no text; put it in quotes", name))
        elif (sides := overlay(base, row, library, reader)) is not None:
            out.append(Raw(name, row, sides))
    return out


def combinations(base: Sides, node: Node, library: Library, reader: Reader) -> list[Raw]:
    """A row for every model and every choice of one value per path of `vary`."""
    vary = reader.mapping(node.get("vary"), "vary") if "vary" in node.value else Node({})
    changes = axes(vary, reader)
    given = [key for key in ("model", "models") if key in node.value]
    if len(given) + any(axis[0].steps == ("model",) for axis in changes) != 1:
        reader.fail(node.fault("a comparison needs either 'model' or 'models' (or 'rows')"))
        return []
    models = listed(node.get("models"), reader) if "models" in given else [base.get("model", beside(node))]
    rows = []
    for model, *chosen in itertools.product(models, *changes):
        names = [label(model)] if len(models) > 1 or not chosen else []
        name = ", ".join([*names, *(change.name for change in chosen)])
        cell = {"model": label(model)} if len(models) > 1 else {}
        cell |= {change.axis: label(change.value) for change in chosen}
        sides = overlay(base, Node({"model": model}, node.path, node.document), library, reader)
        for change in sorted(chosen, key=lambda change: len(change.steps)):  # the whole before what is in it
            sides = sides and changed(sides, change, library, reader)
        if sides is not None:
            rows.append(Raw(name, node, sides, cell))
    return rows


def axes(vary: Node, reader: Reader) -> list[list[Change]]:
    """The values of every path that `vary` names."""
    out: dict[tuple[str, ...], list[Change]] = {}
    for key, values in vary.items():
        path = str(key)
        first, *rest = path.split(".")
        steps = (first, *rest) if first in SIDES else ("model", first, *rest)
        if first not in BEGINNINGS:
            known = f"; a path begins with a slot of the model or with {', '.join(SIDES)}"
            reader.fail(vary.fault(f"vary has no {show(key)}{nearest(first, BEGINNINGS) or known}", key))
        elif steps in out:
            reader.fail(vary.fault(f"vary has {show(key)} twice", key))
        else:
            out[steps] = [Change(steps, value, title(steps, value)) for value in listed(values, reader)]
    return [axis for axis in out.values() if axis]


def title(steps: tuple[str, ...], value: Node) -> str:
    """What a value of an axis is called in the name of its row."""
    return label(value) if isinstance(value.value, str | Mapping) else f"{steps[-1]}={label(value)}"


def label(node: Node) -> str:
    """A raw value as a short name."""
    value = node.plain()
    if isinstance(value, Mapping):
        options = [f"{k}={v if isinstance(v, str) else show(v)}" for k, v in value.items() if k not in ("name", "like")]
        return " ".join([str(value.get("name", value.get("like", ""))), *options]).strip() or "default"
    return value if isinstance(value, str) else show(value)


def listed(node: Node, reader: Reader) -> list[Node]:
    if isinstance(node.value, list) and node.value:
        return [child for _, child in node.items()]
    reader.fail(node.fault(f"it is {show(node.plain())}; it should be a list of at least one"))
    return []


def overlay(base: Sides, row: Node, library: Library, reader: Reader) -> Sides | None:
    """The sides of one row, models and shapes expanded; what the row writes replaces what all rows share."""
    sides = {side: beside(row) for side in ("model", "shape", "train")} | base
    for key, child in reader.mapping(row, "a row").items():
        if key in SIDES:
            sides[key] = child
        else:
            reader.fail(row.fault(f"a row has no {show(key)}{nearest(key, SIDES)}", key))
    try:
        return sides | {kind: library.expand(kind, sides[kind], reader) for kind in ("model", "shape")}
    except SpecError as error:
        reader.faults += error.faults
        return None


def changed(sides: Sides, change: Change, library: Library, reader: Reader) -> Sides | None:
    """The sides with one value replaced: a whole side, or what stands inside it."""
    side, *steps = change.steps
    value = change.value
    new = put(sides.get(side, beside(value)), steps, value) if steps else value
    return overlay(sides, Node({side: new}, value.path, value.document), library, reader)


def put(node: Node, steps: list[str], value: Node) -> Node:
    if not steps:
        return merged(node, value)
    inside = dict(node.items()) if isinstance(node.value, Mapping) else {"name": node}
    child = inside.get(steps[0], beside(value))
    return Node({**inside, steps[0]: put(child, steps[1:], value)}, node.path, node.document)


def beside(node: Node) -> Node:
    """An empty mapping in place of one that nobody wrote; its faults are shown where `node` is."""
    return Node({}, node.path, node.document)
