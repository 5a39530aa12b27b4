"""What any metric must do: B rows, T target tokens, V vocabulary."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from zoo.tasks import Batch, Metric, Scored
from zoo.train.metrics import choose, token_nll, weighed

from .harness import Suite
from .part_case import PartCase, collect_checks, isolate

B, T, V = 12, 5, 7


def draw_logits(skill: float) -> tuple[Batch, Tensor]:
    """Rows of targets of different weights, and logits that know them as well as `skill` says."""
    generator = torch.Generator().manual_seed(0)
    target = torch.randint(V, (B, T), generator=generator)
    weight = torch.randint(3, (B, T), generator=generator) / 2
    logits = torch.randn(B, T, V, generator=generator)
    logits += skill * torch.nn.functional.one_hot(target, V)
    return Batch(target[:, :0], target, weight), logits


def score_batch(metric: Metric, batch: Batch, logits: Tensor) -> Scored:
    """What a metric is shown of a batch: nothing that it does not say it needs."""
    nats = token_nll(logits, batch.target)
    nll, weight = weighed(nats.double(), batch.weight).item(), batch.weight.sum().item()
    seen = {} if metric.needs == "nll" else {"logits": logits, "answers": choose(logits, None)}
    return Scored(batch, nats, nll, weight, weight, decode=lambda ids: " ".join(map(str, ids)), **seen)


def measure(case: PartCase, skill: float, size: int = B, idle: bool = False) -> float:
    """The score in batches of so many rows; `idle` gives the targets that do not count other logits."""
    metric = case.make()
    batch, logits = draw_logits(skill)
    if idle:
        logits = torch.where(batch.weight[..., None] > 0, logits, -logits)
    sums: dict[str, float] = {}
    for start in range(0, B, size):
        rows = slice(start, start + size)
        part = Batch(batch.source[rows], batch.target[rows], batch.weight[rows])
        for key, value in metric.count(score_batch(metric, part, logits[rows])).items():
            sums[key] = sums.get(key, 0.0) + value
    return metric.score(sums)


def facts(case: PartCase) -> None:
    """What it says of itself can be read: which is better, its unit, and what it needs."""
    metric = case.make()
    if metric.better not in ("lower", "higher") or metric.needs not in ("nll", "logits", "text"):
        told = f"and they are {metric.better!r} and {metric.needs!r}"
        case.fail(f"better should be 'lower' or 'higher', and needs 'nll', 'logits' or 'text', {told}.")
    if not isinstance(metric.unit, str):
        case.fail(f"its unit should be text, and is {metric.unit!r}.")


def sums(case: PartCase) -> None:
    """The score of a split is the same in batches of any size: what is counted is added up, never averaged."""
    whole = measure(case, 1.0)
    for size in (5, 3, 1):
        if not math.isclose(found := measure(case, 1.0, size), whole, rel_tol=1e-6):
            case.fail(
                f"Batches had {size} rows in place of {B}: its score should stay {whole:.6g}, and is {found:.6g}."
            )


def direction(case: PartCase) -> None:
    """Who knows the targets scores better than who guesses, in the direction that it calls better."""
    guess, skilled = measure(case, 0.0), measure(case, 20.0)
    if not (skilled < guess if case.make().better == "lower" else skilled > guess):
        better = case.make().better
        case.fail(
            f"The targets became likely: its score should get {better}, and went from {guess:.4g} to {skilled:.4g}."
        )


def weights(case: PartCase) -> None:
    """What is predicted for targets of weight 0 changes nothing."""
    before, after = measure(case, 1.0), measure(case, 1.0, idle=True)
    if before != after:
        text = f"the score should stay {before:.6g}, and is {after:.6g}"
        case.fail(f"Targets that do not count were predicted otherwise: {text}.")


SUITE = Suite(isolate, collect_checks(facts, sums, direction, weights))
