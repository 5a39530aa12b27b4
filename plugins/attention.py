"""How heads are projected, shared and joined.

B batch, T queries, S keys, D d_model, H query heads, G key/value heads, K head width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Literal

import torch
from torch import Tensor, nn

from zoo.parts import Attention, AttentionContext, Divides, Grows, Kernel, NoStep, OutputProjection, Shape


def nothing() -> NoStep:
    """No attention: the step is left out of its layer."""
    return NoStep()


class MultiHead(Attention):
    """head_h = kernel(x Wq_h, m Wk_g, m Wv_g) with g = h // (H / G); out = [head_1 … head_H] Wo.

    Multi-head with G = H (Vaswani et al. 2017, https://arxiv.org/abs/1706.03762), multi-query with G = 1 (Shazeer
    2019, https://arxiv.org/abs/1911.02150), grouped-query between them (Ainslie et al. 2023,
    https://arxiv.org/abs/2305.13245).

    `kv_heads` is G, `head_dim` is K; `bias` is true or names the projections that have one; `qk_norm` normalises
    queries and keys per head or over all heads; `window` lets a token see those nearer than so many positions;
    `scale` multiplies q kᵀ and defaults to K^-0.5; `softcap` c makes a score c tanh(s / c); `sinks` gives each head a
    learned score that takes weight and gives nothing; `dropout` acts on the weights while training. Raises
    `ValueError` for numbers that cannot be. To change it, wrap it: `project`, `kernel` and `out` are its three steps.
    """

    supports = frozenset({"rotation", "bias", "cross", "bidirectional"})

    def __init__(
        self,
        shape: Shape,
        kernel: Callable[..., Kernel],
        norm: Callable[..., nn.Module],
        *,
        kv_heads: Annotated[int | None, Divides("n_heads")] = None,
        head_dim: Annotated[int | None, Grows("head_width", 2)] = None,
        bias: bool | list[Literal["q", "k", "v", "out"]] = False,
        qk_norm: Literal["none", "head", "full"] = "none",
        window: Annotated[int | None, Grows("max_len")] = None,
        scale: float | None = None,
        softcap: float | None = None,
        sinks: bool = False,
        dropout: float = 0.0,
    ):
        super().__init__()
        heads, width = shape.n_heads, shape.head_width if head_dim is None else head_dim
        groups = heads if kv_heads is None else kv_heads
        check(heads, groups, width, window, scale, softcap, dropout)
        biased = {"q", "k", "v", "out"} if bias is True else set(bias or ())
        self.head_dim, self.full_norm = width, qk_norm == "full"
        self.window, self.scale, self.softcap, self.dropout = window, scale, softcap, dropout
        self.q = nn.Linear(shape.d_model, heads * width, bias="q" in biased)
        self.k = nn.Linear(shape.d_model, groups * width, bias="k" in biased)
        self.v = nn.Linear(shape.d_model, groups * width, bias="v" in biased)
        self.out = OutputProjection(heads * width, shape.d_model, bias="out" in biased)
        self.q_norm, self.k_norm = (
            nn.Identity() if qk_norm == "none" else norm(dim=width if qk_norm == "head" else n * width)
            for n in (heads, groups)
        )
        self.sink = nn.Parameter(torch.zeros(heads)) if sinks else None
        asked = {"window": window is not None, "softcap": softcap is not None, "sink": sinks, "dropout": dropout > 0}
        self.kernel = kernel(n_heads=heads, head_dim=width, needs=tuple(need for need, yes in asked.items() if yes))

    def forward(self, x: Tensor, memory: Tensor, ctx: AttentionContext) -> Tensor:
        if memory is x and self.window is not None:
            ctx = replace(ctx, mask=replace(ctx.mask, window=self.window))
        ctx = replace(
            ctx,
            scale=self.scale,
            softcap=self.softcap,
            sink=self.sink,
            dropout=self.dropout if self.training else 0.0,
        )
        heads = self.kernel(*self.project(x, memory, ctx), ctx)
        return self.out(heads.transpose(1, 2).flatten(2))

    def project(self, x: Tensor, memory: Tensor, ctx: AttentionContext) -> tuple[Tensor, Tensor, Tensor]:
        """Queries [B, H, T, K] of x, and keys and values [B, G, S, K] of all that may be seen, rotated and cached."""
        q = self.split(self.q(x), self.q_norm)
        if memory is not x:
            k, v = ctx.cell.make_once(lambda: self.remember(memory))
            return q, k, v
        k, v = self.remember(memory)
        q, k = ctx.position.rotate(q, k, *ctx.ready)
        k, v = ctx.cell.grow(k, v)
        return q, k, v

    def remember(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        return self.split(self.k(memory), self.k_norm), self.split(self.v(memory))

    def split(self, x: Tensor, norm: nn.Module | None = None) -> Tensor:  # [B, T, n K] -> [B, n, T, K]
        if norm is not None and self.full_norm:
            x = norm(x)
        x = x.view(*x.shape[:2], x.shape[2] // self.head_dim, self.head_dim)
        if norm is not None and not self.full_norm:
            x = norm(x)
        return x.transpose(1, 2)


def check(
    heads: int, groups: int, width: int, window: int | None, scale: float | None, softcap: float | None, dropout: float
) -> None:
    if groups < 1 or heads % groups:
        divisors = [n for n in range(1, heads + 1) if heads % n == 0]
        near = [*[n for n in divisors if n < groups][-1:], *[n for n in divisors if n > groups][:1]]
        raise ValueError(
            f"kv_heads {groups} does not divide n_heads {heads}; the nearest that do: {' and '.join(map(str, near))}"
        )
    if width < 1:
        raise ValueError(f"head_dim is {width}; it should be at least 1")
    if window is not None and window < 1:
        raise ValueError(f"window is {window}; it should be at least 1, which is the token itself")
    if scale is not None and scale <= 0:
        raise ValueError(f"scale is {scale}; it should be above 0")
    if softcap is not None and softcap <= 0:
        raise ValueError(f"softcap is {softcap}; it should be above 0")
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout is {dropout}; it should be at least 0 and below 1")
