"""Strict JSON, and files that never stand half-written."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

LARGEST = 2**63
"""Whole numbers from here on are no counts of anything, and too large for the float that an average takes."""


def parse_json(text: str) -> Any:
    """The value that strict JSON holds. Raises `ValueError` for a text that is none, for a number that is not finite,
    and for one that no float holds.
    """
    try:
        return json.loads(text, parse_constant=refuse, parse_int=parse_whole, parse_float=parse_finite)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def refuse(name: str) -> Any:
    raise ValueError(f"{name} is not strict JSON")


def parse_whole(text: str) -> int:
    if len(text) > 20 or abs(number := int(text)) >= LARGEST:
        raise ValueError(f"the number {text[:20]}… is too large")
    return number


def parse_finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(f"the number {text[:20]} is too large")
    return number


def parse_line(line: str) -> dict[str, Any] | None:
    """The object on a line of a JSON Lines file; None for anything else, such as a line that was cut short."""
    try:
        value = parse_json(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def strict(value: Any) -> Any:
    """The value in plain types, with null for every number that is not finite."""
    if isinstance(value, Mapping):
        return {str(k): strict(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [strict(v) for v in value]
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if hasattr(value, "item"):  # a scalar of numpy or torch
        return strict(value.item())
    raise TypeError(f"{type(value).__name__} has no place in a record")


def dumps(value: Any, indent: int | None = None) -> str:
    return json.dumps(strict(value), indent=indent, allow_nan=False, ensure_ascii=False)


def write_json(path: Path, value: Any) -> None:
    """Strict JSON, written whole or not at all."""
    text = dumps(value, indent=1) + "\n"
    replace(path, lambda temporary: temporary.write_text(text, "utf-8"))


def replace(path: Path, write: Callable[[Path], Any]) -> None:
    """Let `write` fill a new file beside `path`, then put it in its place: at any moment one of the two is whole."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        write(temporary)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
