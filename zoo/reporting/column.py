"""A column of a table, and texts that fit on a line of one."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

LONGEST = 200  # characters of a reason in a table; CSV and JSON hold all of it


@dataclass(frozen=True)
class Column:
    """`priority` 1 is the last to go where there is no room; `breaks` says where lines may: at "commas", between
    "words" or "anywhere". `value` is the number that `text` stands for, where it stands for one."""

    head: str
    text: Callable[[Any], str]
    priority: int
    right: bool = True
    breaks: str = ""
    value: Callable[[Any], float | None] | None = None


@dataclass(frozen=True)
class Small:
    """A table beside the large one, and the lines that stand above it."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Any]
    lines: Sequence[str] = ()


def flat(text: str) -> str:
    """The text on one line, without control characters."""
    text = re.sub(r"\s*[\r\n\v\f\x85\u2028\u2029]\s*", " ", str(text).strip("\r\n"))
    return re.sub(r"[\x00-\x1f\x7f-\x9f]", "", text.replace("\t", " "))


def short(text: str) -> str:
    text = flat(text)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
