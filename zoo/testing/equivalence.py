"""Checks of other ways to compute the same.

B batch, S source tokens, T target tokens, V vocabulary.
"""

from __future__ import annotations

import os
import shutil

import torch
from torch import Tensor

from zoo.faults import SpecError
from zoo.parts import Architecture

from .model_case import ModelCase, compute_gradients


def kernels(case: ModelCase) -> str | None:
    """Every kernel gives the same logits and gradients with the same weights. One with weights of its own is alone."""
    state, others = case.model.state_dict(), {}
    for entry in case.library.registry.variants("kernel"):
        try:
            other = case.build(kernel=f"{entry.plugin}:{entry.variant.name}")
        except SpecError:
            continue
        if other.state_dict().keys() == state.keys():
            other.load_state_dict(state)
            others[f"The kernel became '{entry.variant.name}'"] = other
    source, source_keep = case.pad([case.draw(n, seed=n) for n in (5, 0, 3)], "left")
    target, target_keep = case.pad([case.draw(n, seed=n) for n in (9, 4, 6)], "right")
    for given, what in (({}, ""), ({"source_keep": source_keep, "target_keep": target_keep}, ", with padding")):
        logits = case.model(source, target, **given)
        slope = flatten_gradients(case.model, logits)
        for changed, other in others.items():
            theirs = other(source, target, **given)
            case.check_equal(theirs, logits, changed + what, "the logits")
            case.check_equal(flatten_gradients(other, theirs), slope, changed + what, "the gradients")
    return None if others else "it takes no kernel"


def flatten_gradients(model: Architecture, logits: Tensor) -> Tensor:
    return torch.cat([g.flatten() for g in compute_gradients(model, logits.square().mean()).values() if g is not None])


def compiles(case: ModelCase) -> str | None:
    """`torch.compile` makes one graph of a pass, which gives the same logits and gradients, padded or not."""
    backend = "eager" if case.subject is None else case.subject.backend
    if backend == "inductor" and not has_compiler():
        return "inductor finds no compiler of C++ here"
    model = case.model
    source, source_keep = case.pad([case.draw(n, seed=n) for n in (5, 2, 3)], "left")
    target, target_keep = case.pad([case.draw(n, seed=n) for n in (9, 4, 6)], "right")
    compiled = torch.compile(model, backend=backend, fullgraph=True, dynamic=False)
    for given, what in (({}, ""), ({"source_keep": source_keep, "target_keep": target_keep}, ", with padding")):
        changed = f"The model was compiled as one graph by {backend}{what}"
        logits = model(source, target, **given)
        try:
            torch.compiler.reset()
            theirs = compiled(source, target, **given)
        except Exception as error:
            told = " ".join(str(error).split())[:300]
            case.fail(f"{changed}: it should run, and there came {type(error).__name__}: {told}.")
        case.check_equal(theirs, logits, changed, "the logits")
        case.check_equal(flatten_gradients(model, theirs), flatten_gradients(model, logits), changed, "the gradients")
    torch.compiler.reset()
    return None


def has_compiler() -> bool:
    return any(map(shutil.which, (os.environ.get("CXX", "g++"), "c++", "clang++")))
