"""The JSON schema of a document, with the options of every variant on offer, so that an editor can complete them."""

from __future__ import annotations

from typing import Any

from .compare import KEYS
from .faults import SpecError
from .hooks import SLOTS
from .shape import Shape
from .signature import REQUIRED, Field, adapter, fields_of, read
from .spec import MODEL_SLOTS, Train

NAME = {"type": "string"}
VERSION = "https://json-schema.org/draft/2020-12/schema"


def schema(registry) -> dict[str, Any]:
    """The schema of a whole file."""
    definitions = {slot: part(registry, slot) for slot in SLOTS}
    definitions |= {
        "shape": record(Shape),
        "train": record(Train),
        "model": model(),
        "row": closed({"model": named("model"), "shape": named("shape"), "task": ref("task"), "train": ref("train")}),
        "comparison": comparison(),
    }
    sections = {
        "plugins": {"anyOf": [many(NAME), closed({key: many(NAME) for key in ("files", "require", "disable")})]},
        "defaults": closed({slot: value(slot) for slot in (*MODEL_SLOTS, *SLOTS)}),
        "shapes": each(ref("shape")),
        "models": each(named("model")),
        "comparisons": each(ref("comparison")),
    }
    return {"$schema": VERSION, "title": "Transformer Zoo", **closed(sections), "$defs": definitions}


def closed(properties: dict[str, Any], required: tuple[str, ...] = ()) -> dict[str, Any]:
    """A mapping of these keys and no others."""
    needs = {"required": list(required)} if required else {}
    return {"type": "object", "properties": properties, **needs, "additionalProperties": False}


def each(schema: dict[str, Any]) -> dict[str, Any]:
    """A mapping of any names to values of one kind."""
    return {"type": "object", "additionalProperties": schema}


def many(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": schema, "minItems": 1}


def ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/$defs/{name}"}


def named(kind: str) -> dict[str, Any]:
    """A name, or what the name would stand for."""
    return {"anyOf": [NAME, ref(kind)]}


def field(f: Field) -> dict[str, Any]:
    if f.slot is not None:
        return ref(f.slot)
    found = adapter(f.annotation).json_schema()
    return found if f.default is REQUIRED else {**found, "default": adapter(f.annotation).dump_python(f.default, mode="json")}


def record(cls: type) -> dict[str, Any]:
    return closed({"like": NAME, **{name: field(f) for name, f in fields_of(cls).items()}} if cls is Shape else
                  {name: field(f) for name, f in fields_of(cls).items()})  # fmt: skip


def part(registry, slot: str) -> dict[str, Any]:
    """A variant of a slot: its name, or a mapping with its name and its options."""
    names, forms = [], []
    for entry in registry.variants(slot):
        variant = entry.variant
        try:
            options = read(registry.load(entry), slot, variant.fixed).options
        except (SpecError, ValueError, NameError):
            continue  # `zoo plugins` says what is wrong with it
        names.append({"const": variant.name, "description": variant.summary})
        properties = {"name": {"const": variant.name}, **{name: field(f) for name, f in options.items()}}
        required = ("name", *(name for name, f in options.items() if f.default is REQUIRED))
        forms.append(closed(properties, required))
    return {"description": SLOTS[slot], "anyOf": [*names, *forms]}


def value(slot: str) -> dict[str, Any]:
    """The four forms of a model's slot."""
    one = ref("attention" if slot == "cross" else slot)
    if slot not in MODEL_SLOTS:
        return one
    layered = {"anyOf": [one, many(one), closed({"first": group(one), "repeat": group(one)}, ("repeat",))]}
    return {"anyOf": [*layered["anyOf"], closed({"encoder": layered, "decoder": layered})]}


def group(one: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [one, many(one)]}


def model() -> dict[str, Any]:
    slots = {slot: value(slot) for slot in MODEL_SLOTS}
    return closed({"like": NAME, "share": {"type": "integer", "minimum": 1}, **slots})


def comparison() -> dict[str, Any]:
    kinds = {
        "model": named("model"),
        "models": many(named("model")),
        "shape": named("shape"),
        "task": ref("task"),
        "train": ref("train"),
        "vary": each(many({})),
        "rows": each(ref("row")),
        "seeds": {"anyOf": [{"type": "integer", "minimum": 1}, many({"type": "integer"})]},
        "baseline": NAME,
        "references": many(ref("reference")),
    }
    return closed({key: kinds[key] for key in KEYS})
