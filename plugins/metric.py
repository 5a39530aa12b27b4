"""What predictions are scored by: each metric counts sums over a split and makes one number of them."""

from __future__ import annotations

import math
from collections.abc import Mapping

from zoo.tasks import Metric, Scored


class Loss(Metric):
    """Mean nats of the targets that count, each by its weight: nll / weight."""

    unit = "nats per token"

    def count(self, scored: Scored) -> dict[str, float]:
        return {"nll": scored.nll, "weight": scored.weight}

    def score(self, sums: Mapping[str, float]) -> float:
        return sums["nll"] / sums["weight"]


class Perplexity(Loss):
    """The number of equally likely tokens among which the model would be as unsure: exp(nll / weight)."""

    unit = ""

    def score(self, sums: Mapping[str, float]) -> float:
        try:
            return math.exp(super().score(sums))
        except OverflowError:
            return math.inf


class BitsPerByte(Metric):
    """Bits for each byte of the text, so that tokenizers can be compared: nll / ln 2 / bytes."""

    unit = "bits per byte"

    def count(self, scored: Scored) -> dict[str, float]:
        return {"nll": scored.nll, "bytes": scored.bytes}

    def score(self, sums: Mapping[str, float]) -> float:
        return sums["nll"] / math.log(2) / sums["bytes"]


class Accuracy(Metric):
    """The share of tokens whose target is the likeliest: right / tokens."""

    better, unit, needs = "higher", "share of tokens", "logits"

    def count(self, scored: Scored) -> dict[str, float]:
        return {"right": scored.right.sum().item(), "tokens": scored.counted.sum().item()}

    def score(self, sums: Mapping[str, float]) -> float:
        return sums["right"] / sums["tokens"]


class Exact(Metric):
    """The share of rows in which every target is the likeliest: exact / rows."""

    better, unit, needs = "higher", "share of rows", "logits"

    def count(self, scored: Scored) -> dict[str, float]:
        rows = scored.counted.any(1)
        exact = (scored.right == scored.counted).all(1) & rows
        return {"exact": exact.sum().item(), "rows": rows.sum().item()}

    def score(self, sums: Mapping[str, float]) -> float:
        return sums["exact"] / sums["rows"]
