"""A variant that is no part of a model (a task, an optimizer, a tokenizer, ...), under test."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import torch
from torch import Tensor

from zoo.declare.library import Library
from zoo.declare.signature import REQUIRED, read
from zoo.declare.spec import Node, PartSpec
from zoo.faults import SpecError
from zoo.model.builder import bind

from .harness import Subject


@dataclass(frozen=True)
class PartCase:
    """A variant with its options, and `given`, what its constructor may ask for."""

    part: PartSpec
    library: Library = field(repr=False)
    label: str
    given: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def make(self, **given: Any) -> Any:
        """What the variant's constructor makes. Raises `SpecError`."""
        return bind(self.part, {**self.given, **given}, lambda inner: bind(inner, {}))

    def fail(self, text: str) -> NoReturn:
        raise AssertionError(f"{text} Variant: {self.label}.")

    def check_equal(self, got: Any, expected: Any, changed: str, kept: str) -> None:
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
            self.fail(f"{changed}: {kept} should be {shorten(expected)}, and are {shorten(got)}.")


def shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."


@dataclass(frozen=True)
class MissingOptions:
    """A variant that cannot be made, since nobody gave the options that it must have."""

    label: str
    names: tuple[str, ...]

    @property
    def reason(self) -> str:
        return f"it needs {' and '.join(self.names)}, which nobody gave it"


Check = Callable[[PartCase], str | None]


def isolate(subject: Subject) -> Sequence[PartCase | MissingOptions]:
    """The variant as its only case."""
    library = subject.library
    entry = library.registry.find(subject.slot, subject.name)
    options = read(library.registry.load(entry), subject.slot, entry.variant.fixed).options.values()
    required = [o.name for o in options if o.default is REQUIRED and not o.slot]
    if missing := tuple(name for name in required if name not in subject.options):
        return [MissingOptions(subject.label, missing)]
    reader = library.reader()
    part = reader.part(Node(subject.part, (subject.slot,)), subject.slot)
    reader.finish()
    assert part is not None  # else finish() has raised
    return [PartCase(part, library, f"{subject.slot}:{part.label()}" if subject.options else subject.label)]


def combine(subject: Subject, partners: Iterable[tuple[str, Mapping[str, Any]]]) -> Sequence[PartCase | MissingOptions]:
    """The variant with each of these partners that it takes."""
    (case,) = isolate(subject)
    if isinstance(case, MissingOptions):
        return [case]
    cases = []
    for name, given in partners:
        # A partner may settle an option of the same name, as a task's data does; what a user wrote wins.
        own = {k: v for k, v in case.part.options.items() if k in subject.options or k not in given}
        combined = replace(case, part=replace(case.part, options=own), given=given, label=f"{case.label} with {name}")
        try:
            combined.make()
        except SpecError as error:
            subject.refusals.append(f"{name}: {error}")
        else:
            cases.append(combined)
    return cases


def collect_checks(*checks: Check) -> dict[str, Callable[[PartCase | MissingOptions], str | None]]:
    """The checks by name; none applies to a variant that lacks options."""

    def guard(check: Check) -> Callable[[PartCase | MissingOptions], str | None]:
        @functools.wraps(check)
        def guarded(case: PartCase | MissingOptions) -> str | None:
            return case.reason if isinstance(case, MissingOptions) else check(case)

        return guarded

    return {check.__name__: guard(check) for check in checks}
