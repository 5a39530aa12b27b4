"""Checks of options: each does something, at every value that it may have, and refuses in words what it may not be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch

from zoo.declare.signature import Field, choices, show
from zoo.faults import SpecError
from zoo.model.stack import Stack
from zoo.parts import Architecture

from .case import SHAPES, Case, loud
from .partners import models
from .values import edges, options_of, others

TRIES = 8
"""Values of an option that are tried until one does something."""


def options(case: Case) -> str | None:
    """Every option, at a value that is not its default, builds a model and changes it: its parameters, its logits or
    its training. A word that an option may be does so too.
    """
    free = free_options(case)
    if not free:
        return "it has no options"
    before = marks(case, {})
    for name, option in free.items():
        values = others(option, case.library.registry)
        words = [value for value in values if value in choices(option.annotation)]
        for value in words:
            if told := dull(case, name, [value], free, before):
                case.fail(f"Option {name} became {show(value)}, which its annotation allows: {told}")
        if values and not words and (told := dull(case, name, values[:TRIES], free, before)):
            tries = ", ".join(map(show, values[:TRIES]))
            case.fail(f"Option {name} became one of {tries}, which its annotation allows: {told}")
    return None


def dull(case: Case, name: str, values: list, free: Mapping[str, Field], before: list) -> str:
    """What is wrong if none of the values of an option does anything, wherever it is tried. One that another part
    refuses is not the variant's to mend.
    """
    refusal, accepted = None, False
    for i, (base, *where) in enumerate(settings(case, name, free)):
        try:
            known = marks(case, base, *where) if i else before
        except SpecError:
            continue
        for value in values:
            try:
                if marks(case, {**base, name: value}, *where) != known:
                    return ""
                accepted = True
            except SpecError as error:
                refusal = refusal or error
    if accepted:
        return "the parameters, the logits or the training should have changed and did not. Is it ignored?"
    own = f"{case.subject.slot} '"
    if all(fault.error is None and not fault.text.startswith(own) for fault in refusal.faults):
        return ""
    return f"it should build a model and did not: {'; '.join(fault.text for fault in refusal.faults)}."


def settings(case: Case, name: str, free: Mapping[str, Field]) -> Iterator[tuple]:
    """Other options, models and shapes in which an option may show what it does: it may hang on any of them."""
    yield {}, case.spec, case.shape
    yield from (({}, case.spec, shape) for shape in SHAPES.values() if shape != case.shape)
    for other, option in free.items():
        values = others(option, case.library.registry)
        for value in [*values[:2], *values[2:][-1:]] if other != name else ():
            yield {other: value}, case.spec, case.shape
    for spec, shape in models(replace(case.subject, refusals=[]))[1:]:
        yield {}, spec, SHAPES[shape]


def marks(case: Case, given: Mapping[str, Any], *where: Mapping[str, Any]) -> list:
    """All that an option may change, of a model with these: what compares equal if nothing did. Raises `SpecError`."""
    model = case.with_options(given, *where)
    state = {name: (list(x.shape), x.tolist()) for name, x in model.state_dict().items()}
    limits = [m.limit for m in model.modules() if isinstance(m, Stack)]
    return [state, limits, [type(m) for m in model.modules()], *behaviour(loud(model), case)]


@torch.no_grad()
def behaviour(model: Architecture, case: Case) -> list:
    """Logits, notes and what a cache holds, in eval mode and while training."""
    found = []
    source, target = case.draw(2, 7, seed=5), case.draw(2, 19, seed=6)
    for training in (False, True):
        model.train(training)
        notes: list = []
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            logits = model(source, target, notes=notes)
            found += [logits.tolist(), [(name, value.tolist()) for name, value in notes]]
            if not model.autoregressive:
                found.append(model(target, target, aligned=True).tolist())
    if model.autoregressive:
        cache = model.eval().start(source, room=19)
        model.step(cache, target)
        found.append(cache.nbytes())
    return found


def ranges(case: Case) -> str | None:
    """A number that an option cannot be is refused by a `ValueError`, in words; with another all logits are finite."""
    numbers = {name: edges(option.annotation) for name, option in free_options(case).items() if option.slot is None}
    if not any(numbers.values()):
        return "no option of it is a number"
    for name, values in numbers.items():
        for value in values:
            attempt(case, name, value)
    return None


def attempt(case: Case, name: str, value: Any) -> None:
    changed = f"Option {name} became {show(value)}"
    try:
        model = case.with_options({name: value})
        with torch.no_grad():
            logits = model(case.source, case.target)
    except SpecError as error:
        for fault in (fault for fault in error.faults if fault.error is not None):
            case.fail(f"{changed}: it should be refused by a ValueError that says why, and there came: {fault.text}.")
        return
    except Exception as error:
        told = f"{type(error).__name__}: {error}".partition("\n")[0]
        case.fail(f"{changed}: it should be refused when the model is built, and the first pass failed with {told}.")
    if not logits.isfinite().all():
        bad = (~logits.isfinite()).sum()
        case.fail(f"{changed}: it should be refused, or all logits should be finite, and {bad} of them are not.")


def free_options(case: Case) -> dict[str, Field]:
    """The options of the variant under test that are not settled."""
    subject = case.subject
    if subject is None:
        return {}
    every = options_of(case.library.registry, subject.slot, subject.name)
    return {name: option for name, option in every.items() if name not in subject.options}
