"""How good predictions are: sums over a split, never means of batches.

B batch, T target tokens, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from zoo.declare.library import own_registry
from zoo.declare.reader import Reader
from zoo.declare.spec import Node
from zoo.model.builder import bind
from zoo.parts import Notes, eval_mode
from zoo.tasks import Batch, Metric, Reference, Scored, Task


def metrics_of(task: Task) -> Mapping[str, Metric]:
    """The metrics of a task by name. One that was made by hand has those of this name that the zoo itself offers."""
    if task.scorers is None:
        reader = Reader(own_registry(), Node({}))
        parts = {name: reader.part(Node(name), "metric") for name in task.metrics}
        reader.finish()
        task.scorers = {name: bind(part, {}) for name, part in parts.items() if part}
    return task.scorers


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
    metrics = {name: each for name, each in metrics_of(task).items() if reference is None or each.needs == "nll"}
    sums: dict[str, dict[str, float]] = {name: {} for name in metrics}
    weight = 0.0
    for scored in score_batches(model, task, split, batch_size, device, reference):
        weight += scored.weight
        for name, metric in metrics.items():
            for key, value in metric.count(scored).items():
                sums[name][key] = sums[name].get(key, 0.0) + value
    if not weight:
        raise ValueError(f"the {split} split has no target that counts")
    return {name: metric.score(sums[name]) for name, metric in metrics.items()}


@torch.no_grad()
def score_batches(
    model: nn.Module | None, task: Task, split: str, batch_size: int, device: torch.device | str,
    reference: Reference | None,
) -> Iterator[Scored]:  # fmt: skip
    """What the model or the reference makes of each batch of a split."""
    choices = None if task.choices is None else task.choices.to(device)
    count = None if task.bytes is None else task.bytes.to(device)
    with eval_mode(model):
        for batch in task.batches(split, batch_size):
            batch = batch.to(device)
            logits = answers = None
            if reference is not None:
                nats = reference.nll(batch).to(device)
            else:
                assert model is not None, "what is scored is a model or a reference"
                logits = predict(model, batch)
                nats, answers = token_nll(logits, batch.target, choices), choose(logits, choices)
            nll = weighed(nats.double(), batch.weight).item()
            weight = batch.weight.sum(dtype=torch.float64).item()
            size = 0.0 if count is None else (batch.weight.double() * count[batch.target]).sum().item()
            yield Scored(batch, nats, nll, weight, size, logits, answers, task.decode)


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


def choose(logits: Tensor, choices: Tensor | None) -> Tensor:
    """The likeliest ids [B, T], among `choices` if given."""
    if choices is None:
        return logits.argmax(-1)
    return choices[logits.index_select(-1, choices).argmax(-1)]
