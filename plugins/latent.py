"""Multi-head latent attention: keys and values as projections of one narrow vector per token.

B batch, T queries, S keys, D d_model, H heads, K width of the part of a head that is not rotated, R width of the part
that is, W value width, C width of the latent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated

import torch
from torch import Tensor, nn

from zoo.parts import Attention, AttentionContext, Grows, Kernel, OutputProjection, Shape

HeadWidth = Annotated[int | None, Grows("head_width")]


class Latent(Attention):
    """c = norm(m Wc); k_h = [c Uk_h ; rotate(m Wr)], v_h = c Uv_h; q_h = [x Wq_h ; rotate(x Wr_h)].

    Liu et al. 2024, https://arxiv.org/abs/2405.04434. The cache holds c [B, 1, S, C] and the one rotated head
    [B, 1, S, R] alone, which keys and values are made of again in each step; R is the width of a head in the shape.

    `kv_rank` is C; with `q_rank` the queries come from a normalised latent of that width too; `nope_dim` is K and
    `v_dim` is W, both R unless given; `bias` is that of the projections from and to the residual stream; `sharpness`
    multiplies the scores (K + R)^-0.5 q k^T, by (0.1 m ln f + 1)^2 in DeepSeek where YaRN stretched the context by f;
    `dropout` acts on the weights while training. Raises `ValueError` for numbers that cannot be.
    """

    supports = frozenset({"rotation", "bias", "cross", "bidirectional"})

    def __init__(
        self,
        shape: Shape,
        kernel: Callable[..., Kernel],
        norm: Callable[..., nn.Module],
        *,
        kv_rank: Annotated[int | None, Grows("d_model")] = None,
        q_rank: Annotated[int | None, Grows("d_model")] = None,
        nope_dim: HeadWidth = None,
        v_dim: HeadWidth = None,
        bias: bool = False,
        sharpness: float = 1.0,
        dropout: float = 0.0,
    ):
        super().__init__()
        heads, rope = shape.n_heads, shape.head_width
        rank = 4 * rope if kv_rank is None else kv_rank
        nope, value = (rope if width is None else width for width in (nope_dim, v_dim))
        check(kv_rank=rank, q_rank=q_rank, nope_dim=nope, v_dim=value)
        if not sharpness > 0:
            raise ValueError(f"sharpness is {sharpness}; it should be above 0")
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout is {dropout}; it should be at least 0 and below 1")
        self.heads, self.widths, self.direct = heads, (nope, rope, value), q_rank is None
        self.scale, self.dropout = sharpness * (nope + rope) ** -0.5, dropout
        if q_rank is None:
            self.q = nn.Linear(shape.d_model, heads * (nope + rope), bias=False)
        else:
            self.q_down = nn.Linear(shape.d_model, q_rank, bias=bias)
            self.q_norm = norm(dim=q_rank)
            self.q_up = nn.Linear(q_rank, heads * (nope + rope), bias=False)
        self.kv_down = nn.Linear(shape.d_model, rank, bias=bias)
        self.kv_norm = norm(dim=rank)
        self.kv_up = nn.Linear(rank, heads * (nope + value), bias=False)
        self.k_rope = nn.Linear(shape.d_model, rope, bias=bias)
        self.out = OutputProjection(heads * value, shape.d_model, bias=bias)
        self.kernel = kernel(n_heads=heads, head_dim=nope + rope, needs=("dropout",) if dropout else ())

    def forward(self, x: Tensor, memory: Tensor, ctx: AttentionContext) -> Tensor:
        q, latent, rope = self.project(x, memory, ctx)
        ctx = replace(ctx, scale=self.scale, dropout=self.dropout if self.training else 0.0)
        heads = self.kernel(q, *self.expand(latent, rope), ctx)
        return self.out(heads.transpose(1, 2).flatten(2))

    def project(self, x: Tensor, memory: Tensor, ctx: AttentionContext) -> tuple[Tensor, Tensor, Tensor]:
        """Queries [B, H, T, K + R] of x; latents [B, 1, S, C] and the rotated head [B, 1, S, R] of all that is seen."""
        nope, rope, _ = self.widths
        q = split(self.q(x) if self.direct else self.q_up(self.q_norm(self.q_down(x))), self.heads)
        if memory is not x:
            latent, k = ctx.cell.make_once(lambda: self.shrink(memory))
            return q, latent, k
        latent, k = self.shrink(memory)
        q_nope, q_rope = q.split([nope, rope], -1)
        q_rope, k = ctx.position.rotate(q_rope, k, *ctx.ready)
        latent, k = ctx.cell.grow(latent, k)
        return torch.cat([q_nope, q_rope], -1), latent, k

    def shrink(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        return split(self.kv_norm(self.kv_down(memory)), 1), split(self.k_rope(memory), 1)

    def expand(self, latent: Tensor, rope: Tensor) -> tuple[Tensor, Tensor]:
        """Keys [B, H, S, K + R] and values [B, H, S, W]."""
        nope, _, value = self.widths
        k, v = split(self.kv_up(latent[:, 0]), self.heads).split([nope, value], -1)
        return torch.cat([k, rope.expand(-1, self.heads, -1, -1)], -1), v


def split(x: Tensor, heads: int) -> Tensor:  # [B, T, n K] -> [B, n, T, K]
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def check(**widths: int | None) -> None:
    for name, width in widths.items():
        if width is not None and width < 1:
            raise ValueError(f"{name} is {width}; it should be at least 1")
