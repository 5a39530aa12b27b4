"""Checks of what is left of a model in a file and in a copy.

B batch, S source tokens, T target tokens, V vocabulary.
"""

from __future__ import annotations

import copy

import torch
from torch import nn

from .case import Case, made


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
