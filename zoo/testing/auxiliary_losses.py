"""Checks of what the parts of a model add to its loss."""

from __future__ import annotations

from torch import Tensor

from zoo.train import metrics

from .model_case import ModelCase, compute_gradients


def auxiliary_losses(case: ModelCase) -> str | None:
    """What parts add to the loss is finite, never below 0, has a slope, and is the same however a row is padded."""
    source, target = case.draw(1, 5, seed=1), case.draw(1, 9, seed=2)
    alone = compute_auxiliary_loss(case, source, target)
    if alone is None:
        return "it adds nothing to the loss"
    slopes = [g for g in compute_gradients(case.model, alone).values() if g is not None] if alone.requires_grad else []
    if not (alone.isfinite() and alone >= 0) or not any(g.abs().sum() > 0 for g in slopes):
        told = "a number from 0 on, which some parameter can lower"
        case.fail(f"A pass noted auxiliary losses: their sum should be {told}, and is {alone.item():.4g}.")
    for side in ("left", "right"):
        (ids, keep), (others, kept) = case.pad(list(source), side), case.pad(list(target), side)
        padded = compute_auxiliary_loss(case, ids, others, source_keep=keep, target_keep=kept)
        assert padded is not None  # whether a part adds one does not hang on padding
        case.check_equal(padded, alone, f"The row was padded on the {side}", "the sum of all auxiliary losses")
    return None


def compute_auxiliary_loss(case: ModelCase, source: Tensor, target: Tensor, **given: Tensor) -> Tensor | None:
    notes: list = []
    case.model(source, target, notes=notes, **given)
    return metrics.auxiliary_loss(notes) if any(callable(name) for name, _ in notes) else None
