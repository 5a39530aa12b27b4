"""Checks of which tokens a logit may depend on.

B batch, S source tokens, T target tokens, V vocabulary.
"""

from __future__ import annotations

from itertools import product

import torch
from torch import Tensor, nn

from zoo.model.stack import Stack
from zoo.parts import Kernel
from zoo.tasks import Batch
from zoo.train import metrics

from .model_case import ModelCase, change_ids, compute_gradients


@torch.no_grad()
def future(case: ModelCase) -> None:
    """The logits of a target token depend on the tokens before it alone; without an order, on no target token."""
    model, target = case.model, case.target
    for source, aligned in case.passes():
        before = model(source, target, aligned=aligned)
        for t in range(0, target.shape[1], 2):
            other = target.clone()
            other[:, t] = change_ids(target[:, t])
            after = model(source, other, aligned=aligned)
            blind = t + 1 if model.autoregressive else target.shape[1]
            changed = f"Target token {t} became another"
            kept = f"the logits of tokens 0 to {blind - 1}"
            case.check_equal(after[:, :blind], before[:, :blind], changed, kept, case.exact)
            if blind < target.shape[1] and torch.equal(after[:, blind], before[:, blind]):
                case.fail(f"{changed}: the logits of token {blind}, which follows it, should have changed and did not.")


@torch.no_grad()
def window(case: ModelCase) -> str | None:
    """Where attention has a window of w, a token changes what lies up to w - 1 further on per layer, no more."""
    reach = measure_reach(case)
    if reach is None:
        return "its attention has no window"
    model, length = case.model, reach + 4
    source, target = case.draw(2, length, seed=1), case.draw(2, length, seed=2)
    moved, first = (target, 1) if model.autoregressive else (source, 0)
    other = moved.clone()
    other[:, 0] = change_ids(moved[:, 0])
    aligned = not model.autoregressive
    before = model(source, target, aligned=aligned)
    after = model(*((source, other) if model.autoregressive else (other, target)), aligned=aligned)
    last = first + reach
    changed = f"The first token became another, and the windows of all layers reach {reach} tokens"
    case.check_equal(
        after[:, last + 1 :], before[:, last + 1 :], changed, f"the logits from token {last + 1} on", case.exact
    )
    if torch.equal(after[:, last], before[:, last]):
        case.fail(f"{changed}: the logits of token {last} should have changed and did not.")
    return None


def measure_reach(case: ModelCase) -> int | None:
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
        known = [width for width in widths if width is not None]
        if not known or len(known) < len(widths):
            return None
        reach += max(known) - 1
    return reach


def padding(case: ModelCase) -> None:
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
                check_padded(case, sources, targets, alone, aligned, *sides)


def check_padded(
    case: ModelCase,
    sources: list[Tensor],
    targets: list[Tensor],
    alone: list[Tensor | None],
    aligned: bool,
    source_side: str,
    target_side: str,
) -> None:
    source, source_keep = case.pad(sources, source_side)
    target, target_keep = case.pad(targets, target_side)
    logits = case.model(source, target, source_keep=source_keep, target_keep=target_keep, aligned=aligned)
    changed = f"Sources were padded on the {source_side} and targets on the {target_side}"
    if not logits.isfinite().all():
        bad = (~logits.isfinite()).sum()
        case.fail(f"{changed}: all logits should be finite, those over pads too, and {bad} are not.")
    total = torch.zeros((), dtype=logits.dtype)
    for i, (row, own) in enumerate(zip(targets, alone, strict=True)):
        if own is not None:
            kept = f"the logits of row {i}, with {len(sources[i])} source and {len(row)} target tokens,"
            case.check_equal(logits[i][target_keep[i]], own, changed, kept)
            total = total + metrics.token_nll(own, row).sum()
    batch = Batch(source, target, target_keep.float(), source_keep, target_keep, aligned)
    loss, _ = metrics.loss(logits, batch)
    case.check_equal(loss, total, changed, "the summed loss of all rows")
    bad = [name for name, g in compute_gradients(case.model, loss).items() if g is not None and not g.isfinite().all()]
    if bad:
        case.fail(f"{changed}: the gradients should be finite, and those of {', '.join(bad)} are not.")


@torch.no_grad()
def rows(case: ModelCase) -> None:
    """A row of a batch does not see the others."""
    for source, aligned in case.passes():
        before = case.model(source, case.target, aligned=aligned)
        if source is not None:
            source = source.clone()
            source[1] = 5
        target = case.target
        target[1] = 6
        after = case.model(source, target, aligned=aligned)
        changed = "The second row of a batch was replaced"
        case.check_equal(after[::2], before[::2], changed, "the logits of the others", case.exact)
