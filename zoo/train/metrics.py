"""How good predictions are: sums over a split, never means of batches.

B batch, T target tokens, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from zoo.parts import Notes, eval_mode
from zoo.tasks import Batch, Reference, Task


class Metric(NamedTuple):
    """What a table needs to know of a figure: which is `better`, "lower" or "higher", and its unit."""

    better: str
    unit: str
    score: Callable[[Mapping[str, float]], float]


METRICS = {
    "loss": Metric("lower", "nats per token", lambda sums: sums["nll"] / sums["weight"]),
    "perplexity": Metric("lower", "", lambda sums: exp(sums["nll"] / sums["weight"])),
    "bpb": Metric("lower", "bits per byte", lambda sums: sums["nll"] / math.log(2) / sums["bytes"]),
    "accuracy": Metric("higher", "share of tokens", lambda sums: sums["right"] / sums["tokens"]),
    "exact": Metric("higher", "share of rows", lambda sums: sums["exact"] / sums["rows"]),
}
"""Every metric as a function of sums over a split: `nll` (weighted, nats), `weight`, `bytes` (weighted), and, where
there are logits, `right` of `tokens` and `exact` of `rows`, both counted where the weight is above 0."""


def token_nll(logits: Tensor, target: Tensor, choices: Tensor | None = None) -> Tensor:
    """Nats [...] of each target [...] under logits [..., V], in float32; among `choices` (ascending ids) if given."""
    if choices is not None:
        logits = logits.index_select(-1, choices)
        target = torch.searchsorted(choices, target).clamp_max(len(choices) - 1)
    flat = F.cross_entropy(logits.flatten(0, -2).float(), target.flatten(), reduction="none")
    return flat.view(target.shape)


def loss(logits: Tensor, batch: Batch, choices: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Sum of weighted nats over the batch, and sum of the weights: divide the totals, not each batch's.

    A target of weight 0 adds nothing, whatever its logits are.
    """
    return weighed(token_nll(logits, batch.target, choices), batch.weight), batch.weight.sum()


def weighed(values: Tensor, weight: Tensor) -> Tensor:
    return (torch.where(weight > 0, values, 0.0) * weight).sum()


def auxiliary_loss(notes: Notes) -> Tensor:
    """The sum of all auxiliary losses that a pass noted; see `AttentionContext.note`."""
    values: dict = {}
    for name, value in notes:
        if callable(name):
            values.setdefault(name, []).append(value)
    return sum((name(noted) for name, noted in values.items()), torch.zeros(()))


@torch.no_grad()
def evaluate(
    model: nn.Module | None,
    task: Task,
    split: str,
    *,
    batch_size: int = 64,
    device: torch.device | str = "cpu",
    reference: Reference | None = None,
) -> dict[str, float]:
    """The task's metrics over all of a split, for a model or, in its place, a reference.

    A reference has no logits, so it gets only the metrics that need none. The model is in eval mode meanwhile. Raises
    `ValueError` if the split has no target that counts.
    """
    sums = dict.fromkeys(("nll", "weight", "bytes", "right", "tokens", "exact", "rows"), 0.0)
    choices = None if task.choices is None else task.choices.to(device)
    count = None if task.bytes is None else task.bytes.to(device)
    with eval_mode(model):
        for batch in task.batches(split, batch_size):
            batch = batch.to(device)
            if reference is None:
                logits = predict(model, batch)
                nll = token_nll(logits, batch.target, choices)
                hits(sums, logits, batch, choices)
            else:
                nll = reference.nll(batch).to(device)
            sums["nll"] += weighed(nll.double(), batch.weight).item()
            sums["weight"] += batch.weight.sum(dtype=torch.float64).item()
            if count is not None:
                sums["bytes"] += (batch.weight.double() * count[batch.target]).sum().item()
    if not sums["weight"]:
        raise ValueError(f"the {split} split has no target that counts")
    known = [name for name in task.metrics if reference is None or name not in ("accuracy", "exact")]
    return {name: METRICS[name].score(sums) for name in known}


def predict(model: nn.Module, batch: Batch, notes: Notes | None = None) -> Tensor:
    """The logits [B, T, V] of every target token under teacher forcing; what the parts note is put into `notes`."""
    return model(
        batch.source,
        batch.target,
        source_keep=batch.source_keep,
        target_keep=batch.target_keep,
        aligned=batch.aligned,
        notes=notes,
    )


def hits(sums: dict[str, float], logits: Tensor, batch: Batch, choices: Tensor | None) -> None:
    """Count the tokens and the rows that greedy choice gets right."""
    if choices is None:
        guess = logits.argmax(-1)
    else:
        guess = choices[logits.index_select(-1, choices).argmax(-1)]
    counted = batch.weight > 0
    right = (guess == batch.target) & counted
    rows = counted.any(1)
    sums["right"] += right.sum().item()
    sums["tokens"] += counted.sum().item()
    sums["exact"] += ((right == counted).all(1) & rows).sum().item()
    sums["rows"] += rows.sum().item()


def exp(nats: float) -> float:
    try:
        return math.exp(nats)
    except OverflowError:
        return math.inf
