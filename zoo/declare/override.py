"""Values set from the command line: `path=value` changes a document before it is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from zoo.faults import Fault, SpecError, nearest

from . import yaml
from .signature import show

LISTS = ("include", "plugins")
SECTIONS = (*LISTS, "defaults", "shapes", "models", "comparisons")
NAMED = ("shapes", "models", "comparisons")
"""The sections whose keys are names that a user chose."""


@dataclass(frozen=True)
class Overridden:
    """A document in which some values were set; `paths` leads from each place, as texts, to the override."""

    value: Any
    document: yaml.Document
    paths: Mapping[tuple[str, ...], str]

    @property
    def name(self) -> str:
        return self.document.name

    def where(self, path: tuple, key: bool = False) -> str:
        for n in range(len(path), 0, -1):
            if (override := self.paths.get(tuple(map(str, path[:n])))) is not None:
                return f"--set {override}"
        return self.document.where(path, key=key)


def apply_overrides(document: yaml.Document, overrides: tuple[str, ...], name: str | None) -> Overridden:
    """The document with every `dotted.path=value` in place, each value read as YAML.

    A path starts at the top of the file, or in the comparison `name` (None = in every one). Raises `SpecError`.
    """
    value, paths = document.value, {}
    for override in overrides:
        dotted, sign, text = override.partition("=")
        if not sign or not dotted:
            refuse(override, "it should be path=value")
        new = parsed(override, text)
        for inside in starts(value, override, name):
            steps = (*inside, *dotted.split("."))
            value = put(value, steps, (), new, override)
            paths[steps] = override
    return Overridden(value, document, paths)


def refuse(override: str, text: str) -> NoReturn:
    raise SpecError([Fault(text, where=f"--set {override}")])


def parsed(override: str, text: str) -> Any:
    try:
        return yaml.scalar(text)
    except SpecError as error:
        refuse(override, error.faults[0].text)


def starts(top: Mapping[str, Any], override: str, name: str | None) -> list[tuple[str, ...]]:
    """Where the path of an override starts: at the top, or in the comparisons that are meant and in those of their
    rows that write the same side for themselves.
    """
    first = override.partition("=")[0].split(".")[0]
    if first in SECTIONS:
        return [()]
    comparisons = top.get("comparisons", {})
    meant = [("comparisons", c) for c in comparisons if name in (None, c)]
    if not meant:
        what = f"no comparison {show(name)}{nearest(name, comparisons)}" if name else "no comparison"
        refuse(override, f"the file has {what}, and the path begins with no section of it")
    return meant + [(*path, "rows", row) for path in meant for row in writing(comparisons[path[1]], first)]


def writing(comparison: Any, side: str) -> list[str]:
    """The rows that write this side themselves, in place of what the comparison says for all."""
    rows = comparison.get("rows", {}) if isinstance(comparison, Mapping) else {}
    if not isinstance(rows, Mapping):
        return []
    return [name for name, row in rows.items() if isinstance(row, Mapping) and side in row]


def put(old: Any, steps: tuple[str, ...], done: tuple[str, ...], value: Any, override: str) -> Any:
    """`old`, which stands at `done`, with the value at `steps` replaced."""
    if not steps:
        return value
    step, rest, here = steps[0], steps[1:], ".".join(done)
    if isinstance(old, list):
        if not step.isdecimal() or int(step) >= len(old):
            refuse(override, f"'{here}' is a list of {len(old)}, counted from 0; '{step}' is none of it")
        at = int(step)
        return [*old[:at], put(old[at], rest, (*done, step), value, override), *old[at + 1 :]]
    if isinstance(old, str):
        old = {"like" if names_whole(done) else "name": old}
    if not isinstance(old, Mapping):
        refuse(override, f"'{here}' is {show(old)}, which has nothing inside")
    if len(done) == 1 and done[0] in NAMED and step not in old:
        refuse(override, f"the file has no {done[0].removesuffix('s')} '{step}'{nearest(step, old)}")
    return {**old, step: put(old.get(step, {}), rest, (*done, step), value, override)}


def names_whole(path: tuple[str, ...]) -> bool:
    """Whether a text at this path names a model or a shape, and not a part."""
    words = [step for step in path if not step.isdecimal()]
    return words[-1] in ("model", "models", "shape", "shapes") or words[-2:-1] in (["models"], ["shapes"])
