"""A position encoding whose bias falls with the logarithm of the distance."""

import torch

import zoo
from zoo.parts import Position


class LogBias(Position):
    def __init__(self, shape, *, strength: float = 1.0):
        super().__init__(shape)
        self.strength = strength

    def bias(self, q_at, k_at, causal):
        return -self.strength * torch.log1p((q_at[:, :, None] - k_at[:, None, :]).abs())[:, None]


@zoo.hookimpl
def zoo_variants():
    return [zoo.Variant("position", "log-bias", LogBias, "Bias falls with log distance.")]
