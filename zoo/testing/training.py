"""Checks of what a model computes and learns, in every dtype and mode.

B batch, S source tokens, T target tokens, V vocabulary.
"""

from __future__ import annotations

import math
from itertools import product

import torch

from zoo.train import metrics

from .model_case import ModelCase, compute_gradients, compute_mean_nll, perturb

PLACES = 16
"""Seeds of weights at which a gradient is looked for."""
FALLS = (1e-2, 1e-3, 1e-4)
"""By how much a step should lower the loss; a long one may change the choices of a mixture."""


def runs(case: ModelCase) -> None:
    """Logits are [B, T, V], of the model's dtype, and finite, and so is every gradient, in every mode and dtype."""
    model = case.build(dropout=0.1)
    for dtype, training in product((torch.float64, torch.float32, torch.bfloat16), (False, True)):
        model.to(dtype).train(training)
        for source, aligned in case.passes():
            with torch.random.fork_rng(devices=[]):
                logits = model(source, case.target, aligned=aligned)
            expected, changed = [*case.target.shape, model.shape.vocab_size], f"A pass in {dtype}"
            if list(logits.shape) != expected or logits.dtype != dtype or not logits.isfinite().all():
                found = f"{list(logits.shape)} in {logits.dtype} with {logits.isfinite().sum()} finite values"
                case.fail(f"{changed}: the logits should be {expected}, of that dtype and finite, and are {found}.")
        if training:
            slopes = compute_gradients(model, metrics.token_nll(logits, case.target).mean())
            there = {name: g for name, g in slopes.items() if g is not None}
            bad = [name for name, g in there.items() if g.dtype != dtype or not g.isfinite().all()]
            if bad:
                case.fail(f"{changed}: the gradients of {', '.join(bad)} should be finite and of that dtype.")


def determinism(case: ModelCase) -> None:
    """In eval mode a pass draws no random numbers, leaves no trace in the model, and gives the same again; weights are
    drawn from the seed alone.
    """
    model, drawn = case.model, torch.get_rng_state()
    before = {name: x.clone() for name, x in model.state_dict().items()}
    for source, aligned in case.passes():
        one, two = (model(source, case.target, aligned=aligned) for _ in range(2))
        changed = "The same pass was run again in eval mode"
        case.check_equal(two, one, changed, "the logits", 0.0)
        first_slopes, slopes = (compute_gradients(model, x.square().mean()) for x in (one, two))
        for name, g in first_slopes.items():
            if g is not None:
                repeated = slopes[name]
                case.check_equal(
                    torch.zeros_like(g) if repeated is None else repeated, g, changed, f"the gradient of {name}", 0.0
                )
    if not torch.equal(drawn, torch.get_rng_state()):
        case.fail("A pass was run in eval mode: the state of the random generator should have stayed equal.")
    for name, x in model.state_dict().items():
        case.check_equal(x, before[name], "Passes were run in eval mode", name, 0.0)
    first, again, other = (case.build(seed).state_dict() for seed in (0, 0, 1))
    for name, x in first.items():
        case.check_equal(again[name], x, "The model was built twice from one seed", name, 0.0)
    if all(torch.equal(x, other[name]) for name, x in first.items()):
        case.fail("The model was built from another seed: its weights should have changed and did not.")


def gradients(case: ModelCase) -> None:
    """Every parameter has a part in the loss, at one of several places: a saturated softmax has no slope, a norm after
    a step undoes the gain of one before it, and an expert may get no token at all.
    """
    dead = {name for name, _ in case.model.named_parameters()}
    few, many = (case.source, case.target), (case.draw(32, 5, seed=3), case.draw(32, 9, seed=4))
    batches = [(*few, False), (*many, False)]
    if not case.model.autoregressive:  # what is asked for elsewhere may be one token, over and over
        batches.append((case.draw(32, 9, seed=5), many[1], True))
    for seed, (source, target, aligned) in product((None, *range(PLACES)), batches):
        model = case.model if seed is None else case.build(seed)
        model = perturb(model, seed) if seed and seed % 2 else model  # at its first weights a step may be switched off
        found = compute_gradients(model, compute_mean_nll(model, source, target, aligned=aligned))
        dead -= {name for name, g in found.items() if g is not None and g.isfinite().all() and g.abs().sum() > 0}
        if not dead:
            return
    text = "every parameter should have a finite gradient that is not zero everywhere"
    case.fail(f"The loss was differentiated: {text}, and {', '.join(sorted(dead))} have none.")


@torch.no_grad()
def dropout(case: ModelCase) -> None:
    """Dropout acts while training and leaves no trace in eval."""
    model = case.build(dropout=0.5)
    for source, aligned in case.passes():
        model.load_state_dict(case.model.state_dict())  # a part may keep count of what it is trained on
        calm = case.model(source, case.target, aligned=aligned)
        with torch.random.fork_rng(devices=[]):
            for _ in range(2):
                again = model(source, case.target, aligned=aligned)
                case.check_equal(again, calm, "The model was given a dropout of 0.5", "the logits in eval mode", 0.0)
            model.train()
            one, two = (model(source, case.target, aligned=aligned) for _ in range(2))
            model.eval()
        if torch.equal(one, two):
            case.fail("The model was given a dropout of 0.5: two passes while training should differ and do not.")


def learning(case: ModelCase) -> None:
    """A step down the gradient lowers the loss, if it is small enough."""
    model = case.build()
    before = compute_mean_nll(model, case.source, case.target)
    found = {name: g for name, g in compute_gradients(model, before).items() if g is not None}
    steepness = sum(g.square().sum() for g in found.values())
    start = {name: x.clone() for name, x in model.state_dict().items()}
    for fall in FALLS:
        with torch.no_grad():
            model.load_state_dict(start)
            for name, g in found.items():
                model.get_parameter(name).sub_(fall / steepness * g)
            after = compute_mean_nll(model, case.source, case.target)
        if after < before:
            return
    text = f"the loss should have fallen by about {fall}, and went from {before:.6f} to {after:.6f}"
    case.fail(f"A step went down the gradient: {text}.")


def untrained(case: ModelCase) -> None:
    """A model that has learned nothing gives each of V tokens about 1 / V."""
    loss, chance = (
        compute_mean_nll(case.build(), case.source, case.target).item(),
        math.log(case.model.shape.vocab_size),
    )
    if not abs(loss - chance) <= 0.4:
        case.fail(f"Nothing was trained: the loss should be within 0.4 of ln V = {chance:.3f} and is {loss:.3f}.")
