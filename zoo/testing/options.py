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

from .model_case import SHAPES, ModelCase, perturb
from .option_values import list_edges, propose_values, read_options
from .partners import choose_models

TRIES = 8
"""Values of an option that are tried until one does something."""


def options(case: ModelCase) -> str | None:
    """Every option, at a value that is not its default, builds a model and changes it: its parameters, its logits or
    its training. A word that an option may be does so too.
    """
    free = list_free_options(case)
    if not free:
        return "it has no options"
    before = fingerprint(case, {})
    for name, option in free.items():
        values = propose_values(option, case.library.registry)
        words = [value for value in values if value in choices(option.annotation)]
        for value in words:
            if told := find_no_effect(case, name, [value], free, before):
                case.fail(f"Option {name} became {show(value)}, which its annotation allows: {told}")
        if values and not words and (told := find_no_effect(case, name, values[:TRIES], free, before)):
            tries = ", ".join(map(show, values[:TRIES]))
            case.fail(f"Option {name} became one of {tries}, which its annotation allows: {told}")
    return None


def find_no_effect(case: ModelCase, name: str, values: list, free: Mapping[str, Field], before: list) -> str:
    """What is wrong if none of the values of an option does anything, wherever it is tried. One that another part
    refuses is not the variant's to mend.
    """
    refusal: SpecError | None = None
    accepted = False
    for i, (base, *where) in enumerate(list_settings(case, name, free)):
        try:
            known = fingerprint(case, base, *where) if i else before
        except SpecError:
            continue
        for value in values:
            try:
                if fingerprint(case, {**base, name: value}, *where) != known:
                    return ""
                accepted = True
            except SpecError as error:
                refusal = refusal or error
    if accepted:
        return "the parameters, the logits or the training should have changed and did not. Is it ignored?"
    assert case.subject is not None and refusal is not None  # every value was refused
    own = f"{case.subject.slot} '"
    if all(fault.error is None and not fault.text.startswith(own) for fault in refusal.faults):
        return ""
    return f"it should build a model and did not: {'; '.join(fault.text for fault in refusal.faults)}."


def list_settings(case: ModelCase, name: str, free: Mapping[str, Field]) -> Iterator[tuple]:
    """Other options, models and shapes in which an option may show what it does: it may hang on any of them."""
    yield {}, case.spec, case.shape
    yield from (({}, case.spec, shape) for shape in SHAPES.values() if shape != case.shape)
    for other, option in free.items():
        values = propose_values(option, case.library.registry)
        for value in [*values[:2], *values[2:][-1:]] if other != name else ():
            yield {other: value}, case.spec, case.shape
    assert case.subject is not None, "options are those of the variant under test"
    for spec, shape in choose_models(replace(case.subject, refusals=[]))[1:]:
        yield {}, spec, SHAPES[shape]


def fingerprint(case: ModelCase, given: Mapping[str, Any], *where: Mapping[str, Any]) -> list:
    """All that an option may change, of a model with these: what compares equal if nothing did. Raises `SpecError`."""
    model = case.build_with(given, *where)
    state = {name: (list(x.shape), x.tolist()) for name, x in model.state_dict().items()}
    limits = [m.limit for m in model.modules() if isinstance(m, Stack)]
    return [state, limits, [type(m) for m in model.modules()], *observe(perturb(model), case)]


@torch.no_grad()
def observe(model: Architecture, case: ModelCase) -> list:
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


def ranges(case: ModelCase) -> str | None:
    """A number that an option cannot be is refused by a `ValueError`, in words; with another all logits are finite."""
    numbers = {
        name: list_edges(option.annotation) for name, option in list_free_options(case).items() if option.slot is None
    }
    if not any(numbers.values()):
        return "no option of it is a number"
    for name, values in numbers.items():
        for value in values:
            try_value(case, name, value)
    return None


def try_value(case: ModelCase, name: str, value: Any) -> None:
    changed = f"Option {name} became {show(value)}"
    try:
        model = case.build_with({name: value})
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


def list_free_options(case: ModelCase) -> dict[str, Field]:
    """The options of the variant under test that are not settled."""
    subject = case.subject
    if subject is None:
        return {}
    every = read_options(case.library.registry, subject.slot, subject.name)
    return {name: option for name, option in every.items() if name not in subject.options}
