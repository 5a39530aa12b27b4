"""Partners for a variant: a few models in which it stands beside as many variants of the other slots as there is room.

The first model has the defaults elsewhere. In those that follow, each slot takes its variants in turn, those first that
were not there yet; every second one has the variant's own options at other values, every third one has lists, so that
layers differ. What a combination refuses gives way to the next in turn, and the refusal is kept.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from itertools import product
from typing import Any

from zoo.declare.spec import MODEL_SLOTS, WHOLE
from zoo.faults import SpecError
from zoo.model.builder import build_and_run

from .harness import Subject
from .model_case import SHAPES, ModelCase, read_specs
from .option_values import propose_values, read_options

ORDER = ("architecture", "attention", "position", "kernel", "residual", "norm", "ffn", "embedding", "head")
"""Slots in the order in which they are filled: those that have most to refuse come first."""


def build_cases(subject: Subject) -> list[ModelCase]:
    """The models that a variant is looked at in, the plainest first. Raises `SpecError` if it cannot be in any."""
    registry = subject.library.registry
    return [ModelCase.of(spec, SHAPES[shape], registry, subject) for spec, shape in choose_models(subject)]


def choose_models(subject: Subject) -> list[tuple[dict[str, Any], str]]:
    """Each of them as a user would declare it, and the name of its shape in `SHAPES`."""
    combinations = Combinations(subject)
    plainest = combinations.choose_plainest()
    return [plainest, *(combinations.mix(i, plainest[0]) for i in range(1, subject.partners))]


class Combinations:
    """Makes one model after the other, and knows which variants were beside the tested one already."""

    def __init__(self, subject: Subject):
        self.subject = subject
        self.registry = subject.library.registry
        self.turn = int(hashlib.sha256(subject.label.encode()).hexdigest()[:4], 16)
        self.names = {slot: self.rotate(slot) for slot in ORDER if slot != subject.slot}
        self.left = {slot: list(names) for slot, names in self.names.items()}
        self.refused: Counter[tuple[str, str]] = Counter()
        self.refusal = SpecError("nothing was tried")

    def rotate(self, slot: str) -> list[str]:
        """The variants of a slot, from one on that differs from subject to subject."""
        found = [self.registry.spelling(entry) for entry in self.registry.variants(slot)]
        at = self.turn % max(len(found), 1)
        return found[at:] + found[:at]

    def accepts(self, spec: Mapping[str, Any], shape: str) -> bool:
        """Whether this model can be; why not is kept in `refusal`."""
        try:
            specs = read_specs(self.subject.library, spec, SHAPES[shape])
            build_and_run(*specs, self.registry, "cpu")  # where a pass takes a tenth of one on meta
        except SpecError as error:
            self.refusal = error
            return False
        return True

    def complete(self, spec: dict[str, Any], shape: str) -> dict[str, Any] | None:
        """The model, or where it cannot be, the same with the default mixer across, in the encoder, or in both."""
        default = self.subject.library.defaults()["attention"].plain()
        apart = {"attention": {"encoder": default, "decoder": spec.get("attention", default)}}
        across = {"cross": default}
        first: SpecError | None = None
        for more in ({}, across, apart, {**apart, **across}) if "architecture" in spec else ({},):
            if self.accepts({**spec, **more}, shape):
                return {**spec, **more}
            first = first or self.refusal
        self.refusal = first or self.refusal
        return None

    def choose_plainest(self) -> tuple[dict[str, Any], str]:
        """The defaults beside the variant, or if these refuse it, with one of them replaced. Raises `SpecError`."""
        shape = next(iter(SHAPES))
        own = {self.subject.slot: self.subject.part}
        spec, first = self.complete(own, shape), self.refusal
        if spec:
            return spec, shape
        for slot, names in self.names.items():
            for name in names:
                if spec := self.complete({**own, slot: name}, shape):
                    self.record_refusal("the defaults", first)
                    return spec, shape
        raise first

    def mix(self, i: int, plainest: dict[str, Any]) -> tuple[dict[str, Any], str]:
        """The model number `i`, from 1 on."""
        slot, lists = self.subject.slot, i % 3 == 2
        names = list(SHAPES)
        shapes = names[i % len(names) :] + names[: i % len(names)]
        part = self.vary_options(plainest, i // 2) if i % 2 else self.subject.part
        default = self.subject.library.defaults()[slot].plain()
        own = {k: v for k, v in plainest.items() if k not in (slot, "cross")}
        for form, shape in product([[part, default]] * (lists and slot not in WHOLE) + [part], shapes):
            if spec := self.complete({**own, slot: form}, shape):
                return self.fill_slots(spec, shape, lists), shape
            self.record_refusal(f"shape:{shape}", self.refusal)
        return self.fill_slots(plainest, names[0], lists), names[0]

    def fill_slots(self, spec: dict[str, Any], shape: str, lists: bool) -> dict[str, Any]:
        """The model with a partner in each slot: two that alternate where lists are asked for."""
        for slot in self.names:
            fresh = [*self.left[slot], *(name for name in self.names[slot] if name not in self.left[slot])]
            chosen: list[str] = []
            for name in fresh:
                value = [*chosen, name] if chosen else name
                if found := self.complete({**spec, slot: value}, shape):
                    spec, chosen = found, [*chosen, name]
                    if not lists or slot in WHOLE or len(chosen) == 2 or found[slot] != value:
                        break
                elif not chosen:
                    self.record_refusal(f"{slot}:{name}", self.refusal)
                    self.refused[slot, name] += 1
            left = [name for name in self.left[slot] if name not in chosen and self.refused[slot, name] < len(SHAPES)]
            self.left[slot] = sorted(left or self.names[slot], key=lambda name: self.refused[slot, name])
        return spec

    def vary_options(self, plainest: dict[str, Any], turn: int) -> Any:
        """The variant with as many of its options as can be at other values at once, which differ from turn to turn."""
        slot, part = self.subject.slot, {"name": self.subject.name, **self.subject.options}
        for name, option in read_options(self.registry, slot, self.subject.name).items():
            if name in self.subject.options or name in MODEL_SLOTS:
                continue
            values = propose_values(option, self.registry)
            at = turn % max(len(values), 1)
            for value in values[at:] + values[:at]:
                if self.accepts({**plainest, slot: {**part, name: value}}, next(iter(SHAPES))):
                    part[name] = value
                    break
        return part

    def record_refusal(self, what: str, error: SpecError) -> None:
        """Keep the first reason why something cannot stand beside the variant."""
        if not any(known.startswith(f"{what}: ") for known in self.subject.refusals):
            self.subject.refusals.append(f"{what}: {'; '.join(fault.text for fault in error.faults)}")
