"""A model at other sizes than its own, with the choices that were made for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from .shape import Shape
from .signature import constructor, grow_sizes
from .spec import Layered, ModelSpec, PartSpec, SlotSpec


def resize_model(spec: ModelSpec, new: Shape) -> ModelSpec:
    """The model at `new` sizes: options that are sizes keep their ratio to those of the shape. One without sizes of
    its own stays as it is; what was published of another one does not hold of the new.
    """
    if spec.shape in (None, new):
        return spec
    slots = {name: of_slot(slot, spec.shape, new) for name, slot in spec.slots.items()}
    return replace(spec, slots=slots, shape=new, published=None)


def of_slot(slot: SlotSpec, own: Shape, new: Shape) -> SlotSpec:
    def each(parts: tuple[PartSpec, ...]) -> tuple[PartSpec, ...]:
        return tuple(of_part(part, own, new) for part in parts)

    return replace(slot, stacks={k: Layered(each(v.repeat), each(v.first)) for k, v in slot.stacks.items()})


def of_part(part: PartSpec, own: Shape, new: Shape) -> PartSpec:
    """The part, and all parts in its options. What was written for the sizes at hand stays."""
    written = part.node.value if isinstance(part.node.value, Mapping) else {}
    general = {k: v for k, v in part.options.items() if (part.node.get(k) if k in written else part.node).fits_any}
    values = {**part.options, **grow_sizes(general, constructor(part.target, part.slot).options, own, new)}
    inside = {k: of_part(v, own, new) for k, v in values.items() if isinstance(v, PartSpec)}
    return replace(part, options=values | inside)
