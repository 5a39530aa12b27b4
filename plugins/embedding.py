"""Token ids to vectors. B batch, T tokens, D d_model."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

from zoo.parts import Embedding, Shape


class Tokens(Embedding):
    """x = √width · table[id] + segments[s], then the positions, then the norm if `normed`, then the way up to d_model.

    Scaled as in Vaswani et al. 2017, https://arxiv.org/abs/1706.03762. `segments` is the number of kinds that tokens
    may be of, as in BERT (Devlin et al. 2018, https://arxiv.org/abs/1810.04805); all are of kind 0 where nobody says
    which. Factorised where d_embed differs from d_model: the way up has a `bias` or none, and positions are added
    before it, `narrow`, as in ALBERT (Lan et al. 2019, https://arxiv.org/abs/1909.11942), or after it, `wide`, as in
    OPT-350m, and then the norm too. Raises `ValueError` for segments where there are none.
    """

    def __init__(
        self,
        shape: Shape,
        table: nn.Embedding,
        norm: Callable[..., nn.Module],
        *,
        scale: bool = True,
        normed: bool = False,
        segments: int = 0,
        positions: Literal["narrow", "wide"] = "narrow",
        bias: bool = False,
    ):
        super().__init__()
        if segments < 0:
            raise ValueError(f"segments is {segments}; it should be at least 0")
        narrow, wide = shape.embed_width, shape.d_model
        self.early = positions == "wide"
        self.width = wide if self.early else narrow
        self.scale = math.sqrt(narrow) if scale else 1.0
        self.table = table
        self.segments = nn.Embedding(segments, narrow) if segments else None
        self.norm = norm(dim=self.width) if normed else nn.Identity()
        self.up = nn.Identity() if narrow == wide else nn.Linear(narrow, wide, bias=bias)

    def look_up(
        self, source: Tensor, keep: Tensor | None, segments: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:  # [B, T] -> [B, T, width], [B, T]
        x = self.table(source) * self.scale
        if self.segments is not None:
            x = x + self.segments(torch.zeros_like(source) if segments is None else segments)
        elif segments is not None:
            raise ValueError("this embedding has no segments; leave them out")
        return (self.up(x) if self.early else x), keep

    def finish(self, x: Tensor) -> Tensor:  # [B, T, width] -> [B, T, D]
        x = self.norm(x)
        return x if self.early else self.up(x)


def unnormed(
    shape: Shape,
    table: nn.Embedding,
    *,
    scale: bool = True,
    segments: int = 0,
    positions: Literal["narrow", "wide"] = "narrow",
    bias: bool = False,
) -> Tokens:
    """`Tokens` without a norm."""
    return Tokens(shape, table, nn.Identity, scale=scale, segments=segments, positions=positions, bias=bias)
