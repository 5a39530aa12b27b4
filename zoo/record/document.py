"""How records are declared, read and written: the same for every document that a folder of runs holds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from zoo import files
from zoo.claims import Claim
from zoo.faults import Fault, SpecError

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

FORMAT = 1
"""Of all documents here, and of `report.json`. It grows where a key changes its meaning, and not for a new key."""

Number = int | float
Scores = Mapping[str, Number | None]
"""Metric to score on a split; null stands for one that is not finite."""
Plain = Any
"""What JSON can hold, in the words of the file that `zoo run` was given."""
NEEDED = dataclasses.MISSING
"""The default of a field that every document has."""
R = TypeVar("R")


class Unreadable(SpecError):
    """A document that cannot be read, and `why`."""

    def __init__(self, path: Path, why: str):
        self.why = why
        super().__init__([Fault(f"{path} cannot be read: {why}")])


def describe(meaning: str, unit: str = "", *, default: Any = None, null_if: str = "", **given: Any) -> Any:
    """A field of a record, what it means and in which unit.

    What is not known is None, and null in the file. A field with `null_if` is left out of the file instead, until the
    attribute of that name is known.
    """
    metadata = {"meaning": meaning, "unit": unit, "null_if": null_if}
    given |= {} if "default_factory" in given else {"default": default}
    return dataclasses.field(metadata=metadata, **given)


def read(path: Path, kind: type[R]) -> R:
    """The record of that kind that a file holds; keys that are unknown are passed over.

    Raises `Unreadable` for a file that is not there, is not strict JSON, is of a newer format, or holds anything else.
    """
    return read_plain(path, lambda found: parse(found, kind))


def read_plain(path: Path, parse: Callable[[Any], R]) -> R:
    """What `parse` makes of the JSON in a file. Raises `Unreadable`."""
    try:
        return parse(files.parse_json(path.read_text("utf-8")))
    except RecursionError:
        raise Unreadable(path, "it is nested too deeply") from None
    except (ValueError, OSError) as error:
        raise Unreadable(path, explain(error)) from error


def parse(found: Any, kind: type[R]) -> R:
    """The record that plain values stand for. Raises `ValueError`."""
    if not isinstance(found, dict):
        raise ValueError(f"it holds no object, but {type(found).__name__}")
    if (version := found.get("format")) != FORMAT:
        newer = "; a newer version of the zoo wrote it" if isinstance(version, int) and version > FORMAT else ""
        raise ValueError(f"format {version}, and this version reads {FORMAT}{newer}")
    adapter = load_adapter(kind)  # type: ignore[arg-type]  # every class is hashable
    return adapter.validate_json(files.dumps(found), strict=True)


@cache
def load_adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter  # a fifth of a second, which who only lists what there is need not wait for

    return TypeAdapter(kind)


def explain(error: Exception) -> str:
    """Why a document cannot be read, on one line."""
    from pydantic import ValidationError

    text = summarise(error) if isinstance(error, ValidationError) else str(error)
    return " ".join(text.split())[:300]


def summarise(error: ValidationError) -> str:
    """The first thing that is wrong, and how many more there are."""
    first, *rest = error.errors(include_url=False)
    place = ".".join(str(step) for step in first["loc"])
    text = first["msg"].removeprefix("Value error, ")
    return (f"{place}: " if place else "") + text + (f" (and {len(rest)} more)" if rest else "")


def write(path: Path, record: Any) -> None:
    """Write a record to its file, whole or not at all."""
    files.write_json(path, plain(record))


def plain(value: Any) -> Any:
    """A record as JSON holds it."""
    if isinstance(value, Claim):
        return value.record()
    if isinstance(value, Mapping):
        return {str(key): plain(inside) for key, inside in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inside) for inside in value]
    if not dataclasses.is_dataclass(value):
        return value
    found = {field: getattr(value, field.name) for field in dataclasses.fields(value)}
    return {field.name: plain(inside) for field, inside in found.items()
            if inside is not None or is_stated(value, field)}  # fmt: skip


def is_stated(record: Any, field: dataclasses.Field) -> bool:
    """Whether the record has null for a field that is None."""
    condition = field.metadata.get("null_if")
    return not condition or getattr(record, condition) is not None


def check_name(name: str) -> None:
    """Raise `ValueError` for what cannot be the name of a folder beside others."""
    if name in ("", ".", "..") or len(name) > 200 or any(sign in name for sign in "/\\\0"):
        raise ValueError(f"{name[:50]!r} is no name of a folder")


def check_folder(path: Path, name: str) -> None:
    """Raise `Unreadable` if a document of that name lies in a folder of another one."""
    if name not in (path.parent.name, path.parent.resolve().name):
        raise Unreadable(path, f"it is of '{name}', and lies in the folder '{path.parent.name}'")


def check_choice(what: str, value: str, known: tuple[str, ...]) -> None:
    """Raise `ValueError` for a word that is none of those known."""
    if value not in known:
        raise ValueError(f"{what} is {value[:50]!r}; it should be {' or '.join(known)}")
