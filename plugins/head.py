"""Last states to logits. B batch, T tokens, D d_model, V vocabulary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from zoo.parts import Shape

from .ffn import ACTIVATIONS, Activation


class Logits(nn.Module):
    """l = scale · x Eᵀ + b, then c tanh(l / c) where there is a `softcap` c; E is the table it is given.

    With the input's own table this is the tied head: Press & Wolf 2017, https://arxiv.org/abs/1608.05859. Where the
    table is narrower than d_model, a projection comes first. Raises `ValueError` for a softcap that is not positive.
    """

    def __init__(
        self,
        shape: Shape,
        table: nn.Embedding,
        *,
        bias: bool = False,
        scale: float | None = None,
        softcap: float | None = None,
    ):
        super().__init__()
        if softcap is not None and softcap <= 0:
            raise ValueError(f"softcap is {softcap}; it should be above 0")
        width = table.embedding_dim
        self.scale, self.softcap = scale, softcap
        self.down = nn.Identity() if width == shape.d_model else nn.Linear(shape.d_model, width, bias=False)
        self.table = table
        self.bias = nn.Parameter(torch.zeros(table.num_embeddings)) if bias else None

    def forward(self, x: Tensor) -> Tensor:  # [..., D] -> [..., V]
        x = self.down(x)
        logits = F.linear(x if self.scale is None else x * self.scale, self.table.weight, self.bias)
        return logits if self.softcap is None else self.softcap * torch.tanh(logits / self.softcap)


def untied(shape: Shape, *, bias: bool = False, scale: float | None = None, softcap: float | None = None) -> Logits:
    """The same with a table of its own, d_model wide."""
    # An Embedding, not a Linear: one rule then initialises every table of the vocabulary, whichever end it stands at.
    table = nn.Embedding(shape.vocab_size, shape.d_model)
    return Logits(shape, table, bias=bias, scale=scale, softcap=softcap)


class Transformed(nn.Module):
    """logits(norm(activation(dense(x)))): the head of BERT (Devlin et al. 2018, https://arxiv.org/abs/1810.04805).

    `dense` leads to the width of the table, as in ALBERT, and has a bias unless `dense_bias` is false, as in
    ModernBERT; `bias` is that of the logits. With activation tanh and no norm, `dense` is BERT's pooler.
    """

    def __init__(
        self,
        shape: Shape,
        table: nn.Embedding,
        norm: Callable[..., nn.Module],
        *,
        activation: Activation = "gelu",
        dense_bias: bool = True,
        bias: bool = True,
    ):
        super().__init__()
        width = table.embedding_dim
        self.activation = activation
        self.dense = nn.Linear(shape.d_model, width, bias=dense_bias)
        self.norm = norm(dim=width)
        self.logits = Logits(replace(shape, d_model=width, head_dim=shape.head_width), table, bias=bias)

    def forward(self, x: Tensor) -> Tensor:  # [..., D] -> [..., V]
        return self.logits(self.norm(ACTIVATIONS[self.activation](self.dense(x))))

    def extra_repr(self) -> str:
        return f"activation={self.activation}"
