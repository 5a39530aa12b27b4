"""Normalisation over the last axis, [.., D] -> [.., D]. Statistics are float32, and the result is cast once.

D is `dim`: the width of the model, or of a head.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def checked(eps: float) -> float:
    """`eps`, or `ValueError` if it is negative."""
    if not eps >= 0:
        raise ValueError(f"eps is {eps}; it should be at least 0")
    return eps


def widened(x: Tensor) -> Tensor:
    """x in float32, or in float64 where it is that already: the square of 300 is no float16."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


class LayerNorm(nn.Module):
    """(x - mean) / sqrt(var + eps) * weight + bias, var over D, not D - 1 (Ba et al. 2016).

    Without `affine` there is neither weight nor bias. With `unit_offset` the gain is 1 + weight and weight starts at
    0, as in Nemotron. Raises `ValueError` for a negative eps, and for an offset of no weight.
    """

    def __init__(
        self, dim: int, *, eps: float = 1e-5, bias: bool = True, affine: bool = True, unit_offset: bool = False
    ):
        super().__init__()
        if unit_offset and not affine:
            raise ValueError("unit_offset is true and affine false; there is no weight to offset")
        self.eps, self.unit_offset = checked(eps), unit_offset
        self.weight = nn.Parameter(torch.zeros(dim) if unit_offset else torch.ones(dim)) if affine else None
        self.bias = nn.Parameter(torch.zeros(dim)) if affine and bias else None

    def forward(self, x: Tensor) -> Tensor:
        if not self.unit_offset or self.weight is None:
            return F.layer_norm(x, x.shape[-1:], self.weight, self.bias, self.eps)
        wide = widened(x)
        gain, bias = (None if p is None else p.to(wide.dtype) for p in (1 + widened(self.weight), self.bias))
        return F.layer_norm(wide, x.shape[-1:], gain, bias, self.eps).to(x.dtype)


class RMSNorm(nn.Module):
    """x / sqrt(mean(x^2) + eps) * weight (Zhang and Sennrich 2019).

    With `unit_offset` the gain is 1 + weight and weight starts at 0, as in Gemma. Raises `ValueError` for a negative
    eps.
    """

    def __init__(self, dim: int, *, eps: float = 1e-6, unit_offset: bool = False):
        super().__init__()
        self.eps = checked(eps)
        self.unit_offset = unit_offset
        self.weight = nn.Parameter(torch.zeros(dim) if unit_offset else torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        wide, gain = widened(x), widened(self.weight)
        gain = 1 + gain if self.unit_offset else gain
        return F.rms_norm(wide, x.shape[-1:], gain.to(wide.dtype), self.eps).to(x.dtype)


class ScaleNorm(nn.Module):
    """weight * x / max(|x|, eps) with one learned number, sqrt(D) at first (Nguyen and Salazar 2019).

    Raises `ValueError` for a negative eps.
    """

    def __init__(self, dim: int, *, eps: float = 1e-5):
        super().__init__()
        self.eps = checked(eps)
        self.weight = nn.Parameter(torch.full((), dim**0.5))

    def forward(self, x: Tensor) -> Tensor:
        wide = widened(x)
        length = torch.linalg.vector_norm(wide, dim=-1, keepdim=True).clamp(min=self.eps)
        return (widened(self.weight) * wide / length).to(x.dtype)


class DynamicTanh(nn.Module):
    """tanh(alpha * x) * weight + bias, alpha one learned number: no statistics at all (Zhu et al. 2025).

    Raises `ValueError` unless `alpha`, its first value, is above 0.
    """

    def __init__(self, dim: int, *, alpha: float = 0.5):
        super().__init__()
        if not alpha > 0:
            raise ValueError(f"alpha is {alpha}; it should be above 0")
        self.alpha = nn.Parameter(torch.full((), alpha))
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))

    def forward(self, x: Tensor) -> Tensor:
        bounded = torch.tanh(widened(self.alpha) * widened(x))
        return (bounded * widened(self.weight) + widened(self.bias)).to(x.dtype)


class NoNorm(nn.Module):
    """x as it is."""

    def __init__(self, dim: int):
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        return x
