"""HTML and SVG from Python: what is not markup already is escaped, so that no name can be taken for any."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

from ..text import one_line

EMPTY = {"input": ">", "meta": ">", "circle": "/>", "line": "/>", "path": "/>", "rect": "/>"}
"""How a start tag ends that needs no other: HTML's elements have none, SVG's may."""


class Markup(str):
    """Text that was made by `tag`, or that this package ships."""

    __slots__ = ()


def text(value: Any) -> str:
    """`value` as it is to be read: on one line, without control characters, escaped unless it is markup."""
    return value if isinstance(value, Markup) else escape(one_line(value))


def tag(element: str, /, *inside: Any, **attributes: Any) -> Markup:
    """An element. In names of attributes `_` stands for `-`, at the end for nothing; None and False leave one out."""
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    body = join(inside)
    short = not body and element in EMPTY
    return Markup(f"<{element}{written}{EMPTY[element]}" if short else f"<{element}{written}>{body}</{element}>")


def join(parts: Iterable[Any]) -> Markup:
    """The parts one after the other; None is nothing."""
    return Markup("".join(text(part) for part in parts if part is not None))


def _attribute(key: str, value: Any) -> str:
    if value is None or value is False:
        return ""
    key = key.removesuffix("_").replace("_", "-")
    return f" {key}" if value is True else f' {key}="{escape(one_line(value))}"'
