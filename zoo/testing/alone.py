"""A variant that is no part of a model, under test, and the texts that it is tested with."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import torch
from torch import Tensor

from zoo.declare.library import Library
from zoo.declare.signature import REQUIRED, read
from zoo.declare.spec import Node, PartSpec
from zoo.faults import SpecError
from zoo.model.builder import bind
from zoo.tasks import SPECIALS, Data, Example, Splits, Tokenizer

from .subject import Subject

Check = Callable[["Alone"], str | None]


@dataclass(frozen=True)
class Alone:
    """A variant with its options, and `given`, what its constructor may ask for."""

    part: PartSpec | None
    library: Library = field(repr=False)
    label: str
    given: Mapping[str, Any] = field(default_factory=dict, repr=False)
    lacks: str = ""

    def make(self, **given: Any) -> Any:
        """What the variant's constructor makes. Raises `SpecError`."""
        return bind(self.part, {**self.given, **given}, lambda inner: bind(inner, {}))

    def fail(self, text: str) -> NoReturn:
        raise AssertionError(f"{text} Variant: {self.label}.")

    def same(self, got: Any, expected: Any, changed: str, kept: str) -> None:
        """Raise `AssertionError` if the two are not the same to the last bit."""
        if isinstance(expected, Tensor):
            if got.shape == expected.shape and torch.equal(got, expected):
                return
            gap = (got - expected).abs().max().item() if got.shape == expected.shape else None
            by = (
                f"differ by up to {gap:.3g}"
                if gap is not None
                else f"are {list(got.shape)}, not {list(expected.shape)}"
            )
            self.fail(f"{changed}: {kept} should have stayed equal, and {by}.")
        if got != expected:
            self.fail(f"{changed}: {kept} should be {shown(expected)}, and are {shown(got)}.")


def shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."


def alone(subject: Subject) -> list[Alone]:
    """The variant as its only case. One that cannot be without an option that nobody gave lacks it."""
    library = subject.library
    entry = library.registry.find(subject.slot, subject.name)
    options = read(library.registry.load(entry), subject.slot, entry.variant.fixed).options.values()
    missing = [o.name for o in options if o.default is REQUIRED and not o.slot and o.name not in subject.options]
    if missing:
        return [Alone(None, library, subject.label, lacks=f"it needs {' and '.join(missing)}, which nobody gave it")]
    reader = library.reader()
    part = reader.part(Node(subject.part, (subject.slot,)), subject.slot)
    reader.finish()
    return [Alone(part, library, f"{subject.slot}:{part.label()}" if subject.options else subject.label)]


def among(subject: Subject, partners: Iterable[tuple[str, Mapping[str, Any]]]) -> list[Alone]:
    """The variant with each of these partners that it takes."""
    case, *_ = alone(subject)
    if case.lacks:
        return [case]
    cases = []
    for name, given in partners:
        own = {k: v for k, v in case.part.options.items() if k in subject.options or k not in given}
        made = replace(case, part=replace(case.part, options=own), given=given, label=f"{case.label} with {name}")
        try:
            made.make()
        except SpecError as error:
            subject.refusals.append(f"{name}: {error}")
        else:
            cases.append(made)
    return cases


def table(*checks: Check) -> dict[str, Check]:
    """The checks by name; none applies to a variant that lacks something."""

    def guarded(check: Check) -> Check:
        return functools.wraps(check)(lambda case: case.lacks or check(case))

    return {check.__name__: guarded(check) for check in checks}


WORDS = ("alder birch cedar elder hazel maple", "apple mango olive peach lemon guava", "basil cumin thyme fennel anise")
"""The words of each split, so that what stands in the wrong one shows."""


class Lines(Data):
    """Texts of their own words in each split."""

    def read(self) -> Splits:
        return Splits(*([Example("", f"{w} after {v}\n") for w, v in pairs(words)] for words in WORDS))


class Pairs(Data):
    """Texts of their own words in each split, and one of two labels, by which word comes first."""

    has_source = True

    def read(self) -> Splits:
        return Splits(*([Example(f"{w} {v}", "rise" if w < v else "fall") for w, v in pairs(words)] for words in WORDS))


def pairs(words: str) -> list[tuple[str, str]]:
    return [(w, v) for w in words.split() for v in words.split() if w != v]


class Bytes(Tokenizer):
    """Every UTF-8 byte is a token."""

    lossless = True
    vocab_size = SPECIALS + 256
    bytes = [0] * SPECIALS + [1] * 256

    def train(self, texts: Iterable[str]) -> None:
        pass

    def encode(self, text: str) -> list[int]:
        return [SPECIALS + byte for byte in text.encode()]

    def piece(self, id: int) -> bytes:
        return bytes([id - SPECIALS]) if id >= SPECIALS else b""
