"""Where names lead: the user's document first, then the zoo's own `registry.yaml`."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from zoo import registry as registries
from zoo.faults import Fault, SpecError, nearest

from . import yaml
from .override import LISTS, NAMED, SECTIONS, apply_overrides
from .reader import Reader, merge_options
from .signature import show
from .spec import DEFAULTED, Node

OWN = Path(__file__).parents[1] / "registry.yaml"


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

    def describe_discovery(self) -> dict[str, Any]:
        """What `registry.discover` needs to find the same variants, as JSON holds it."""
        listed = {key: [str(v) for v in self.discovery.get(key, ())] for key in ("files", "disable")}
        return {**listed, "plugins": self.discovery.get("plugins", True)}

    @property
    def overrides(self) -> list[str]:
        """What `--set` has put in place, in its own words."""
        return list(dict.fromkeys(getattr(self.documents[0], "paths", {}).values()))

    def reader(self) -> Reader:
        return Reader(self.registry, Node(self.defaults()))

    def defaults(self) -> dict[str, Node]:
        """What fills each slot; an earlier document's options without a name are those of a later one's part."""
        out: dict[str, Node] = {}
        for document in reversed(self.documents):
            for slot, node in Library((document,), self.registry).section("defaults").items():
                base = out.get(slot)
                out[slot] = merge_options(base and base.seen_from(node), node)
        return out

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
                found = self.find(f"{kind}s", value).seen_from(node)
            except SpecError as error:
                raise SpecError([node.fault(f.text) for f in error.faults]) from None
            return self.expand(kind, found, reader, (*seen, value))
        if not isinstance(value, Mapping):
            raise SpecError([node.fault(f"{kind} is {show(node.plain())}; it should be a name or a mapping")])
        own = dict(node.items())
        like = own.pop("like", None)
        base = dict(self.expand(kind, like, reader, seen).items()) if like is not None else {}
        base.pop("published", None)  # it is said of that model alone
        if "shape" in own:
            base["shape"] = self.sizes(own.pop("shape"), base.get("shape"), reader)
        return Node(base | {k: merge_options(base.get(k), v) for k, v in own.items()}, node.path, node.document)

    def sizes(self, node: Node, base: Node | None, reader: Reader) -> Node:
        """A model's own shape; sizes that are not `like` others change those of the model that it is like."""
        if base is not None and isinstance(node.value, Mapping) and "like" not in node.value:
            return merge_options(base, node)
        return self.expand("shape", node, reader)


@dataclass(frozen=True)
class MappingDocument:
    """A document that Python holds: its faults have the path to a value, and no line."""

    value: Mapping[str, Any]
    name: str = "mapping"

    def where(self, path: tuple[str | int, ...], key: bool = False) -> str:
        return ""


def open_library(
    source: str | Path | Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
    overrides: Iterable[str] = (),
    registry: registries.Registry | None = None,
    **discovery: Any,
) -> Library:
    """The library of a file, of a mapping that holds the same, or of the zoo alone.

    `overrides` are `path=value`, as `--set` takes them, from the top of the file or from the comparison `name` (None =
    every one); `discovery` goes to `registry.discover`. Raises `SpecError`.
    """
    if source is None:
        return Library((own_document(),), registry or own_registry())
    document: Any = MappingDocument(source) if isinstance(source, Mapping) else yaml.load_file(source)
    check(document)
    if overrides:
        document = apply_overrides(document, tuple(overrides), name)
        check(document)
    if registry is None:
        top = Node(document.value, (), document)
        folder = Path(document.name).resolve().parent
        wanted = read_plugins(top.get("plugins"), folder) if "plugins" in document.value else {}
        wanted["disable"] = (*wanted.get("disable", ()), *discovery.pop("disable", ()))
        discovery = wanted | discovery
        try:
            registry = registries.discover(**discovery)
        except SpecError as error:
            raise type(error)([place_fault(fault, top) for fault in error.faults]) from error
    return Library((document, *read_includes(document), own_document()), registry, discovery)


def read_includes(document: Any) -> list[yaml.Document]:
    """The shapes and models of the files that a document includes; its own names come first. Raises `SpecError`."""
    if "include" not in document.value:
        return []
    node = Node(document.value, (), document).get("include")
    if not isinstance(node.value, list) or not all(isinstance(path, str) for path in node.value):
        raise SpecError([node.fault(f"include is {show(node.plain())}; it should be a list of files")])
    out = []
    for _, path in node.items():
        try:
            found = yaml.load_file(path.beside(path.value))
            check(found)
        except SpecError as error:
            raise SpecError([path.fault(str(fault)) for fault in error.faults]) from error
        kept = {key: found.value[key] for key in ("shapes", "models") if key in found.value}
        out.append(replace(found, value=kept))
    return out


def check(document: Any) -> None:
    """Raise `SpecError` unless the document consists of sections, and those of names."""
    top = Node(document.value, (), document)
    if not isinstance(document.value, Mapping):
        raise SpecError([top.fault(f"the file holds {show(document.value)}; it should be a mapping of sections")])
    faults = []
    for key, child in top.items():
        if key not in SECTIONS:
            faults.append(top.fault(f"there is no section {show(key)}{nearest(key, SECTIONS)}", key))
        elif key not in LISTS and not isinstance(child.value, Mapping):
            faults.append(child.fault(f"{key} is {show(child.value)}; it should be a mapping"))
        elif key not in LISTS:
            faults += [child.fault(text, name) for name in child.value if (text := check_name(key, name))]
    if faults:
        raise SpecError(faults)


def check_name(section: str, name: Any) -> str:
    """What is wrong with a name in a section, or nothing."""
    if section == "defaults" and name not in DEFAULTED:
        return f"no slot that can be left out is called {show(name)}{nearest(name, DEFAULTED)}"
    if section in NAMED and not isinstance(name, str):
        return f"the name {show(name)} is no text; put it in quotes"
    if section == "comparisons" and (not name.strip(".") or set(name) & set("/\\\0")):
        return f"a comparison called {show(name)} cannot have a folder of its name; leave out slashes and dots"
    return ""


def place_fault(fault: Fault, top: Node) -> Fault:
    """A fault of discovery, whose path leads into the section `plugins`, where that stands in the file."""
    if not fault.path:
        return fault
    node = top.get("plugins")
    for step in fault.path if isinstance(node.value, Mapping) else fault.path[1:]:
        node = node.get(step)
    return node.fault(fault.text)


def read_plugins(node: Node, folder: Path) -> dict[str, tuple]:
    """The section `plugins`: a list of files, or a mapping with `files`, `require` and `disable`."""
    groups = dict(node.items()) if isinstance(node.value, Mapping) else {"files": node}
    faults: list[Fault] = []
    out: dict[str, tuple] = {}
    for key, group in groups.items():
        if key not in ("files", "require", "disable"):
            faults.append(node.fault(f"plugins has no {show(key)}{nearest(key, ('files', 'require', 'disable'))}", key))
        elif not isinstance(group.value, list) or not all(isinstance(v, str) for v in group.value):
            faults.append(group.fault(f"{key} is {show(group.value)}; it should be a list of texts"))
        else:
            out[key] = tuple(folder / v for v in group.value) if key == "files" else tuple(group.value)
            missing = [n for n in group.items() if key == "files" and not (folder / n[1].value).is_file()]
            faults += [n.fault(f"no file '{n.value}' stands beside this document") for _, n in missing]
    if faults:
        raise SpecError(faults)
    return out
