"""The step that treats each token alone: x [B, T, D] -> hidden [B, T, F] -> [B, T, D]."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Annotated, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from zoo.parts import AttentionContext, Grows, NoStep, OutputProjection, Shape

Activation = Literal["identity", "relu", "relu2", "gelu", "gelu-tanh", "sigmoid", "tanh", "swish"]
ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "identity": lambda x: x,
    "relu": F.relu,
    "relu2": lambda x: F.relu(x).square(),
    "gelu": F.gelu,
    "gelu-tanh": partial(F.gelu, approximate="tanh"),
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "swish": F.silu,
}
"""`gelu` is x Phi(x) by the error function, `gelu-tanh` its approximation; they differ by up to 4.7e-4."""

Width = Annotated[int | None, Grows("d_model", 8)]


def nothing() -> NoStep:
    """No step at all: the layer goes without it, and without its norm."""
    return NoStep()


def hidden_width(shape: Shape, d_ff: int | None, ratio: float) -> int:
    """The option `d_ff` if given, else the shape's, else `ratio * d_model` rounded up to a multiple of 8.

    Raises `ValueError` if the one that counts is not above 0.
    """
    if d_ff is not None and d_ff < 1:
        raise ValueError(f"d_ff is {d_ff}; it should be at least 1")
    if not ratio > 0:
        raise ValueError(f"ratio is {ratio}; it should be above 0")
    # 2.2 * 200 is 440.00000000000006 in floating point, and must not become 448.
    return d_ff or shape.d_ff or 8 * math.ceil(round(ratio * shape.d_model / 8, 9))


class Plain(nn.Module):
    """down(activation(up(x))) (Vaswani et al. 2017). Raises `ValueError` for a width below 1."""

    def __init__(
        self, shape: Shape, *, activation: Activation, d_ff: Width = None, ratio: float = 4.0, bias: bool = False
    ):
        super().__init__()
        width = hidden_width(shape, d_ff, ratio)
        self.activation = activation
        self.up = nn.Linear(shape.d_model, width, bias=bias)
        self.down = OutputProjection(width, shape.d_model, bias=bias)

    def forward(self, x: Tensor, ctx: AttentionContext) -> Tensor:
        return self.down(ACTIVATIONS[self.activation](self.up(x)))

    def extra_repr(self) -> str:
        return f"activation={self.activation}"


class Gated(nn.Module):
    """down(activation(gate(x)) * up(x)) (Shazeer 2020).

    Three matrices instead of two, so 8/3 keeps the parameters of a plain one at ratio 4. Raises `ValueError` for a
    width below 1.
    """

    def __init__(
        self, shape: Shape, *, activation: Activation, d_ff: Width = None, ratio: float = 8 / 3, bias: bool = False
    ):
        super().__init__()
        width = hidden_width(shape, d_ff, ratio)
        self.activation = activation
        self.up = nn.Linear(shape.d_model, width, bias=bias)
        self.gate = nn.Linear(shape.d_model, width, bias=bias)
        self.down = OutputProjection(width, shape.d_model, bias=bias)

    def forward(self, x: Tensor, ctx: AttentionContext) -> Tensor:
        return self.down(ACTIVATIONS[self.activation](self.gate(x)) * self.up(x))

    def extra_repr(self) -> str:
        return f"activation={self.activation}"


class Clamped(nn.Module):
    """down((1 + u) g sigmoid(slope g)) with g = min(gate(x), limit) and u = up(x) kept within +-limit.

    The experts of gpt-oss (OpenAI 2025, https://arxiv.org/abs/2508.10925): a gated step whose hidden values are
    bounded. Raises `ValueError` for a width below 1 or a limit that is not above 0.
    """

    def __init__(
        self,
        shape: Shape,
        *,
        limit: float = 7.0,
        slope: float = 1.702,
        d_ff: Width = None,
        ratio: float = 8 / 3,
        bias: bool = False,
    ):
        super().__init__()
        if not limit > 0:
            raise ValueError(f"limit is {limit}; it should be above 0")
        width = hidden_width(shape, d_ff, ratio)
        self.limit, self.slope = limit, slope
        self.up = nn.Linear(shape.d_model, width, bias=bias)
        self.gate = nn.Linear(shape.d_model, width, bias=bias)
        self.down = OutputProjection(width, shape.d_model, bias=bias)

    def forward(self, x: Tensor, ctx: AttentionContext) -> Tensor:
        gate = self.gate(x).clamp(max=self.limit)
        up = self.up(x).clamp(-self.limit, self.limit)
        return self.down((1 + up) * gate * torch.sigmoid(self.slope * gate))

    def extra_repr(self) -> str:
        return f"limit={self.limit}, slope={self.slope}"
