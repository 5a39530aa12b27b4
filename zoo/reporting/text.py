"""Texts that fit on a line of a table."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

LONGEST = 200  # characters of a reason in a table; CSV and JSON hold all of it


def one_line(text: str) -> str:
    """The text on one line, without control characters."""
    text = re.sub(r"\s*[\r\n\v\f\x85\u2028\u2029]\s*", " ", str(text).strip("\r\n"))
    return re.sub(r"[\x00-\x1f\x7f-\x9f]", "", text.replace("\t", " "))


def shorten(text: str) -> str:
    text = one_line(text)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def spell_choices(values: Mapping[str, Any]) -> str:
    """Choices as in YAML without its quotes: `slot: name (option: value), slot: [name, name]`."""
    return ", ".join(f"{path}: {spell(value)}" for path, value in values.items())


def spell(value: Any) -> str:
    if isinstance(value, Mapping):
        name, rest = value.get("name"), spell_choices({k: v for k, v in value.items() if k != "name"})
        return f"{{{rest}}}" if name is None else f"{name} ({rest})" if rest else str(name)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(spell, value))}]"
    return value if isinstance(value, str) else json.dumps(value)


def escape_markdown(text: str) -> str:
    """Text that Markdown shows as it is, within a table too."""
    marks = r"[\\|*`~]|<(?=[\w/!?])|(?<![^\W_])_|_(?![^\W_])|\](?=[(\[])|&(?=#?\w+;)"
    return re.sub(marks, r"\\\g<0>", text)
