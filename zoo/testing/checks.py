"""What any model must do. Each check compares a model with itself, and raises `AssertionError` with what was changed,
what should have stayed equal, by how much it differs and in which model; it returns why it does not apply, if so.

B batch, S source tokens, T target tokens, V vocabulary.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from .. import measure
from ..faults import SpecError
from ..parts import Architecture, Batch, Kernel
from ..stack import Stack
from .case import Case, made


def gradient(model: nn.Module, loss: Tensor) -> dict[str, Tensor | None]:
    names, parameters = zip(*model.named_parameters(), strict=True)
    return dict(zip(names, torch.autograd.grad(loss, parameters, allow_unused=True), strict=True))


def mean_nll(model: Architecture, source: Tensor | None, target: Tensor, **given) -> Tensor:
    return measure.token_nll(model(source, target, **given), target).mean()


def another(ids: Tensor) -> Tensor:
    """An id that differs from each."""
    return torch.where(ids == 5, 6, 5)


def runs(case: Case) -> None:
    """Logits are [B, T, V] and finite, in every mode and dtype."""
    model = case.build(dropout=0.1)
    for dtype, training in product((torch.float32, torch.bfloat16), (False, True)):
        model.to(dtype).train(training)
        for source, aligned in case.passes():
            with torch.random.fork_rng(devices=[]):
                logits = model(source, case.target, aligned=aligned)
            expected = [*case.target.shape, model.shape.vocab_size]
            if list(logits.shape) != expected or not logits.isfinite().all():
                found = f"{list(logits.shape)} with {logits.isfinite().sum()} finite values"
                case.fail(f"A pass in {dtype}: the logits should be {expected}, all finite, and are {found}.")


def gradients(case: Case) -> None:
    """Every parameter has a part in the loss, at one of three places: a saturated softmax has no slope, and a norm
    after a step undoes the gain of one before it.
    """
    dead = {name for name, _ in case.model.named_parameters()}
    for make in (lambda: case.model, case.build, lambda: case.build(seed=1)):
        model = make()
        found = gradient(model, mean_nll(model, case.source, case.target))
        dead -= {name for name, g in found.items() if g is not None and g.abs().sum() > 0}
        if not dead:
            return
    text = "every parameter should have a finite gradient that is not zero everywhere"
    case.fail(f"The loss was differentiated: {text}, and {', '.join(sorted(dead))} have none.")


def kernels(case: Case) -> str | None:
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
        slope = flat_gradient(case.model, logits)
        for changed, other in others.items():
            theirs = other(source, target, **given)
            case.same(theirs, logits, changed + what, "the logits")
            case.same(flat_gradient(other, theirs), slope, changed + what, "the gradients")
    return None if others else "it takes no kernel"


def flat_gradient(model: Architecture, logits: Tensor) -> Tensor:
    return torch.cat([g.flatten() for g in gradient(model, logits.square().mean()).values() if g is not None])


@torch.no_grad()
def future(case: Case) -> None:
    """The logits of a target token depend on the tokens before it alone; without an order, on no target token."""
    model, target = case.model, case.target
    for source, aligned in case.passes():
        before = model(source, target, aligned=aligned)
        for t in range(0, target.shape[1], 2):
            other = target.clone()
            other[:, t] = another(target[:, t])
            after = model(source, other, aligned=aligned)
            blind = t + 1 if model.autoregressive else target.shape[1]
            changed = f"Target token {t} became another"
            case.same(after[:, :blind], before[:, :blind], changed, f"the logits of tokens 0 to {blind - 1}", 0.0)
            if blind < target.shape[1] and torch.equal(after[:, blind], before[:, blind]):
                case.fail(f"{changed}: the logits of token {blind}, which follows it, should have changed and did not.")


@torch.no_grad()
def window(case: Case) -> str | None:
    """Where attention has a window of w, a token changes what lies up to w - 1 further on per layer, no more."""
    reach = reach_of(case)
    if reach is None:
        return "its attention has no window"
    model, length = case.model, reach + 4
    source, target = case.draw(2, length, seed=1), case.draw(2, length, seed=2)
    moved, first = (target, 1) if model.autoregressive else (source, 0)
    other = moved.clone()
    other[:, 0] = another(moved[:, 0])
    aligned = not model.autoregressive
    before = model(source, target, aligned=aligned)
    after = model(*((source, other) if model.autoregressive else (other, target)), aligned=aligned)
    last = first + reach
    changed = f"The first token became another, and the windows of all layers reach {reach} tokens"
    case.same(after[:, last + 1 :], before[:, last + 1 :], changed, f"the logits from token {last + 1} on", 0.0)
    if torch.equal(after[:, last], before[:, last]):
        case.fail(f"{changed}: the logits of token {last} should have changed and did not.")


def reach_of(case: Case) -> int | None:
    """How many tokens the self-attentions of the last stack reach together; None where one sees everything."""
    stack = [m for m in case.model.modules() if isinstance(m, Stack)][-1]
    seen: dict[nn.Module, int | None] = {}

    def spy(kernel: nn.Module, args: tuple) -> None:
        seen[kernel] = args[3].mask.window

    hooks = [m.register_forward_pre_hook(spy) for m in stack.modules() if isinstance(m, Kernel)]
    case.model(case.source, case.target)
    for hook in hooks:
        hook.remove()
    reach = 0
    for number in range(stack.depth):
        layer = stack.layers[number % len(stack.layers)]
        own = layer.attention.modules() if "attention" in layer.steps else ()
        widths = [seen.get(m) for m in own if isinstance(m, Kernel)]
        if not widths or None in widths:
            return None
        reach += max(widths) - 1
    return reach


@torch.no_grad()
def decoding(case: Case) -> str | None:
    """Given tokens read from a cache, one by one, in chunks or after a padded prefix, have the whole pass's logits."""
    model, target = case.model, case.target
    if not model.autoregressive:
        return "it predicts all tokens at once"
    inputs = torch.cat([torch.full_like(target[:, :1], model.shape.bos), target[:, :-1]], 1)
    for source, _ in case.passes():
        whole = model(source, target)
        for sizes in ([1] * 9, [3, 5, 1], [1, 8]):
            cache = model.start(source, room=9)
            steps = torch.cat([model.step(cache, ids) for ids in inputs.split(sizes, 1)], 1)
            case.same(steps, whole, f"The target was read in steps of {sizes}", "the logits")
        for side in ("left", "right"):
            after_prefix(case, source is not None, inputs, side)
    return None


def after_prefix(case: Case, sourced: bool, inputs: Tensor, side: str) -> None:
    """Rows whose sources and prefixes have different lengths are read on, token by token."""
    model, lengths = case.model, (6, 2, 4)
    source, source_keep = case.pad([row[:n] for row, n in zip(case.source, (3, 5, 1), strict=True)], side)
    given = (source, source_keep) if sourced else (None,)
    whole = model(given[0], case.target, source_keep=source_keep if sourced else None)
    ids, keep = case.pad([row[:n] for row, n in zip(inputs, lengths, strict=True)], side)
    cache = model.start(*given, room=ids.shape[1] + 3)
    steps = [model.step(cache, ids, keep)]
    for t in range(3):
        following = torch.stack([row[n + t] for row, n in zip(inputs, lengths, strict=True)])
        steps.append(model.step(cache, following[:, None]))
    keep = torch.cat([keep, torch.ones(3, 3, dtype=torch.bool)], 1)
    for i, n in enumerate(lengths):
        changed = f"A prefix of {n} tokens was padded on the {side}, as its source was, and read on token by token"
        case.same(torch.cat(steps, 1)[i][keep[i]], whole[i, : n + 3], changed, "the logits of the real tokens")


def padding(case: Case) -> None:
    """A row has the same logits and loss alone and padded on either side, a row that is all padding included."""
    lengths = [((5, 2, 0, 4), (7, 3, 4, 0), False)]
    if not case.model.autoregressive:
        lengths.append(((6, 2, 0, 4), (6, 2, 0, 4), True))
    for source_lengths, target_lengths, aligned in lengths:
        sources = [case.draw(n, seed=n) for n in source_lengths]
        targets = [case.draw(n, seed=n + 1) for n in target_lengths]
        alone = [
            case.model(s[None], t[None], aligned=aligned).detach()[0] if len(t) else None
            for s, t in zip(sources, targets, strict=True)
        ]
        for sides in product(("left", "right"), repeat=2):
            if not aligned or len(set(sides)) == 1:
                padded(case, sources, targets, alone, aligned, *sides)


def padded(case: Case, sources, targets, alone, aligned: bool, source_side: str, target_side: str) -> None:
    source, source_keep = case.pad(sources, source_side)
    target, target_keep = case.pad(targets, target_side)
    logits = case.model(source, target, source_keep=source_keep, target_keep=target_keep, aligned=aligned)
    changed = f"Sources were padded on the {source_side} and targets on the {target_side}"
    if not logits.isfinite().all():
        bad = (~logits.isfinite()).sum()
        case.fail(f"{changed}: all logits should be finite, those over pads too, and {bad} are not.")
    total = 0.0
    for i, (row, own) in enumerate(zip(targets, alone, strict=True)):
        if own is not None:
            kept = f"the logits of row {i}, with {len(sources[i])} source and {len(row)} target tokens,"
            case.same(logits[i][target_keep[i]], own, changed, kept)
            total += measure.token_nll(own, row).sum()
    batch = Batch(source, target, target_keep.float(), source_keep, target_keep, aligned)
    loss, _ = measure.loss(logits, batch)
    case.same(loss, torch.as_tensor(total), changed, "the summed loss of all rows")
    bad = [name for name, g in gradient(case.model, loss).items() if g is not None and not g.isfinite().all()]
    if bad:
        case.fail(f"{changed}: the gradients should be finite, and those of {', '.join(bad)} are not.")


@torch.no_grad()
def rows(case: Case) -> None:
    """A row of a batch does not see the others."""
    for source, aligned in case.passes():
        before = case.model(source, case.target, aligned=aligned)
        if source is not None:
            source = source.clone()
            source[1] = 5
        target = case.target
        target[1] = 6
        after = case.model(source, target, aligned=aligned)
        case.same(after[::2], before[::2], "The second row of a batch was replaced", "the logits of the others", 0.0)


@torch.no_grad()
def dropout(case: Case) -> None:
    """Dropout acts while training and leaves no trace in eval."""
    model = case.build(dropout=0.5)
    model.load_state_dict(case.model.state_dict())
    for source, aligned in case.passes():
        calm = case.model(source, case.target, aligned=aligned)
        with torch.random.fork_rng(devices=[]):
            for _ in range(2):
                again = model(source, case.target, aligned=aligned)
                case.same(again, calm, "The model was given a dropout of 0.5", "the logits in eval mode", 0.0)
            model.train()
            one, two = (model(source, case.target, aligned=aligned) for _ in range(2))
            model.eval()
        if torch.equal(one, two):
            case.fail("The model was given a dropout of 0.5: two passes while training should differ and do not.")


@torch.no_grad()
def round_trip(case: Case) -> None:
    """All that a model is lies in its state dict."""
    other = case.build(seed=1)
    other.load_state_dict(case.model.state_dict())
    for source, aligned in case.passes():
        ours, theirs = (model(source, case.target, aligned=aligned) for model in (case.model, other))
        case.same(theirs, ours, "The weights were loaded into a model of another seed", "the logits", 0.0)


@torch.no_grad()
def copies(case: Case) -> None:
    """A copy, and a copy in another dtype, tie the same parameters, and share nothing with the original."""
    ties, before = tied(made(case.library, case.spec, case.shape)), case.model(case.source, case.target)
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        twin = copy.deepcopy(case.model).to(dtype)
        changed = f"The model was copied to {dtype}"
        if tied(twin) != ties:
            case.fail(f"{changed}: these names should stand for one parameter, {ties}, and these do, {tied(twin)}.")
        after = twin(case.source, case.target)
        if dtype == torch.float64:
            case.same(after, before, changed, "the logits", 0.0)
        elif after.dtype != dtype or not after.isfinite().all():
            case.fail(f"{changed}: all logits should be finite and of that dtype.")
        for p in twin.parameters():
            p.zero_()
    case.same(case.model(case.source, case.target), before, "A copy was changed", "the logits of the original", 0.0)


def tied(model: nn.Module) -> list[list[str]]:
    """Groups of names that stand for one parameter."""
    names: dict[int, list[str]] = {}
    for name, p in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(p), []).append(name)
    return sorted(group for group in names.values() if len(group) > 1)


def learning(case: Case) -> None:
    """A small step down the gradient lowers the loss."""
    model = case.build()
    before = mean_nll(model, case.source, case.target)
    found = {name: g for name, g in gradient(model, before).items() if g is not None}
    step = 0.01 / sum(g.square().sum() for g in found.values())
    with torch.no_grad():
        for name, g in found.items():
            model.get_parameter(name).sub_(step * g)
        after = mean_nll(model, case.source, case.target)
    if not after < before:
        text = f"the loss should have fallen by about 0.01, and went from {before:.5f} to {after:.5f}"
        case.fail(f"A step went down the gradient: {text}.")


def untrained(case: Case) -> None:
    """A model that has learned nothing gives each of V tokens about 1 / V."""
    loss, chance = mean_nll(case.build(), case.source, case.target).item(), math.log(case.model.shape.vocab_size)
    if not abs(loss - chance) <= 0.4:
        case.fail(f"Nothing was trained: the loss should be within 0.4 of ln V = {chance:.3f} and is {loss:.3f}.")


def generation(case: Case) -> None:
    """A row of a batch is written as if it were alone, and is padded after the token that ends it."""
    if not case.model.autoregressive:
        together(case, "left", {})
        return
    free = together(case, "left", {"stop": ()})
    stop = int(free[0, 1])
    ended = together(case, "right", {"stop": [stop]})
    after = (ended == stop).cumsum(1) - (ended == stop).int() > 0
    if (ended[after] != case.model.shape.pad).any() or not after.any():
        case.fail(f"Rows were written that end at {stop}: only pads should follow it, and they are {ended.tolist()}.")


def together(case: Case, side: str, given: dict[str, Any]) -> Tensor:
    """Five tokens for each of three rows, which are held to the tokens that each gets alone."""
    sources = [case.draw(n, seed=n) for n in (5, 2, 3)]
    source, source_keep = case.pad(sources, side)
    alone = [given] * 3
    if case.model.autoregressive:
        prefixes = [case.draw(n, seed=n) for n in (1, 4, 2)]
        alone = [given | {"prefix": prefix[None]} for prefix in prefixes]
        prefix, prefix_keep = case.pad(prefixes, side)
        given = given | {"prefix": prefix, "prefix_keep": prefix_keep}
    written = case.model.generate(source, 5, source_keep=source_keep, **given)
    own = torch.cat([case.model.generate(s[None], 5, **g) for s, g in zip(sources, alone, strict=True)])
    changed = f"Rows of different lengths were padded on the {side} and written together"
    case.same(written, own, changed, "the tokens of each row", 0.0)
    return written


CHECKS: dict[str, Callable[[Case], str | None]] = {
    check.__name__: check
    for check in (
        runs, gradients, kernels, future, window, decoding, padding, rows, dropout, round_trip, copies, learning,
        untrained, generation,
    )
}  # fmt: skip
