"""Small models, as a user would declare them."""

from __future__ import annotations

import torch
from torch import nn

from zoo import build
from zoo.registry import discover

POSITIONS = [entry.variant.name for entry in discover(plugins=False).variants("position")]
ARCHITECTURES = ["decoder-only", "encoder-only", "encoder-decoder"]
SIZES = {"d_model": 24, "n_heads": 4, "n_layers": 2, "vocab_size": 17, "max_len": 16}


def built(sizes: dict | None = None, **parts) -> nn.Module:
    """A model in float64 and eval mode, every parameter moved from where it starts."""
    model = build({"kernel": "naive", **parts}, shape={**SIZES, **(sizes or {})}).double().eval()
    random = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for p in model.parameters():
            p += torch.randn(p.shape, generator=random) * (0.3 if p.ndim < 2 else p.shape[-1] ** -0.5)
    return model


def ids(*rows: list[int]) -> torch.Tensor:
    return torch.tensor(rows)
