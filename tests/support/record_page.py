"""The page on what a folder of runs holds, made from the fields of the records: `python -m support.record_page`."""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Mapping

from zoo import record
from zoo.claims import Claim

HEAD = """# What a folder of runs holds

Every run has a folder called after its id, with `run.json`; every comparison has one with its name, with
`comparison.json`. All documents have one version of their format, `{version}`. A key that a version does not know is
passed over; a newer format, a wrong type, a number that is not finite and a folder of another name are faults that name
the file. A value that is not known is null. `make record` writes this page from `zoo/record/`.
"""
NAMES = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    type(None): "null",
    typing.Any: "any",
}


def write_page() -> str:
    """The whole page: the documents, each followed by the records that stand in it."""
    done: list[type] = []
    sections = [section for kind in record.DOCUMENTS for section in write_sections(kind, done)]
    return "\n".join([HEAD.format(version=record.FORMAT), *sections])


def write_sections(kind: type, done: list[type]) -> list[str]:
    """A record's section and those of the records in it, each once on the page."""
    if kind in done:
        return []
    done.append(kind)
    level = "##" if kind in record.DOCUMENTS else "###"
    hints = typing.get_type_hints(kind)
    rows = [describe_field(field, hints[field.name]) for field in dataclasses.fields(kind)]
    table = ["| key | type | unit | meaning |", "|---|---|---|---|", *rows]
    out = [f"{level} {kind.__name__}\n\n{kind.__doc__}\n", "\n".join(table) + "\n"]
    inner = [each for hint in hints.values() for each in find_records(hint) if each is not Claim]
    return out + [section for each in inner for section in write_sections(each, done)]


def describe_field(field: dataclasses.Field, hint: object) -> str:
    """A line of the table."""
    needed = field.default is field.default_factory is dataclasses.MISSING
    condition = field.metadata["null_if"]
    later = "" if not condition else "; left out until it is known" if condition == field.name else "; may be left out"
    meaning = f"{field.metadata['meaning']}{'; every document has it' if needed else later}"
    cells = (f"`{field.name}`", spell_type(hint), field.metadata["unit"], meaning)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |".replace("|  |", "| |")


def spell_type(hint: object) -> str:
    """A type in words: `list of text`, `text to number`."""
    if hint is Claim:
        return "[claim](claims.md)"
    if dataclasses.is_dataclass(hint):
        return f"[{hint.__name__}](#{hint.__name__.lower()})"
    inner = [spell_type(each) for each in typing.get_args(hint) if each is not Ellipsis]
    origin = typing.get_origin(hint)
    if origin is None:
        return NAMES[hint]
    if origin is tuple:
        return f"list of {inner[0]}"
    if origin is Mapping:
        return f"{inner[0]} to {inner[1]}"
    words = " or ".join(dict.fromkeys(inner)).replace("whole number or number", "number")
    return re.sub("(or null )+or null", "or null", words)


def find_records(hint: object) -> list[type]:
    """The records that a type speaks of."""
    if dataclasses.is_dataclass(hint):
        return [hint]
    return [each for part in typing.get_args(hint) for each in find_records(part)]


if __name__ == "__main__":
    print(write_page(), end="")
