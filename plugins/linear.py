"""Attention without a softmax, which can be summed up once and for all.

B batch, T queries, S keys, D d_model, H heads, K head width, N chunks of C tokens.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from zoo.parts import Attention, AttentionContext, OutputProjection, Shape


class LinearAttention(Attention):
    """out_t = Σ_s (φ(q_t)·φ(k_s)) v_s / Σ_s φ(q_t)·φ(k_s) over the s that t may see, with φ(z) = elu(z) + 1.

    Katharopoulos et al. 2020, https://arxiv.org/abs/2006.16236. Σ_s φ(k_s) [v_s, 1]ᵀ is all that is remembered. In a
    causal stack `chunk` tokens at a time look at one another by a matrix of scores, and at all before by that sum; it
    changes the speed alone. Who sees nothing gets zeros. Raises `ValueError` for a chunk below 1.
    """

    supports = frozenset({"cross", "bidirectional"})

    def __init__(self, shape: Shape, *, chunk: int = 32):
        super().__init__()
        if chunk < 1:
            raise ValueError(f"chunk is {chunk}; it should be at least 1")
        self.n_heads, self.chunk = shape.n_heads, chunk
        inner = shape.n_heads * shape.head_width
        self.q, self.k, self.v = (nn.Linear(shape.d_model, inner, bias=False) for _ in range(3))
        self.out = OutputProjection(inner, shape.d_model, bias=False)

    def forward(self, x: Tensor, memory: Tensor, ctx: AttentionContext) -> Tensor:
        q = self.split(self.q(x), feature=True)
        if memory is not x:
            (total,) = ctx.cell.make_once(lambda: (summed(*self.remember(memory, ctx.mask.keep)),))
            sums = q @ total
        elif ctx.mask.causal:
            sums, *state = scan(q, *self.remember(x, ctx.new_keep), ctx.cell.recall(), self.chunk)
            ctx.cell.store(*state)
        else:
            sums = q @ summed(*self.remember(x, ctx.new_keep))
        values, weight = sums[..., :-1], sums[..., -1:]
        heads = (values / weight.masked_fill(weight == 0, 1)).to(x.dtype)
        return self.out(heads.transpose(1, 2).flatten(2))

    def remember(self, memory: Tensor, keep: Tensor | None) -> tuple[Tensor, Tensor]:
        """φ(k) [B, H, S, K], 0 for pads, and [v, 1] [B, H, S, K + 1]."""
        k, v = self.split(self.k(memory), feature=True), self.split(self.v(memory))
        if keep is not None:
            k = k * keep[:, None, :, None]
        return k, F.pad(v, (0, 1), value=1.0)

    def split(self, x: Tensor, feature: bool = False) -> Tensor:  # [B, T, H K] -> [B, H, T, K], float32 or wider
        x = x.to(torch.promote_types(x.dtype, torch.float32))
        return (F.elu(x) + 1 if feature else x).unflatten(2, (self.n_heads, -1)).transpose(1, 2)


def summed(k: Tensor, v: Tensor) -> Tensor:  # [B, H, S, K], [B, H, S, K + 1] -> [B, H, K, K + 1]
    return k.transpose(-2, -1) @ v


def scan(q: Tensor, k: Tensor, v: Tensor, before: tuple[Tensor, ...] | None, chunk: int) -> tuple[Tensor, Tensor]:
    """Σ_{s ≤ t} (q_t·k_s) v_s, and the sum that is left for those that follow."""
    length, size = q.shape[2], min(chunk, max(q.shape[2], 1))
    n = -(-length // size)
    q, k, v = (F.pad(x, (0, 0, 0, n * size - length)).unflatten(2, (n, size)) for x in (q, k, v))  # [B, H, N, C, *]
    first = k.new_zeros(*k.shape[:2], k.shape[-1], v.shape[-1]) if before is None else before[0]
    totals = torch.cat([first[:, :, None], summed(k, v)], 2).cumsum(2)  # [B, H, N + 1, K, K + 1]
    near = (q @ k.transpose(-2, -1)).tril() @ v
    sums = near + q @ totals[:, :, :-1]
    return sums.flatten(2, 3)[:, :, :length], totals[:, :, -1]
