"""Rows of the table that no gradient trained."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import numpy
import torch
from torch import Tensor

from zoo.tasks import Batch, Reference, Task

Context = tuple[int, ...]


class NGram(Reference):
    """Interpolated Kneser-Ney over the task's own tokens, `order - 1` of them as context.

    p_k(w | h) = (max(c(h w) - D, 0) + D n(h) p_(k-1)(w | h')) / c(h), where c counts tokens in the longest context and
    different predecessors in shorter ones, n(h) is how many different tokens follow h, h' is h without its oldest
    token, and below the shortest stands 1 / V. Kneser and Ney 1995; Chen and Goodman 1998, section 4.1.6.

    `discount` D is chosen on dev unless given.
    """

    def __init__(self, *, order: int = 5, discount: float | None = None):
        if order < 1:
            raise ValueError(f"order is {order}; it should be at least 1")
        if discount is not None and not 0 < discount < 1:
            raise ValueError(f"discount is {discount}; it should be above 0 and below 1")
        self.order, self.discount = order, discount

    def fit(self, task: Task) -> None:
        if task.has_source or task.aligned:
            raise ValueError("an n-gram model reads no source; it serves tasks that have none, as language modeling")
        self.vocab_size = task.vocab_size
        self.count(gram for batch in task.batches("train", 256) for gram, weight in self.grams(batch) if weight)
        if self.discount is None:
            facts = numpy.concatenate([self.facts(batch, counted=True) for batch in task.batches("dev", 256)])
            self.discount = min(
                (step / 20 for step in range(1, 20)), key=lambda discount: -numpy.log(self.mix(facts, discount)).sum()
            )

    def grams(self, batch: Batch) -> Iterator[tuple[Context, float]]:
        """Each target token with the `order - 1` before it, and its weight; the row begins with -1."""
        for ids, weights in zip(batch.target.tolist(), batch.weight.tolist(), strict=True):
            row = (-1,) * (self.order - 1) + tuple(ids)
            for at, weight in enumerate(weights):
                yield row[at : at + self.order], weight

    def count(self, grams: Iterable[Context]) -> None:
        """Count tokens at the full order, and at each shorter one the different grams one longer."""
        counts: dict[Context, int] = defaultdict(int)
        for gram in grams:
            counts[gram] += 1
        self.counts, self.totals, self.kinds = [counts], [], []
        for _ in range(1, self.order):
            shorter: dict[Context, int] = defaultdict(int)
            for gram in self.counts[0]:
                shorter[gram[1:]] += 1
            self.counts.insert(0, shorter)
        for counts in self.counts:
            totals: dict[Context, int] = defaultdict(int)
            kinds: dict[Context, int] = defaultdict(int)
            for gram, n in counts.items():
                totals[gram[:-1]] += n
                kinds[gram[:-1]] += 1
            self.totals.append(totals)
            self.kinds.append(kinds)

    def facts(self, batch: Batch, counted: bool = False) -> numpy.ndarray:
        """c(h w), c(h) and n(h) of each target at each order, shortest first: [targets, order, 3]."""
        grams = [gram for gram, weight in self.grams(batch) if weight or not counted]
        facts = numpy.zeros((len(grams), self.order, 3))
        for row, gram in zip(facts, grams, strict=True):
            for k in range(self.order):
                part = gram[self.order - 1 - k :]
                if total := self.totals[k].get(part[:-1]):
                    row[k] = self.counts[k].get(part, 0), total, self.kinds[k][part[:-1]]
        return facts

    def mix(self, facts: numpy.ndarray, discount: float) -> numpy.ndarray:
        """The probability of each target: [targets]."""
        p = numpy.full(len(facts), 1 / self.vocab_size)
        for count, total, kinds in facts.transpose(1, 2, 0):
            seen = total > 0
            more = (numpy.maximum(count - discount, 0) + discount * kinds * p) / numpy.where(seen, total, 1)
            p = numpy.where(seen, more, p)
        return p

    def nll(self, batch: Batch) -> Tensor:
        assert self.discount is not None, "`fit` chooses it"
        p = self.mix(self.facts(batch), self.discount)
        return torch.from_numpy(-numpy.log(p)).view(batch.target.shape)
