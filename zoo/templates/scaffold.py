"""A package for a variant of one's own, from the templates beside this file.

`templates/package` holds what is the same for every slot, `templates/variant` one working variant per slot, and
`templates/examples` a comparison to try it in. A `$word` in them stands for what `words` gives.
"""

from __future__ import annotations

import datetime
import keyword
import os
import re
import shutil
from importlib import metadata, resources
from pathlib import Path
from string import Template

from zoo.declare.library import open_library
from zoo.faults import SpecError, nearest
from zoo.hooks import SLOTS
from zoo.registry import HOME, Registry

PREFIX = "zoo-"
"""Packages are called so, that a variant's name shadows no module of Python."""
FILES = {
    "pyproject.toml": "package/pyproject.txt",
    "README.md": "package/README.md",
    "LICENSE": "package/LICENSE",
    ".gitignore": "package/gitignore",
    ".github/workflows/test.yml": "package/workflow.yml",
    "tests/test_${identifier}.py": "package/test.txt",
    "$module/__init__.py": "variant/$slot.txt",
    "examples.yaml": "examples/$example.yaml",
}
"""Every file of a package, and the template that it is made of."""
MORE = {"family": {"$module/table.yaml": "variant/family.yaml"}}
"""Files that a slot has besides."""
PATHS = {
    "data": "task.data",
    "tokenizer": "task.tokenizer",
    "optimizer": "train.optimizer",
    "schedule": "train.schedule",
}
"""Where a comparison varies the slots that are no part of a model."""


def write(name: str, slot: str, to: Path, registry: Registry) -> Path:
    """Write the package of a new variant into a folder of its own in `to`, whole or not at all, and return that folder.

    Raises `SpecError` for a name or a slot that cannot be, and for a folder that is there already.
    """
    given = words(name, slot, registry)
    folder = to / given["package"]
    if folder.exists() or folder.is_symlink():
        raise SpecError(f"{folder} is there already; remove it, or choose another name")
    if not to.is_dir():
        raise SpecError(f"there is no folder {to} to write the package into")
    half = to / f".{given['package']}.{os.getpid()}.new"
    try:
        for path, source in {**FILES, **MORE.get(slot, {})}.items():
            place = half / filled(path, given)
            place.parent.mkdir(parents=True, exist_ok=True)
            template = resources.files(__package__).joinpath(*filled(source, given).split("/"))
            place.write_text(filled(template.read_text(encoding="utf-8"), given), encoding="utf-8")
        half.rename(folder)
    except OSError as error:
        raise SpecError(f"{folder} cannot be written: {error.strerror}") from error
    finally:
        shutil.rmtree(half, ignore_errors=True)
    return folder


def words(name: str, slot: str, registry: Registry) -> dict[str, str]:
    """What the templates leave open. Raises `SpecError`."""
    if slot not in SLOTS:
        raise SpecError(f"there is no slot '{slot}'{nearest(slot, SLOTS)}")
    variant = checked(name)
    if any(entry.variant.name == variant for entry in registry.variants(slot)):
        raise SpecError(f"there is a {slot} '{variant}' already; call yours otherwise")
    identifier = variant.replace("-", "_")
    usual = open_library(registry=registry).defaults().get(slot)
    return {
        "name": variant,
        "package": PREFIX + variant,
        "module": f"zoo_{identifier}",
        "identifier": identifier,
        "Class": camel(variant),
        "slot": slot,
        "role": SLOTS[slot].role,
        "path": PATHS.get(slot, slot),
        "example": slot if usual is None else "vary",
        "usual": "" if usual is None else name_of(usual.plain()),
        "version": metadata.version(HOME),
        "year": str(datetime.date.today().year),
    }


def checked(name: str) -> str:
    """The name of the variant, which a package, a module and a class can bear too. Raises `SpecError`."""
    variant = name.removeprefix(PREFIX)
    if re.fullmatch("[a-z][a-z0-9]*(-[a-z0-9]+)*", variant) and not keyword.iskeyword(camel(variant)):
        return variant
    near = "-".join(re.findall("[a-z0-9]+", variant.lower()))
    hint = f"; did you mean '{near}'?" if re.match("[a-z]", near) and near != variant else ""
    raise SpecError(f"'{name}' is no name for a plugin; it should be words in small letters, joined by hyphens{hint}")


def camel(name: str) -> str:
    return "".join(map(str.capitalize, name.split("-")))


def name_of(part) -> str:
    return part if isinstance(part, str) else part["name"]


def filled(text: str, given: dict[str, str]) -> str:
    return Template(text).substitute(given)
