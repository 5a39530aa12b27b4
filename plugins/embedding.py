"""Token ids to vectors. B batch, T tokens, D d_model."""

from __future__ import annotations

import math
from collections.abc import Callable

from torch import Tensor, nn

from zoo.parts import Embedding, Shape


class Tokens(Embedding):
    """x = √width · table[id], then the positions, then the norm if `normed`, then the way up to d_model.

    Scaled as in Vaswani et al. 2017, https://arxiv.org/abs/1706.03762; factorised where d_embed differs from d_model,
    in the order of ALBERT (Lan et al. 2019, https://arxiv.org/abs/1909.11942). Raises `ValueError` for segments,
    which it does not know.
    """

    def __init__(
        self,
        shape: Shape,
        table: nn.Embedding,
        norm: Callable[..., nn.Module],
        *,
        scale: bool = True,
        normed: bool = False,
    ):
        super().__init__()
        self.width = shape.embed_width
        self.scale = math.sqrt(self.width) if scale else 1.0
        self.table = table
        self.norm = norm(dim=self.width) if normed else nn.Identity()
        same = self.width == shape.d_model
        self.up = nn.Identity() if same else nn.Linear(self.width, shape.d_model, bias=False)

    def lift(
        self, source: Tensor, keep: Tensor | None, segments: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:  # [B, T] -> [B, T, width], [B, T]
        if segments is not None:
            raise ValueError("this embedding has no segments; leave them out")
        return self.table(source) * self.scale, keep

    def settle(self, x: Tensor) -> Tensor:  # [B, T, width] -> [B, T, D]
        return self.up(self.norm(x))
