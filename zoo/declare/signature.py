"""Fields that a user may write: their types in words, checks of their values, and a constructor read as such."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import math
import types
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeVar

from annotated_types import Ge, Gt, Le, Lt
from pydantic import ConfigDict, TypeAdapter, ValidationError

from zoo.faults import Fault, nearest
from zoo.hooks import SLOTS

RESERVED = ("name", "first", "repeat", "encoder", "decoder")
"""Words that say what form a slot's value has; no option can be called so."""
REQUIRED = inspect.Parameter.empty
T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Beside:
    """Marks a path: a relative one starts at the folder of the file in which it is written."""


FilePath = Annotated[str, Beside()]
BOUNDS = {Ge: "at least {0.ge}", Gt: "above {0.gt}", Le: "at most {0.le}", Lt: "below {0.lt}"}
"""Marks of a number's bounds, in words."""
Count = Annotated[int, Ge(1)]
Natural = Annotated[int, Ge(0)]
Positive = Annotated[float, Gt(0)]
NotNegative = Annotated[float, Ge(0)]
Share = Annotated[float, Ge(0), Lt(1)]
Number = int | float
Amount = Annotated[int, Gt(0)] | Annotated[float, Gt(0)]
"""Numbers with bounds, which hold wherever a value is read and stand in the JSON schema."""


@dataclasses.dataclass(frozen=True)
class Part:
    """Marks an option whose value is itself a part: `expert: Annotated[Any, Part("ffn")] = "name"`.

    The constructor receives a factory for it. The type is `Any` because the default that is written is a name.
    """

    slot: str

    def __post_init__(self) -> None:
        if self.slot not in SLOTS:
            raise ValueError(f"there is no slot {self.slot!r}{nearest(self.slot, SLOTS)}")


@dataclasses.dataclass(frozen=True)
class Grows:
    """Marks an option that is a size: `d_ff: Annotated[int | None, Grows("d_model", 8)] = None`.

    Where a model is built at other sizes than its own, the option keeps its ratio to the size `of` of the shape, in
    multiples of `step`.
    """

    of: str
    step: int = 1

    def fit(self, value: float, own: Any, new: Any) -> float:
        wanted = value / getattr(own, self.of) * getattr(new, self.of)
        return max(1, round(wanted / self.step)) * self.step


@dataclasses.dataclass(frozen=True)
class Divides(Grows):
    """The same, but the nearest number that divides the new size; of two as near, the smaller."""

    def fit(self, value: float, own: Any, new: Any) -> int:
        size = getattr(new, self.of)
        wanted = value / getattr(own, self.of) * size
        return min((n for n in range(1, size + 1) if size % n == 0), key=lambda n: abs(n - wanted))


@dataclasses.dataclass(frozen=True)
class EvenShare(Grows):
    """Marks a fraction of a size that has to come out even: it stays, but for the nearest even number."""

    def fit(self, value: float, own: Any, new: Any) -> float:
        size = getattr(new, self.of)
        return value if round(value * size) % 2 == 0 else 2 * round(value * size / 2) / size


@dataclasses.dataclass(frozen=True)
class Means:
    """Marks a type with what it is in words, for errors, where its own words say less."""

    words: str


@dataclasses.dataclass(frozen=True)
class Budget:
    """Marks a training setting that says how long a run trains; exactly one of these is written."""


@dataclasses.dataclass(frozen=True)
class Tunable:
    """Marks a training setting that trials may choose: it changes neither the budget nor what is compared."""


@dataclasses.dataclass(frozen=True)
class CountsSteps:
    """Marks a training setting in steps that keeps its place in a run: with a part of the budget it is that part."""


@dataclasses.dataclass(frozen=True)
class SameSpeed:
    """Marks a training setting that does not change how long a step takes; steps are timed at the value `timed_at`."""

    timed_at: Any


@dataclasses.dataclass(frozen=True)
class Field:
    """One thing to write: its annotation, its default (or REQUIRED), and the slot if its value is a part."""

    name: str
    annotation: Any
    default: Any = REQUIRED
    slot: str | None = None

    @property
    def is_path(self) -> bool:
        return self.mark(Beside) is not None

    @property
    def is_bounded(self) -> bool:
        return bool(marks(self.annotation, *BOUNDS))

    def mark(self, kind: type[T]) -> T | None:
        """The mark of this kind that the annotation carries, if it does."""
        return next(iter(marks(self.annotation, kind)), None)

    @property
    def size(self) -> Grows | None:
        """How the value follows the sizes of the shape, None if it does not."""
        return self.mark(Grows)

    @property
    def expected(self) -> str:
        return f"a part for {self.slot}" if self.slot else words(self.annotation)

    def check(self, value: Any) -> Any:
        """The value as the annotation has it; raises `ValueError` with what was expected."""
        try:
            text = json.dumps(value, allow_nan=False)  # a record of a run could not hold such numbers
            return adapter(self.annotation).validate_json(text, strict=True)
        except (ValidationError, TypeError, ValueError):
            near = nearest(value, choices(self.annotation)) if isinstance(value, str) else ""
            raise ValueError(f"{show(value)}; it should be {self.expected}{near}") from None


@dataclasses.dataclass(frozen=True)
class Signature:
    """A constructor: what it asks for, the options that a user may write, and those that its variant fixes."""

    requests: tuple[str, ...]
    options: Mapping[str, Field]
    fixed: Mapping[str, Field]


@functools.cache
def adapter(annotation: Any) -> TypeAdapter:
    config = ConfigDict(strict=True, allow_inf_nan=False)
    return TypeAdapter(annotation, config=None if dataclasses.is_dataclass(annotation) else config)


def fields_of(cls: type) -> Mapping[str, Field]:
    """The fields of a dataclass as a user may write them."""
    return read_fields(cls)


@functools.cache
def read_fields(cls: type) -> Mapping[str, Field]:
    """By the name that is written: of `is_`, a word that Python keeps for itself, `is`. What is not compared is no part
    of the value and nothing to write.
    """
    hints = typing.get_type_hints(cls, include_extras=True)
    out = {}
    for f in (f for f in dataclasses.fields(cls) if f.compare):
        default = f.default if f.default is not dataclasses.MISSING else REQUIRED
        if f.default_factory is not dataclasses.MISSING:
            default = f.default_factory()
        name = f.name.rstrip("_")
        out[name] = Field(name, hints[f.name], default, slot_of(hints[f.name]))
    return types.MappingProxyType(out)


def check_bounds(record: Any, owner: str = "") -> list[Fault]:
    """A fault for every number in a dataclass that its annotation does not allow."""
    faults = []
    for name, f in fields_of(type(record)).items():
        if f.is_bounded:
            try:
                f.check(getattr(record, name))
            except ValueError as error:
                faults.append(Fault(f"{owner}{name} is {error}", (name,)))
    return faults


def read(target: Callable, slot: str, fixed: Mapping[str, Any] = types.MappingProxyType({})) -> Signature:
    """The signature of a variant's target. Raises `ValueError` for one that a user could not fill.

    Such are a request that no slot of this kind may make, an option that no YAML can hold, and `fixed` options that
    are none.
    """
    whole = constructor(target, slot)
    for name in fixed:
        if name not in whole.options:
            raise ValueError(f"it fixes {name!r}, which its constructor does not have")
    free = {name: f for name, f in whole.options.items() if name not in fixed}
    return Signature(whole.requests, free, {name: whole.options[name] for name in fixed})


@functools.cache
def constructor(target: Callable, slot: str) -> Signature:
    """All that a target asks for and all its options."""
    try:
        hints = typing.get_type_hints(target.__init__ if inspect.isclass(target) else target, include_extras=True)
        parameters = inspect.signature(target).parameters
    except Exception as error:
        raise ValueError(f"its constructor cannot be read: {error}") from error
    requests, options = [], {}
    for p in parameters.values():
        if p.kind is p.KEYWORD_ONLY:
            options[p.name] = option(p.name, hints.get(p.name, Any), p.default)
        elif p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) or p.name not in SLOTS[slot].requests:
            known = ", ".join(sorted(SLOTS[slot].requests)) or "nothing"
            raise ValueError(f"its constructor asks for {p.name!r}; a {slot} may ask for {known}")
        else:
            requests.append(p.name)
            if p.name in SLOTS:
                options[p.name] = Field(p.name, Any, None, p.name)
    return Signature(tuple(requests), options, {})


def option(name: str, annotation: Any, default: Any) -> Field:
    if name in RESERVED:
        raise ValueError(f"its option {name!r} has a name that says what form a value has; call it otherwise")
    try:
        adapter(annotation)
    except Exception as error:
        raise ValueError(f"its option {name!r} is {words(annotation)}, which no YAML can hold") from error
    return Field(name, annotation, default, slot_of(annotation))


def slot_of(annotation: Any) -> str | None:
    """The slot of an option that is a part (marked `Part("ffn")`), else None."""
    return next((mark.slot for mark in marks(annotation, Part)), None)


def marks(annotation: Any, *kinds: type) -> list:
    """The marks of these kinds that an annotation carries, itself or in one of its alternatives."""
    found = [m for m in getattr(annotation, "__metadata__", ()) if isinstance(m, kinds)]
    if typing.get_origin(annotation) is Annotated:
        found += marks(typing.get_args(annotation)[0], *kinds)
    elif typing.get_origin(annotation) in (typing.Union, types.UnionType):
        found += [m for a in typing.get_args(annotation) for m in marks(a, *kinds)]
    return found


def grow_sizes(values: Mapping[str, Any], fields: Mapping[str, Field], own: Any, new: Any) -> dict[str, Any]:
    """The values that suit the shape `own`, those that are sizes as they suit the shape `new`."""
    out = dict(values)
    for name, value in values.items():
        size = fields[name].size
        if size and isinstance(value, int | float) and getattr(own, size.of) != getattr(new, size.of):
            out[name] = size.fit(value, own, new)
    return out


def choices(annotation: Any) -> tuple[str, ...]:
    """The words that a value of this type may be."""
    if typing.get_origin(annotation) is Literal:
        return tuple(str(a) for a in typing.get_args(annotation))
    return tuple(c for a in typing.get_args(annotation) for c in choices(a))


def words(annotation: Any, many: bool = False) -> str:
    """A type in plain words: `int | None` is "an integer or null"."""
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        if meant := [mark.words for mark in annotation.__metadata__ if isinstance(mark, Means)]:
            return meant[-1]
        return " ".join(filter(None, [words(args[0], many), limits(annotation.__metadata__)]))
    if origin in (typing.Union, types.UnionType):
        arms = [words(a, many) for a in args]
        numbers = [arm.replace("a number", "an integer", 1) for arm in arms if arm.startswith("a number")]
        return " or ".join(arm for arm in arms if arm not in numbers)  # an integer is a number
    if origin is Literal:
        return ("any of " if many else "one of " if len(args) > 1 else "") + ", ".join(map(str, args))
    if origin in (list, tuple, set) or annotation in (list, tuple):
        inner = [a for a in args if a is not Ellipsis]
        if origin is tuple and inner and Ellipsis not in args:
            return f"a list of {len(inner)}: " + ", ".join(words(a) for a in inner)
        return "a list" + (f" of {words(inner[0], True)}" if inner else "")
    if origin in (dict, Mapping) or annotation is dict:
        return "a mapping"
    one, several = WORDS.get(annotation, (getattr(annotation, "__name__", str(annotation)),) * 2)
    return several if many else one


def limits(marks: tuple) -> str:
    """The bounds among the marks in plain words: "of at least 0 and below 1"."""
    said = [BOUNDS[type(mark)].format(mark) for mark in marks if type(mark) in BOUNDS]
    return ("of " if said and said[0].startswith("at") else "") + " and ".join(said)


WORDS = {
    int: ("an integer", "integers"),
    float: ("a number", "numbers"),
    bool: ("true or false", "true or false"),
    str: ("text", "texts"),
    type(None): ("null", "null"),
    None: ("null", "null"),
    Any: ("any value", "any values"),
}


def show(value: Any) -> str:
    """A value as it would be written in YAML, on one line."""
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value).replace("inf", ".inf").replace("nan", ".nan")
    try:
        return json.dumps(value, ensure_ascii=False)
    except TypeError:
        return str(value)
