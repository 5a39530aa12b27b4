"""Values to try an option with: those that its annotation allows, and numbers at and beyond the edge."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Iterator
from typing import Any, Literal

from zoo.declare.signature import REQUIRED, Field, read
from zoo.registry import Registry

EDGES = {int: (0, -1), float: (0.0, -1.0)}
"""Numbers that many options cannot be: what comes of them is a refusal in words or a model that works."""


def read_options(registry: Registry, slot: str, name: str) -> dict[str, Field]:
    """The options that a user may write for a variant. Raises `SpecError` and `ValueError`."""
    entry = registry.find(slot, name)
    return dict(read(registry.load(entry), slot, entry.variant.fixed).options)


def propose_values(option: Field, registry: Registry) -> list[Any]:
    """Values of an option that are not its default, the likeliest to be allowed first; none for texts and mappings."""
    if option.slot is not None:
        found = [registry.spelling(entry) for entry in registry.variants(option.slot)]
    else:
        found = list(generate_values(option.annotation, option.default))
    default = json.dumps(None if option.default is REQUIRED else option.default, default=str)
    fresh = {json.dumps(value): value for value in found if is_allowed(option, value)}
    return [value for text, value in fresh.items() if text != default]


def is_allowed(option: Field, value: Any) -> bool:
    if option.slot is not None:
        return True
    try:
        option.check(value)
    except ValueError:
        return False
    return True


def generate_values(annotation: Any, default: Any = None) -> Iterator[Any]:
    """Values of a type."""
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        yield from generate_values(args[0], default)
    elif origin in (typing.Union, types.UnionType):
        for arm in sorted(args, key=lambda arm: arm is types.NoneType):
            yield from generate_values(arm, default)
    elif origin is Literal:
        yield from args
    elif annotation is bool:
        yield from (True, False)
    elif annotation is int:
        if is_number(default) and default > 1:
            yield from (default + 1, default * 2, default // 2)
        yield from (2, 3, 4, 1, 1000)
    elif annotation is float:
        yield 0.5
        yield from (
            (default * 2, default / 2, default * 0.7, default / 10, default + 1) if is_number(default) else (2.0,)
        )
        yield 100.0
    elif annotation is types.NoneType:
        yield None
    elif origin in (list, tuple):
        yield from generate_lists(origin, args)


def generate_lists(origin: type, args: tuple) -> Iterator[list]:
    """Lists of a type: of as many as a tuple has, else of one, then of two."""
    if origin is tuple and Ellipsis not in args:
        yield [next(generate_values(arm), None) for arm in args]
        return
    for value in generate_values(args[0]):
        yield [value]
    yield list(generate_values(args[0]))[:2]


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def list_edges(annotation: Any) -> list[Any]:
    """Numbers of a type, alone or in any of its arms, that are likely to be out of range."""
    if annotation in EDGES:
        return list(EDGES[annotation])
    if typing.get_origin(annotation) is Literal:
        return []
    if typing.get_origin(annotation) in (list, tuple):
        return [[], *([edge] for edge in list_edges(typing.get_args(annotation)[0]))]
    return [edge for arm in typing.get_args(annotation) for edge in list_edges(arm)]
