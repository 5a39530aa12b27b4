"""YAML 1.2 in and out: what the user wrote is what is used, or a fault with its line and column.

PyYAML reads YAML 1.1, where `3e-4` is text, `no` is false, `010` is 8 and the last of two equal keys wins silently.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

import yaml
from yaml import MappingNode, Node, ScalarNode, SequenceNode

from zoo.faults import Fault, Path, SpecError

MOST_NODES = 100_000
"""Values that a document may hold once its aliases are written out."""
DEEPEST = 64
"""Collections that may stand inside one another."""

_LINE_BREAKS = frozenset("\r\x85\u2028\u2029")
_TAG = "tag:yaml.org,2002:"
_FLOAT = r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
_PLAIN = [  # what text without quotes means, first match wins: the core schema of YAML 1.2
    ("merge", "<<", "<"),
    ("null", "null|Null|NULL|~|", ["n", "N", "~", ""]),
    ("bool", "true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", "[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", _FLOAT, "-+.0123456789"),
]


def _integer(text: str) -> int:
    return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))


def _float(text: str) -> float:
    value = float(text.replace(".inf", "inf").replace(".nan", "nan"))
    if math.isinf(value) and "inf" not in text:
        raise OverflowError("too large for a float")
    return value


_VALUE = {
    "str": lambda text: text,
    "merge": lambda text: text,
    "null": dict.fromkeys(("", "~", "null")).__getitem__,
    "bool": {"true": True, "false": False}.__getitem__,
    "int": _integer,
    "float": _float,
}


class _Reader(yaml.SafeLoader):
    """PyYAML's parser with the scalars of YAML 1.2 and a limit on depth."""

    yaml_implicit_resolvers: dict[str, list] = {}
    depth = 0

    def compose_node(self, parent: Node | None, index: Any) -> Node:
        self.depth += 1
        if self.depth > DEEPEST:
            mark = self.peek_event().start_mark
            raise yaml.composer.ComposerError(None, None, f"more than {DEEPEST} levels deep", mark)
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


class _Writer(yaml.SafeDumper):
    """PyYAML's writer, which quotes a text that `_Reader` would take for something else."""

    yaml_implicit_resolvers: dict[str, list] = {}

    def ignore_aliases(self, data: Any) -> bool:
        return True


for _name, _pattern, _first in _PLAIN:
    for _side in (_Reader, _Writer):
        _side.add_implicit_resolver(_TAG + _name, re.compile(f"(?:{_pattern})$"), list(_first))


def _write_float(writer: _Writer, value: float) -> ScalarNode:
    text = repr(value) if math.isfinite(value) else repr(value).replace("inf", ".inf").replace("nan", ".nan")
    return writer.represent_scalar(_TAG + "float", text)


def _write_text(writer: _Writer, value: str) -> ScalarNode:
    odd = not _LINE_BREAKS.isdisjoint(value)  # PyYAML loses these in every other style
    return writer.represent_scalar(_TAG + "str", value, style='"' if odd else None)


_Writer.add_representer(float, _write_float)
_Writer.add_representer(str, _write_text)


@dataclass(frozen=True)
class Document:
    """Plain values, and where each of them stands in its file."""

    value: Any
    name: str
    places: dict[Path, tuple[yaml.Mark, yaml.Mark]] = field(repr=False)

    def where(self, path: Path, key: bool = False) -> str:
        """`file:line:column`, both from 1, of the value at `path`, or of its key; of its parent if there is none."""
        while path and path not in self.places:
            path = path[:-1]
        return _place(self.name, self.places[path][0 if key else 1])


def load(text: str, name: str = "<text>") -> Document:
    """Read one document. Raises `SpecError` with every repeated key and unknown tag, or the first error of syntax."""
    node = _parse(text.removeprefix("\ufeff"), name)
    if node is None:
        start = yaml.Mark(name, 0, 0, 0, None, 0)
        return Document(None, name, {(): (start, start)})
    values = _Values(name)
    value = values.of(node, (), node.start_mark)
    if values.faults:
        raise SpecError(values.faults)
    return Document(value, name, values.places)


def load_file(path: str | FilePath) -> Document:
    """Read one UTF-8 file. Raises `SpecError`, also for a file that is not there or is not text."""
    try:
        data = FilePath(path).read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SpecError([Fault(f"cannot be read: {reason}", where=str(path))]) from error
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        before = data[: error.start].decode()
        raise SpecError([Fault(f"byte 0x{data[error.start]:02x} is not UTF-8", where=_at(before, str(path)))]) from None
    return load(text, str(path))


def scalar(text: str, name: str = "<value>") -> Any:
    """The value that `text` has where it stands alone: `3e-4` is a number, `[a, b]` a list."""
    return load(text, name).value


def dump(value: Any) -> str:
    """Write plain values as YAML that `load` reads back to the same values."""
    return yaml.dump(value, Dumper=_Writer, sort_keys=False, allow_unicode=True, default_flow_style=None, width=110)


def _parse(text: str, name: str) -> Node | None:
    try:
        reader = _Reader(text)
    except yaml.reader.ReaderError as error:
        said = f"character U+{error.character:04X} is not allowed"
        raise SpecError([Fault(said, where=_at(text[: error.position], name))]) from None
    try:
        return reader.get_single_node()
    except yaml.MarkedYAMLError as error:
        raise SpecError([_syntax(error, name)]) from None
    except (ValueError, OverflowError):  # PyYAML lets chr() fail on an escape such as "\UFFFFFFFF"
        raise SpecError([Fault("this escape is not a character", where=_place(name, reader.get_mark()))]) from None


class _Values:
    """Turns nodes into values, with the place of each and all faults on the way."""

    def __init__(self, name: str):
        self.name = name
        self.faults: list[Fault] = []
        self.places: dict[Path, tuple[yaml.Mark, yaml.Mark]] = {}
        self.count = 0
        self.open: list[Node] = []

    def fault(self, node: Node, text: str) -> None:
        fault = Fault(text, where=_place(self.name, node.start_mark))
        if fault not in self.faults:  # an alias shows its anchor's faults again
            self.faults.append(fault)

    def of(self, node: Node, path: Path, key: yaml.Mark) -> Any:
        self.places[path] = (key, node.start_mark)
        self.enter(node)
        kind = node.tag.removeprefix(_TAG)
        value = None
        if isinstance(node, ScalarNode) and kind in _VALUE:
            value = self.scalar(node, kind)
        elif isinstance(node, SequenceNode) and kind == "seq":
            value = [self.of(item, (*path, i), item.start_mark) for i, item in enumerate(node.value)]
        elif isinstance(node, MappingNode) and kind == "map":
            pairs = self.pairs(node)
            value = {k: self.of(v, (*path, k), at.start_mark) for k, (at, v) in pairs.items()}
        else:
            self.fault(node, f"tag '{node.tag.replace(_TAG, '!!')}' is not allowed here")
        self.open.pop()
        return value

    def enter(self, node: Node) -> None:
        """Count a node and remember that it is being read; raise for what would never end."""
        self.count += 1
        if any(node is outer for outer in self.open):
            text = "this value contains itself through an alias"
        elif self.count > MOST_NODES:
            text = f"the aliases of this document expand to more than {MOST_NODES} values"
        else:
            self.open.append(node)
            return
        raise SpecError([*self.faults, Fault(text, where=_place(self.name, node.start_mark))])

    def scalar(self, node: ScalarNode, kind: str) -> Any:
        text = node.value
        try:
            return _VALUE[kind](text if kind == "str" else text.lower())
        except OverflowError as error:
            self.fault(node, f"'{text}' is {error}")
        except (ValueError, KeyError):
            self.fault(node, f"'{text[:40]}' is not a YAML {kind}")

    def pairs(self, node: MappingNode) -> dict[Any, tuple[Node, Node]]:
        """Key to (key node, value node): what `<<` merges in, then the mapping's own keys, which win."""
        own: dict[Any, tuple[Node, Node]] = {}
        merged: dict[Any, tuple[Node, Node]] = {}
        for at, value in node.value:
            key = self.key(at)
            if key in own:
                self.fault(at, f"key '{at.value}' is already set in line {own[key][0].start_mark.line + 1}")
            else:
                own[key] = (at, value)
            if at.tag == _TAG + "merge":
                merged = self.merge(value)
        return merged | {key: pair for key, pair in own.items() if pair[0].tag != _TAG + "merge"}

    def key(self, node: Node) -> Any:
        kind = node.tag.removeprefix(_TAG)
        if isinstance(node, ScalarNode) and kind in _VALUE:
            return self.scalar(node, kind)
        self.fault(node, "a key should be one plain text or number")
        return node

    def merge(self, node: Node) -> dict[Any, tuple[Node, Node]]:
        """What `<<: *one` or `<<: [*one, *two]` brings in; the earlier of two wins."""
        if isinstance(node, MappingNode):
            self.enter(node)
            pairs = self.pairs(node)
            self.count += len(pairs)
            self.open.pop()
            return pairs
        if isinstance(node, SequenceNode) and all(isinstance(item, MappingNode) for item in node.value):
            merged: dict[Any, tuple[Node, Node]] = {}
            for item in node.value:
                merged = self.merge(item) | merged
            return merged
        self.fault(node, "'<<' takes a mapping or a list of mappings")
        return {}


def _place(name: str, mark: yaml.Mark) -> str:
    return f"{name}:{mark.line + 1}:{mark.column + 1}"


def _at(before: str, name: str) -> str:
    return f"{name}:{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"


def _syntax(error: yaml.MarkedYAMLError, name: str) -> Fault:
    mark, context, said = error.problem_mark, error.context_mark, error.problem
    if "another document" in said:
        said, context = "a second document begins here; one file holds one", None
    if "'\\t'" in said:
        said = "a tab stands where only spaces may"
    if context and (context.line, context.column) != (mark.line, mark.column):
        said += f" ({error.context}, from line {context.line + 1})"
    return Fault(said, where=_place(name, mark))
