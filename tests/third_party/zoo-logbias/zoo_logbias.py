"""A position encoding whose bias falls with the logarithm of the distance."""

import torch
from torch import Tensor

import zoo
from zoo.parts import Position, Shape


class LogBias(Position):
    def __init__(self, shape: Shape, *, strength: float = 1.0):
        super().__init__(shape)
        self.strength = strength

    def bias(self, q_at: Tensor, k_at: Tensor, causal: bool) -> Tensor:
        return -self.strength * torch.log1p((q_at[:, :, None] - k_at[:, None, :]).abs())[:, None]


@zoo.hookimpl
def zoo_variants() -> list[zoo.Variant]:
    return [zoo.Variant("position", "log-bias", LogBias, "Bias falls with log distance.")]
