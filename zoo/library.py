"""Where names lead: the user's document first, then the zoo's own `registry.yaml`."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import registry as registries
from . import yaml
from .faults import Fault, SpecError, nearest
from .reader import Reader
from .spec import RESERVED, Node
from .signature import show

SECTIONS = ("plugins", "defaults", "shapes", "models", "comparisons")
OWN = Path(__file__).with_name("registry.yaml")


@functools.cache
def own_document() -> yaml.Document:
    return yaml.load_file(OWN)


@functools.cache
def own_registry() -> registries.Registry:
    return registries.discover()


@dataclass(frozen=True)
class Library:
    """Documents in which names are looked up, the first one first, and the variants on offer.

    `discovery` is what the registry was discovered with, so that another process can do the same.
    """

    documents: tuple[yaml.Document, ...]
    registry: registries.Registry
    discovery: Mapping[str, Any] = field(default_factory=dict)

    def section(self, name: str) -> dict[str, Node]:
        """All entries of a section, an earlier document's before a later one's of the same name."""
        out: dict[str, Node] = {}
        for document in reversed(self.documents):
            section = Node(document.value, (), document)
            if name in document.value:
                out.update(section.get(name).items())
        return out

    def wishes(self) -> dict[str, list[str]]:
        """The plugin files and the disabled plugins that the registry was discovered with, as plain texts."""
        return {key: [str(v) for v in self.discovery.get(key, ())] for key in ("files", "disable")}

    def reader(self) -> Reader:
        return Reader(self.registry, Node(self.section("defaults")))

    def find(self, section: str, name: str) -> Node:
        """The entry of that name; raises `SpecError` with the nearest one."""
        entries = self.section(section)
        if name not in entries:
            known = nearest(name, entries) or (f"; there are {', '.join(entries)}" if entries else "")
            raise SpecError(f"no {section.removesuffix('s')} is called {show(name)}{known}")
        return entries[name]

    def expand(self, kind: str, node: Node, reader: Reader, seen: tuple[str, ...] = ()) -> Node:
        """A model or shape, given by name or as a mapping that may be `like` another, as one mapping of nodes."""
        value = node.value
        if isinstance(value, str):
            if value in seen:
                reader.fail(node.fault(f"{kind} '{value}' is like itself: {' -> '.join((*seen, value))}"))
                return Node({}, node.path, node.document)
            try:
                found = self.find(f"{kind}s", value)
            except SpecError as error:
                raise SpecError([node.fault(f.text) for f in error.faults]) from None
            return self.expand(kind, found, reader, (*seen, value))
        if not isinstance(value, Mapping):
            raise SpecError([node.fault(f"{kind} is {show(value)}; it should be a name or a mapping")])
        own = dict(node.items())
        like = own.pop("like", None)
        base = dict(self.expand(kind, like, reader, seen).items()) if like is not None else {}
        return Node(base | {k: merged(base.get(k), v) for k, v in own.items()}, node.path, node.document)


def merged(base: Node | None, own: Node) -> Node:
    """What is written, and where that gives options without a name, the part that they are options of."""
    if base is None or not isinstance(own.value, Mapping) or any(word in own.value for word in RESERVED):
        return own
    options = dict(base.items()) if isinstance(base.value, Mapping) else {"name": base}
    return Node(options | dict(own.items()), own.path, own.document)


def open_library(
    path: str | Path | None = None,
    *,
    name: str | None = None,
    overrides: Iterable[str] = (),
    registry: registries.Registry | None = None,
    **discovery: Any,
) -> Library:
    """The library of a file (or of the zoo alone). `overrides` are `path=value`, as `--set` takes them, from the
    top of the file or from the comparison `name` (None = every one); `discovery` goes to `registry.discover`. Raises
    `SpecError`.
    """
    if path is None:
        return Library((own_document(),), registry or own_registry())
    document = yaml.load_file(path)
    for override in overrides:
        for inside in places(document.value, override, name):
            document = changed(document, override, inside)
    top = Node(document.value, (), document)
    if not isinstance(document.value, Mapping):
        raise SpecError([top.fault(f"the file holds {show(document.value)}; it should be a mapping of sections")])
    faults = []
    for key, child in top.items():
        if key not in SECTIONS:
            faults.append(top.fault(f"there is no section {show(key)}{nearest(key, SECTIONS)}", key))
        elif key != "plugins" and not isinstance(child.value, Mapping):
            faults.append(child.fault(f"{key} is {show(child.plain())}; it should be a mapping"))
    if faults:
        raise SpecError(faults)
    if registry is None:
        wanted = wishes(top.get("plugins"), Path(path).resolve().parent) if "plugins" in document.value else {}
        wanted["disable"] = (*wanted.get("disable", ()), *discovery.pop("disable", ()))
        discovery = wanted | discovery
        registry = registries.discover(**discovery)
    return Library((document, own_document()), registry, discovery)


def wishes(node: Node, folder: Path) -> dict[str, tuple]:
    """The section `plugins`: a list of files, or a mapping with `files`, `require` and `disable`."""
    groups = dict(node.items()) if isinstance(node.value, Mapping) else {"files": node}
    faults: list[Fault] = []
    out: dict[str, tuple] = {}
    for key, group in groups.items():
        if key not in ("files", "require", "disable"):
            faults.append(node.fault(f"plugins has no {show(key)}{nearest(key, ('files', 'require', 'disable'))}", key))
        elif not isinstance(group.value, list) or not all(isinstance(v, str) for v in group.value):
            faults.append(group.fault(f"it is {show(group.plain())}; it should be a list of texts"))
        else:
            out[key] = tuple(folder / v for v in group.value) if key == "files" else tuple(group.value)
            missing = [n for n in group.items() if key == "files" and not (folder / n[1].value).is_file()]
            faults += [n.fault(f"no file '{n.value}' stands beside this document") for _, n in missing]
    if faults:
        raise SpecError(faults)
    return out


@dataclass(frozen=True)
class Overridden:
    """A document in which some values were set from the command line."""

    value: Any
    name: str
    document: yaml.Document
    paths: Mapping[tuple, str]

    def where(self, path: tuple, key: bool = False) -> str:
        for n in range(len(path), 0, -1):
            if path[:n] in self.paths:
                return f"--set {self.paths[path[:n]]}"
        return self.document.where(path, key=key)


def places(top: Any, override: str, name: str | None) -> list[tuple[str, ...]]:
    """Where the path of an override starts: at the top, or in the comparisons that are meant."""
    comparisons = top.get("comparisons") if isinstance(top, Mapping) else None
    if override.split("=")[0].split(".")[0] in SECTIONS or not isinstance(comparisons, Mapping):
        return [()]
    return [("comparisons", c) for c in comparisons if name in (None, c)]


def changed(document: Any, override: str, inside: tuple[str, ...] = ()) -> Overridden:
    """The document with one value set by `dotted.path=value`; the value is read as YAML."""
    dotted, sign, text = override.partition("=")
    if not sign or not dotted:
        raise SpecError(f"--set {override}: it should be path=value")
    value = yaml.scalar(text)
    path: list[str | int] = []
    new = top = dict(document.value) if isinstance(document.value, Mapping) else {}
    steps = [*inside, *dotted.split(".")]
    for i, step in enumerate(steps):
        if isinstance(new, list):
            if not step.isdigit() or int(step) >= len(new):
                raise SpecError(f"--set {override}: '{'.'.join(steps[:i])}' is a list of {len(new)}; '{step}' is none of it")
            step = int(step)
        path.append(step)
        if i == len(steps) - 1:
            new[step] = value
            break
        child = new[step] if isinstance(new, list) or step in new else {}
        if isinstance(child, str):
            child = {"like" if step in ("model", "shape") else "name": child}
        if not isinstance(child, Mapping | list):
            raise SpecError(f"--set {override}: '{'.'.join(steps[: i + 1])}' is {show(child)}, which has nothing inside")
        child = list(child) if isinstance(child, list) else dict(child)
        new[step] = child
        new = child
    before = document.paths if isinstance(document, Overridden) else {}
    inner = document.document if isinstance(document, Overridden) else document
    return Overridden(top, document.name, inner, {**before, tuple(path): override})
