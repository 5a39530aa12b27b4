"""The rows of a comparison as they were written: combinations of models and of what varies, or row by row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from zoo.declare.library import Library
from zoo.declare.reader import Reader, merge_options
from zoo.declare.signature import show
from zoo.declare.spec import MODEL_SLOTS, Node
from zoo.faults import SpecError, nearest

from .design import DESIGNS, Condition, Conditions, Pick

SIDES = ("model", "shape", "task", "train")
"""What a row consists of; a path in `vary` begins with one of these or with a key of the model."""
BEGINNINGS = (*MODEL_SLOTS, "share", *SIDES)
COMBINED = ("model", "models", "vary", "design", "only", "except")
"""What makes rows where they are not written one by one."""

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


def read_raw_rows(node: Node, library: Library, reader: Reader) -> list[Raw]:
    """All rows of a comparison; faults go to the reader."""
    base = {side: node.get(side) for side in SIDES if side in node.value}
    if "rows" not in node.value:
        return combine(base, node, library, reader)
    for key in COMBINED:
        if key in node.value:
            reader.fail(node.fault(f"beside 'rows' there can be no '{key}'", key))
    rows = reader.mapping(node.get("rows"), "rows")
    if rows.value == {}:
        reader.fail(rows.fault("rows is empty; it should have one at least"))
    out = []
    for name, row in rows.items():
        if not isinstance(name, str):
            reader.fail(rows.fault(f"the name {show(name)} is no text; put it in quotes", name))
        elif (sides := overlay_row(base, row, library, reader)) is not None:
            out.append(Raw(name, row, sides))
    return out


def combine(base: Sides, node: Node, library: Library, reader: Reader) -> list[Raw]:
    """The rows that the design chooses among all models with one value per path of `vary`."""
    vary = reader.mapping(node.get("vary"), "vary") if "vary" in node.value else Node({})
    changes = read_axes(vary, reader)
    given = [key for key in ("model", "models") if key in node.value]
    if len(given) + any(axis[0].steps == ("model",) for axis in changes) != 1:
        reader.fail(node.fault("a comparison needs either 'model' or 'models' (or 'rows')"))
        return []
    models = read_list(node.get("models"), reader) if "models" in given else [base.get("model", empty_at(node))]
    if not models:
        return []
    named = {"model": list(map(describe_value, models))} if len(models) > 1 else {}
    named |= {axis[0].axis: [describe_value(change.value) for change in axis] for axis in changes}
    rows = []
    for pick in choose_picks(node, named, reader):
        first, *rest = pick if len(models) > 1 else (0, *pick)
        model, chosen = models[first], [axis[i] for axis, i in zip(changes, rest, strict=True)]
        names = [describe_value(model)] if len(models) > 1 or not chosen else []
        name = ", ".join([*names, *(change.name for change in chosen)])
        cell = {"model": describe_value(model)} if len(models) > 1 else {}
        cell |= {change.axis: describe_value(change.value) for change in chosen}
        sides = overlay_row(base, Node({"model": model}, node.path, node.document), library, reader)
        for change in sorted(chosen, key=lambda change: len(change.steps)):  # the whole before what is in it
            sides = sides and apply_change(sides, change, library, reader)
        if sides is not None:
            rows.append(Raw(name, node, sides, cell))
    return rows


def choose_picks(node: Node, axes: Mapping[str, Sequence[str]], reader: Reader) -> list[Pick]:
    """The combinations of the axes' values that become rows, by number; faults go to the reader."""
    written = node.get("design") if "design" in node.value else node
    name = written.value if "design" in node.value else "grid"
    if name not in list(DESIGNS):
        near = nearest(name, DESIGNS) if isinstance(name, str) else ""
        text = f"design is {show(written.plain())}; it should be one of {', '.join(DESIGNS)}{near}"
        reader.fail(written.fault(text))
        return []
    before = len(reader.faults)
    only, without = (read_conditions(node, key, axes, reader) for key in ("only", "except"))
    sizes = [len(values) for values in axes.values()]
    try:
        chosen: list[Pick] = DESIGNS[name](sizes, Conditions(only, without)) if axes else [()]
    except ValueError as error:
        reader.fail(written.fault(f"design {show(name)}: {error}"))
        return []
    if not chosen and len(reader.faults) == before:
        reader.fail(node.fault("the conditions leave no row", "only" if only else "except"))
    return chosen


def read_conditions(node: Node, key: str, axes: Mapping[str, Sequence[str]], reader: Reader) -> tuple[Condition, ...]:
    """What stands under `only` or `except`: mappings of axes to one of their values, or to a list of these."""
    out = []
    for child in read_list(node.get(key), reader) if key in node.value else ():
        found: dict[int, frozenset[int]] = {}
        for axis, value in reader.mapping(child, f"what stands under {show(key)}").items():
            name = str(axis).removeprefix("model.")
            if name not in axes:
                known = f"; what varies is {', '.join(axes) or 'nothing'}"
                reader.fail(child.fault(f"{show(axis)} does not vary{nearest(name, axes) or known}", axis))
            else:
                found[list(axes).index(name)] = match_values(value, name, axes[name], reader)
        if found:
            out.append(found)
    return tuple(out)


def match_values(node: Node, name: str, known: Sequence[str], reader: Reader) -> frozenset[int]:
    """Which values of an axis are meant, by number: the one of this name, or those of a list."""
    wanted = (
        [node] if describe_value(node) in known or not isinstance(node.value, list) else [v for _, v in node.items()]
    )
    for child in wanted:
        if (word := describe_value(child)) not in known:
            near = nearest(word, known) or f"; it has {', '.join(known)}"
            reader.fail(child.fault(f"{name} has no value {show(word)} here{near}"))
    return frozenset(known.index(word) for child in wanted if (word := describe_value(child)) in known)


def read_axes(vary: Node, reader: Reader) -> list[list[Change]]:
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
            out[steps] = [Change(steps, value, name_change(steps, value)) for value in read_list(values, reader)]
    return [axis for axis in out.values() if axis]


def name_change(steps: tuple[str, ...], value: Node) -> str:
    """What a value of an axis is called in the name of its row."""
    return describe_value(value) if isinstance(value.value, str | Mapping) else f"{steps[-1]}={describe_value(value)}"


def describe_value(node: Node) -> str:
    """A raw value as a short name."""
    value = node.plain()
    if isinstance(value, Mapping):
        options = [f"{k}={v if isinstance(v, str) else show(v)}" for k, v in value.items() if k not in ("name", "like")]
        return " ".join([str(value.get("name", value.get("like", ""))), *options]).strip() or "default"
    return value if isinstance(value, str) else show(value)


def read_list(node: Node, reader: Reader) -> list[Node]:
    if isinstance(node.value, list) and node.value:
        return [child for _, child in node.items()]
    reader.fail(node.fault(f"it is {show(node.plain())}; it should be a list of at least one"))
    return []


def overlay_row(base: Sides, row: Node, library: Library, reader: Reader) -> Sides | None:
    """The sides of one row, models and shapes expanded; what the row writes replaces what all rows share."""
    sides = {side: empty_at(row) for side in ("model", "shape", "train")} | dict(base)
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


def apply_change(sides: Sides, change: Change, library: Library, reader: Reader) -> Sides | None:
    """The sides with one value replaced: a whole side, or what stands inside it."""
    side, *steps = change.steps
    value = change.value
    new = put_value(sides.get(side, empty_at(value)), steps, value) if steps else value
    return overlay_row(sides, Node({side: new}, value.path, value.document), library, reader)


def put_value(node: Node, steps: list[str], value: Node) -> Node:
    if not steps:
        return merge_options(node, value)
    inside = dict(node.items()) if isinstance(node.value, Mapping) else {"name": node}
    child = inside.get(steps[0], empty_at(value))
    return Node({**inside, steps[0]: put_value(child, steps[1:], value)}, node.path, node.document)


def empty_at(node: Node) -> Node:
    """An empty mapping in place of one that nobody wrote; its faults are shown where `node` is."""
    return Node({}, node.path, node.document)
