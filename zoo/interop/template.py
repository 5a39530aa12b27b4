"""A template, read in both directions: filled from settings it is a model, held against a model it gives the settings.

`$a.b` stands for the setting b in a. `$a - 2` reckons, left to right, with + - * / ** and numbers or other settings;
`$a *ln 2` is a times the logarithm of 2. `{$a: {x: one, y: two}}` is one where a is x and two where it is y.
`{each $a: {…}}` is the same layer by layer, a being a list with an entry per layer; a shorter one repeats. Everything
else stands for itself.
"""

from __future__ import annotations

import functools
import math
import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from zoo.declare import signature
from zoo.declare.signature import show
from zoo.declare.spec import PartSpec
from zoo.registry import Registry

NAME = r"\$[A-Za-z_][\w.]*"
STEP = re.compile(rf"\s*(\*\*|\*ln|[-+*/])\s*({NAME}|-?\d+(?:\.\d+)?)")
WHOLE = re.compile(rf"({NAME})((?:{STEP.pattern})*)")
DO = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "**": operator.pow}
UNDO = {"+": operator.sub, "-": operator.add, "*": operator.truediv, "/": operator.mul, "**": lambda x, n: x ** (1 / n)}
DO["*ln"], UNDO["*ln"] = (lambda x, n: x * math.log(n)), (lambda x, n: x / math.log(n))
WIDTHS = ("d_ff", "ratio")
"""Options that are not held against a template: the sizes of the weights tell them."""
IDLE = (*WIDTHS, "dropout", "kernel", "balance")
"""Options that no template needs to state, since they do not change what a trained model computes."""


class Mismatch(Exception):
    """What a model has at `path`, and what a template would have there."""

    def __init__(self, path: str, have: str, want: str, *more: str):
        super().__init__(path, have, want, *more)
        self.path, self.have, self.wants = path, have, (want, *more)

    @property
    def depth(self) -> int:
        return self.path.count(".")

    def text(self, family: str) -> str:
        return f"{self.path} is {self.have}; {family} has {' or '.join(dict.fromkeys(self.wants))}"


class Unset(KeyError):
    """A setting that nobody gave."""


class Unknown(Exception):
    """A setting whose value a template has nothing for."""

    def __init__(self, name: str, value: Any, choices: Mapping):
        super().__init__(f"{name} is {show(value)}; the zoo can read {' or '.join(map(show, choices))}")


@dataclass(frozen=True)
class Expression:
    """A setting, and what is reckoned with it."""

    name: str
    steps: tuple[tuple[str, str], ...]

    def others(self) -> Iterator[str]:
        return (operand[1:] for _, operand in self.steps if operand.startswith("$"))

    def value(self, settings: Mapping[str, Any]) -> Any:
        found = get_setting(settings, self.name)
        if found is None or not self.steps:
            return found
        for sign, operand in self.steps:
            found = DO[sign](found, read_operand(operand, settings))
        return tidy(found)

    def setting(self, value: Any, settings: Mapping[str, Any]) -> Any:
        """The setting that gives this value. Raises `TypeError` for one that no reckoning can undo."""
        if value is None or not self.steps:
            return value
        for sign, operand in reversed(self.steps):
            value = UNDO[sign](value, read_operand(operand, settings))
        return tidy(value)


@functools.cache
def parse_expression(text: str) -> Expression | None:
    found = WHOLE.fullmatch(text.strip())
    return Expression(found[1][1:], tuple(STEP.findall(found[2]))) if found else None


def read_operand(operand: str, settings: Mapping[str, Any]) -> Any:
    return get_setting(settings, operand[1:]) if operand.startswith("$") else float(operand)


def tidy(value: float) -> float | int:
    """A whole number as one, rounded where reckoning left dust on it."""
    near = round(value)
    return near if math.isclose(value, near, rel_tol=1e-9) else value


def get_setting(settings: Mapping[str, Any], name: str) -> Any:
    """The setting at a dotted name: written flat, or as mappings in mappings."""
    if name in settings:
        return settings[name]
    found: Any = settings
    for step in name.split("."):
        if not isinstance(found, Mapping) or step not in found:
            raise Unset(name)
        found = found[step]
    return found


def nest(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with dotted names as mappings in mappings."""
    out: dict[str, Any] = {}
    for name, value in settings.items():
        *outer, last = name.split(".")
        inner = out
        for step in outer:
            inner = inner.setdefault(step, {})
        inner[last] = value
    return out


def parse_choice(template: Any) -> tuple[str, Mapping, bool] | None:
    """The setting, the table and whether it goes by layer, of a template that chooses."""
    if isinstance(template, Mapping) and len(template) == 1:
        (key, table), *_ = template.items()
        name = key.removeprefix("each ") if isinstance(key, str) else ""
        if name.startswith("$"):
            return name[1:], table, name != key
    return None


def pick(name: str, value: Any, table: Mapping) -> Any:
    if isinstance(value, list | dict) or value not in table:
        raise Unknown(name, value, table)
    return table[value]


def fill(template: Any, settings: Mapping[str, Any], depth: int = 0) -> Any:
    """What the template is under these settings. Raises `Unset` and `Unknown`."""
    if chosen := parse_choice(template):
        name, table, by_layer = chosen
        value = get_setting(settings, name)
        if not by_layer:
            return fill(pick(name, value, table), settings, depth)
        entries = value if isinstance(value, list) else [value]
        layers = [fill(pick(name, v, table), settings) for v in entries]
        return shorten_layers([layers[i % len(layers)] for i in range(depth or len(layers))])
    if isinstance(template, Mapping):
        return {key: fill(value, settings, depth) for key, value in template.items()}
    if isinstance(template, list):
        return [fill(value, settings, depth) for value in template]
    known = parse_expression(template) if isinstance(template, str) else None
    return known.value(settings) if known else template


def shorten_layers(layers: Sequence[Any]) -> Any:
    """The shortest way to write one part per layer: `x`, `[a, b]` or `{first: [a], repeat: [b]}`."""
    n = len(layers)
    for total in range(1, n + 1):
        for repeat in range(total, 0, -1):
            first = total - repeat
            if all(layers[i] == layers[first + (i - first) % repeat] for i in range(first, n)):
                group = list(layers[first:total])
                if first:
                    return {"first": list(layers[:first]), "repeat": group}
                return group if repeat > 1 else group[0]
    raise ValueError("there is no layer")


class Settings:
    """The settings found so far, and the reckonings that wait for a setting still to be found."""

    def __init__(self, found: Mapping[str, Any] = MappingProxyType({}), waiting: Sequence[tuple] = ()):
        self.found, self.waiting = dict(found), list(waiting)

    def bind(self, name: str, value: Any, path: str) -> None:
        if name in self.found and not are_same(self.found[name], value):
            raise Mismatch(path, show(value), f"{show(self.found[name])}, as elsewhere")
        self.found[name] = value

    def solve(self, known: Expression, value: Any, path: str) -> None:
        if any(name not in self.found for name in known.others()):
            self.waiting.append((known, value, path))
            return
        try:
            setting = known.setting(value, self.found)
        except (TypeError, ZeroDivisionError):
            raise Mismatch(path, show(value), f"a number that makes '{known.name}'") from None
        self.bind(known.name, setting, path)

    def solve_waiting(self) -> None:
        """Solve what waited. Raises `Mismatch` for what cannot be found."""
        waiting, self.waiting = self.waiting, []
        for known, value, path in waiting:
            self.solve(known, value, path)
        if len(self.waiting) == len(waiting) and waiting:
            known, value, path = waiting[0]
            raise Mismatch(path, show(value), f"nothing to tell '{known.name}' from")
        if self.waiting:
            self.solve_waiting()


def are_same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, int | float) and not isinstance(b, bool):
        return math.isclose(a, b, rel_tol=1e-9)
    return a == b and isinstance(a, bool) == isinstance(b, bool)


class Matcher:
    """Holds values and parts against templates. Parts are equal where class and options are, whatever their names."""

    def __init__(self, registry: Registry):
        self.registry = registry

    def match(self, template: Any, value: Any, path: str, settings: Settings, slot: str = "", layer: int = 0) -> None:
        """Find the settings under which `template` is `value`, a part where there is a slot. Raises `Mismatch`."""
        if chosen := parse_choice(template):
            self.choose(*chosen, value, path, settings, slot, layer)
        elif isinstance(template, str) and (known := parse_expression(template)):
            settings.solve(known, value, path)
        elif isinstance(value, PartSpec):
            self.part(template, value, path, settings, slot)
        elif not are_same(template, value):
            raise Mismatch(path, show(value), show(template))

    def choose(
        self,
        name: str,
        table: Mapping,
        by_layer: bool,
        value: Any,
        path: str,
        settings: Settings,
        slot: str,
        layer: int,
    ) -> None:
        """The first alternative of the table that fits; else what kept the nearest from it."""
        found: list[Mismatch] = []
        for key, alternative in table.items():
            trial = Settings(settings.found, settings.waiting)
            try:
                trial.bind(f"{name}[{layer}]" if by_layer else name, key, path)
                self.match(alternative, value, path, trial, slot, layer)
            except Mismatch as mismatch:
                found.append(mismatch)
            else:
                settings.found, settings.waiting = trial.found, trial.waiting
                return
        nearest = max(found, key=lambda mismatch: mismatch.depth)
        wants = [want for mismatch in found if mismatch.path == nearest.path for want in mismatch.wants]
        raise Mismatch(nearest.path, nearest.have, *wants)

    def part(self, template: Any, part: PartSpec, path: str, settings: Settings, slot: str) -> None:
        written = dict(template) if isinstance(template, Mapping) else {"name": template}
        entry = self.registry.find(slot, written.pop("name"))
        target = self.registry.load(entry)
        if target is not part.target:
            raise Mismatch(path, show(part.name), show(entry.variant.name))
        fields = signature.constructor(target, slot).options
        wanted = {name: field.default for name, field in fields.items()} | dict(entry.variant.fixed) | written
        mine = {**part.options, **part.fixed}
        for name, field in fields.items():
            if name in WIDTHS or (name in IDLE and name not in written):
                continue
            if name not in mine or (mine[name] is None and field.slot and wanted[name] is None):
                continue
            try:
                self.match(wanted[name], mine[name], f"{path}.{name}", settings, field.slot or "")
            except Mismatch:
                if name in part.fixed and name in entry.variant.fixed:  # it is what the two names stand for
                    raise Mismatch(path, show(part.name), show(entry.variant.name)) from None
                raise


def select_layer(template: Any, layer: int, stack: str) -> Any:
    """The template of one layer of one stack, from any of the forms that a slot's value has."""
    if isinstance(template, Mapping) and ("encoder" in template or "decoder" in template):
        return select_layer(template.get(stack), layer, stack)
    if isinstance(template, Mapping) and "repeat" in template:
        first = as_list(template.get("first", []))
        if layer < len(first):
            return first[layer]
        return select_layer(as_list(template["repeat"]), layer - len(first), stack)
    return template[layer % len(template)] if isinstance(template, list) else template


def as_list(value: Any) -> list:
    return value if isinstance(value, list) else [value]


def gather_layers(found: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with those that go by layer (`a[0]`, `a[1]`, …) as lists."""
    out: dict[str, Any] = {}
    for name, value in found.items():
        base, bracket, index = name.partition("[")
        if bracket:
            out.setdefault(base, {})[int(index.rstrip("]"))] = value
        else:
            out[name] = value
    return {k: [v[i] for i in sorted(v)] if f"{k}[0]" in found else v for k, v in out.items()}
