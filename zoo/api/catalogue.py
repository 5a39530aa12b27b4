"""What there is: variants by slot, whole models, and what one of them is. Listing variants needs no torch."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zoo.faults import SpecError, nearest
from zoo.hooks import SLOTS
from zoo.registry import Entry, Registry, discover

from .records import Records

if TYPE_CHECKING:
    from zoo.declare.library import Library
    from zoo.declare.signature import Field
    from zoo.model.card import Card

MODELS = ("model", "models")
"""What may stand for a slot, to mean whole models."""


@dataclass(frozen=True)
class VariantRecord:
    """A variant and the plugin that offers it."""

    slot: str
    name: str
    summary: str
    paper: str
    plugin: str
    distribution: str
    version: str
    source: str


@dataclass(frozen=True)
class ModelRecord:
    """A model of the zoo's own `registry.yaml`; `parameters` and `paper` are as published, None where it is not."""

    name: str
    parameters: int | None
    paper: str | None


@dataclass(frozen=True)
class OptionRecord:
    """An option of a variant: what it takes, and what it is unless given."""

    name: str
    expected: str
    default: str


@dataclass(frozen=True, repr=False)
class VariantDetails:
    """A variant explained. `doc` holds the formula, `fixed` what its name decides."""

    variant: VariantRecord
    doc: str
    fixed: Mapping[str, Any]
    options: Records[OptionRecord]

    @property
    def title(self) -> str:
        return f"{self.variant.slot}:{self.variant.name}"

    @property
    def body(self) -> str:
        """All that stands after the title."""
        from zoo.declare.signature import show as spell

        variant = self.variant
        doc = f"\n\n{self.doc}" if self.doc else ""
        fixed = ", ".join(f"{name}={spell(value)}" for name, value in self.fixed.items())
        width = max((len(option.name) for option in self.options), default=0)
        lines = [f"  {each.name:{width}}  {each.expected} ({each.default})" for each in self.options]
        return "\n".join([
            f"  {variant.summary}{doc}",
            *(["", f"fixes: {fixed}"] if fixed else []),
            "",
            "options:" if lines else "options: none",
            *lines,
            "",
            f"paper: {variant.paper or 'none'}",
            f"from: {variant.distribution} {variant.version}, plugin '{variant.plugin}', {variant.source}",
        ])  # fmt: skip

    @property
    def text(self) -> str:
        return self.title + self.body

    def __repr__(self) -> str:
        return self.text


@dataclass(frozen=True, repr=False)
class ModelDetails:
    """A whole model explained; `card` holds its parts, sizes, parameters and costs as numbers."""

    card: Card

    @property
    def title(self) -> str:
        return f"model:{self.card.name}"

    @property
    def body(self) -> str:
        """All that stands after the title."""
        from zoo.model.card import compare_with_published, list_facts

        card, sections = self.card, list_facts(self.card)
        width = max(len(head) for rows in sections.values() for head, _ in rows)
        lines = [f"  {', '.join(filter(None, [f'{card.total:,} parameters', compare_with_published(card)]))}"]
        for section, rows in sections.items():
            lines += ["", f"{section}:"]
            right = max(len(text) for _, text in rows) if section == "parameters" else 0
            for head, text in rows:
                lines.append(f"  {head:{width}}  {text:>{right}}{self._share(head) if right else ''}")
        published = card.spec.published
        return "\n".join([*lines, *(["", f"paper: {published.paper or 'none'}"] if published else [])])

    def _share(self, part: str) -> str:
        counts = self.card.parameters
        return f"  {counts[part] / self.card.total:6.1%}" if part in counts else ""

    @property
    def text(self) -> str:
        return self.title + self.body

    def __repr__(self) -> str:
        return self.text


def list_variants(slot: str | None = None, glob: str | None = None) -> Records[VariantRecord] | Records[ModelRecord]:
    """The variants on offer, as records that print as a table.

    `slot` is a place for a part ("position", "norm", "task", …; all of them unless given), or "models" for the whole
    models that come with the zoo. `glob` selects names: "r*", "myplugin:*". Raises `SpecError` for a slot that does
    not exist.
    """
    if slot in MODELS:
        return find_models(glob)
    return Records(map(variant_record, discover().variants(slot, glob)))


def variant_record(entry: Entry) -> VariantRecord:
    variant = entry.variant
    origin = (entry.plugin, entry.distribution, entry.version, entry.source)
    return VariantRecord(variant.slot, variant.name, variant.summary, variant.paper, *origin)


def find_models(glob: str | None = None) -> Records[ModelRecord]:
    """The zoo's own models whose name matches. Raises `SpecError` if there is none."""
    from zoo.declare.library import own_document

    models = own_document().value["models"]
    found = [
        ModelRecord(name, *(model.get("published", {}).get(key) for key in ("parameters", "paper")))
        for name, model in models.items()
        if fnmatchcase(name, glob or "*")
    ]
    if not found:
        raise SpecError(f"no model is called '{glob}'{nearest(glob or '', models)}")
    return Records(found)


def show(
    what: str,
    *,
    file: str | Path | None = None,
    shape: str | Mapping[str, Any] | None = None,
    context: int | None = None,
) -> VariantDetails | ModelDetails:
    """Explain a variant, as "position:rope", or a whole model, as "model:gpt2"; the record prints as text.

    A model may be one of `file`, and be shown at another `shape`: a name, or sizes as in YAML. Its costs are counted
    for a row of `context` tokens, `max_len` of them unless given: FLOPs of a forward pass per token, bytes of the
    cache in float16. Raises `SpecError` for names that do not exist and for parts that do not fit.
    """
    from zoo.declare.library import open_library

    slot, colon, name = what.partition(":")
    if slot == "model" and colon:
        return show_model(open_library(file), name, shape, context)
    return show_variant(discover(), what)


def show_model(
    library: Library, name: str, shape: str | Mapping[str, Any] | None = None, context: int | None = None
) -> ModelDetails:
    """The model of that name in a library. Raises `SpecError`."""
    from zoo.model.card import make_card

    return ModelDetails(make_card(library, name, shape, context))


def show_variant(registry: Registry, what: str) -> VariantDetails:
    """The variant that `slot:name` names. Raises `SpecError`."""
    from zoo.declare.signature import read

    slot, colon, name = what.partition(":")
    if not colon:
        raise SpecError(f"'{what}' names no slot; write SLOT:NAME, such as '{next(iter(SLOTS))}:{what}'")
    if slot not in SLOTS:
        raise SpecError(f"there is no slot '{slot}'{nearest(slot, SLOTS)}")
    entry = registry.find(slot, name)
    target = registry.load(entry)
    try:
        signature = read(target, slot, entry.variant.fixed)
    except ValueError as error:
        raise SpecError(f"{what} of plugin '{entry.plugin}' cannot be used: {error}") from error
    options = (
        OptionRecord(option.name, option.expected, describe_default(option, registry))
        for option in signature.options.values()
    )
    return VariantDetails(variant_record(entry), inspect.getdoc(target) or "", entry.variant.fixed, Records(options))


def describe_default(option: Field, registry: Registry) -> str:
    """What an option is unless it is given."""
    from zoo.declare.library import open_library
    from zoo.declare.signature import REQUIRED
    from zoo.declare.signature import show as spell
    from zoo.declare.spec import MODEL_SLOTS

    if option.default is REQUIRED:
        return "required"
    if option.slot is None or option.default is not None:
        return f"default {spell(option.default)}"
    if option.slot in MODEL_SLOTS:
        return "default: the model's"
    reader = open_library(registry=registry).reader()
    default = reader.default(option.slot)
    part = reader.part(default, option.slot) if default else None
    return f"default {part.label()}" if part else "no default"
