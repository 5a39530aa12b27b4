"""The JSON schema of a document, with the options of every variant on offer, so that an editor can complete them."""

from __future__ import annotations

import re
from typing import Any

from zoo.declare.library import own_document
from zoo.declare.shape import SIZES, Shape
from zoo.declare.signature import REQUIRED, Field, adapter, fields_of, read
from zoo.declare.spec import DEFAULTED, MODEL_SLOTS, WHOLE, Published, Train
from zoo.faults import SpecError
from zoo.hooks import SLOTS

from .comparison import KEYS
from .design import DESIGNS
from .rows import BEGINNINGS, COMBINED, SIDES
from .rules import MATCHES, Judging, Match, WrittenClaim
from .tuning_rules import TUNED, Draw, Halving, Range, TuneSeeds

VERSION = "https://json-schema.org/draft/2020-12/schema"
NAME = {"type": "string"}
NULL = {"type": "null"}
COUNT = {"type": "integer", "minimum": 1}
FACTS = {
    "shape": {"anyOf": [NAME, {"$ref": "#/$defs/sizes"}]},
    "published": {"$ref": "#/$defs/published"},
    "weights": {"anyOf": [NAME, NULL]},
}
"""What a model says of itself beside its parts."""


def schema(registry) -> dict[str, Any]:
    """The schema of a whole file."""
    definitions = {slot: part(registry, slot) for slot in SLOTS}
    parts = {slot: value(slot) for slot in MODEL_SLOTS}
    definitions |= {
        "shape": closed({"like": allow_name("shape"), **{name: field(f) for name, f in SIZES.items()}}),
        "sizes": closed({"like": allow_name("shape"), **record(Shape)}),
        "published": closed(record(Published), ("parameters",)),
        "train": closed(record(Train)),
        "model": closed({"like": allow_name("model"), "share": COUNT, **FACTS, **parts}),
        "row": closed({side: side_of(side) for side in SIDES}),
        "comparison": comparison(),
    }
    sections = {
        "include": many(NAME, 0),
        "plugins": {"anyOf": [many(NAME, 0), closed({key: many(NAME, 0) for key in ("files", "require", "disable")})]},
        "defaults": closed({slot: value(slot) for slot in DEFAULTED}),
        "shapes": each(allow_name("shape")),
        "models": each(allow_name("model")),
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


def many(schema: dict[str, Any], least: int = 1) -> dict[str, Any]:
    return {"type": "array", "items": schema, "minItems": least}


def ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/$defs/{name}"}


def allow_name(kind: str) -> dict[str, Any]:
    """A name, or what the name would stand for."""
    return {"anyOf": [NAME, ref(kind)]}


def side_of(side: str) -> dict[str, Any]:
    return allow_name(side) if side in ("model", "shape") else ref(side)


def record(cls: type) -> dict[str, Any]:
    return {name: field(f) for name, f in fields_of(cls).items()}


def field(f: Field) -> dict[str, Any]:
    if f.slot is not None:
        return {"anyOf": [ref(f.slot), NULL]} if f.default is None else ref(f.slot)
    found = adapter(f.annotation).json_schema()
    if f.default is REQUIRED:
        return found
    return {**found, "default": adapter(f.annotation).dump_python(f.default, mode="json", warnings=False)}


def part(registry, slot: str) -> dict[str, Any]:
    """A part of a slot: its name, a mapping with its name and options, or some options of the default."""
    names, forms = [], []
    options: dict[str, list[dict[str, Any]]] = {}
    for entry in registry.variants(slot):
        variant = entry.variant
        try:
            own = read(registry.load(entry), slot, variant.fixed).options
        except (SpecError, ValueError):
            continue  # `zoo plugins` says what is wrong with it
        owners = "|".join(re.escape(owner) for owner in entry.owners if owner)
        spelled = {"const": registry.spelling(entry), "description": variant.summary}
        name = {"anyOf": [spelled, {"type": "string", "pattern": f"^({owners}):{re.escape(variant.name)}$"}]}
        fields = {option: field(f) for option, f in own.items()}
        names.append(name)
        forms.append(closed({"name": name, **fields}, ("name", *(o for o, f in own.items() if f.default is REQUIRED))))
        for option, found in fields.items():
            options.setdefault(option, []).append(found)
    if slot in own_document().value["defaults"]:
        forms.append(closed({option: {"anyOf": found} for option, found in options.items()}))
    return {"description": SLOTS[slot].role, "anyOf": [*names, *forms]}


def value(slot: str) -> dict[str, Any]:
    """The four forms of a model's slot; a slot that a model fills once has no list, and the architecture no stacks."""
    one = ref("attention" if slot == "cross" else slot)
    if slot not in MODEL_SLOTS:
        return one
    group = {"anyOf": [one, many(one) | ({"maxItems": 1} if slot in WHOLE else {})]}
    forms = {"repeat": group} if slot in WHOLE else {"first": group, "repeat": group}
    layered = {"anyOf": [*group["anyOf"], closed(forms, ("repeat",))]}
    if slot == "architecture":
        return layered
    return {"anyOf": [*layered["anyOf"], closed({"encoder": layered, "decoder": layered})]}


def comparison() -> dict[str, Any]:
    kinds = {
        **{side: side_of(side) for side in SIDES},
        "models": many(allow_name("model")),
        "vary": vary(),
        "design": {"enum": list(DESIGNS)},
        "only": many({"type": "object"}),
        "except": many({"type": "object"}),
        "rows": {**each(ref("row")), "minProperties": 1},
        "baseline": {"anyOf": [NAME, NULL]},
        "references": many(ref("reference")),
        **record(Judging),
        "match": match(),
        "tune": tune(),
        "halving": closed(record(Halving)),
        "claims": many(closed(record(WrittenClaim), ("row", "is"))),
    }
    alone = {key: False for key in COMBINED if key not in ("model", "models")}
    rows = [{"required": ["model"]}, {"required": ["models"]}, {"required": ["rows"], "properties": alone}]
    whole = {"required": ["vary"], "properties": {"vary": {"required": ["model"]}}}
    return {**closed({key: kinds[key] for key in KEYS}), "oneOf": [*rows, whole]}


def vary() -> dict[str, Any]:
    """Lists of values by path; those inside a part or a setting are anything."""
    whole = {slot: many(value(slot)) for slot in MODEL_SLOTS} | {"share": many(COUNT)}
    whole |= {side: many(side_of(side)) for side in SIDES}
    inside = {f"^({'|'.join(BEGINNINGS)})\\.": many({})}
    return {**closed(whole), "patternProperties": inside}


def match() -> dict[str, Any]:
    """What rows agree in: its name, or a mapping with the size by which."""
    forms: dict[tuple[str, ...], list[str]] = {}
    for what, ways in MATCHES.items():
        forms.setdefault(ways, []).append(what)
    whole = [
        closed({**record(Match), "what": {"enum": names}, "by": {"enum": list(ways)}}, ("what",))
        for ways, names in forms.items()
    ]
    return {"anyOf": [{"enum": list(MATCHES)}, *whole]}


def tune() -> dict[str, Any]:
    """Lists of values by path in `train`, or ranges where values are drawn, and the seeds of the trials."""
    drawn, seeds = record(Draw), record(TuneSeeds)
    span = closed(record(Range), ("from", "to"))
    fields = {name: f for name, f in fields_of(Train).items() if name in TUNED}
    lists = {name: many(field(f)) for name, f in fields.items()}
    spans = {name: axis if fields[name].slot else {"anyOf": [axis, span]} for name, axis in lists.items()}
    forms = []
    for own, axes, inside in (({}, lists, many({})), (drawn, spans, {"anyOf": [many({}), span]})):
        alone = {"properties": dict.fromkeys((*seeds, *own), True), "additionalProperties": False}
        whole = closed({**axes, **seeds, **own}, tuple(own)[:1])
        forms.append({**whole, "patternProperties": {f"^({'|'.join(TUNED)})\\.": inside}, "not": alone})
    return {"anyOf": forms}
