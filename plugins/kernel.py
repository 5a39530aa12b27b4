"""How scores become outputs.

B batch, T queries, S keys, H query heads, G key/value heads, K head width, W value width.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.flop_counter import register_flop_formula

from zoo.parts import AttentionContext, Kernel


def spread(x: Tensor, n_heads: int) -> Tensor:  # [B, G, S, *] -> [B, H, S, *]
    """Give every query head its own copy of the key head that it reads: h reads h // (H / G)."""
    times = n_heads // x.shape[1]
    return x if times == 1 else x.repeat_interleave(times, 1)


def score(q: Tensor, k: Tensor, bias: Tensor | None, ctx: AttentionContext) -> Tensor:
    """cap(scale q kᵀ) + bias, with cap(s) = c tanh(s / c): [B, H, T, K], [B, G, S, K] -> [B, H, T, S]."""
    scale = q.shape[-1] ** -0.5 if ctx.scale is None else ctx.scale
    return settle((q * scale) @ spread(k, q.shape[1]).transpose(-2, -1), bias, ctx)


def settle(scores: Tensor, bias: Tensor | None, ctx: AttentionContext) -> Tensor:
    """cap(s) + bias, both where there are such."""
    if ctx.softcap is not None:
        scores = ctx.softcap * torch.tanh(scores / ctx.softcap)
    return scores if bias is None else scores + bias.to(scores.dtype)


def weigh(scores: Tensor, v: Tensor, ctx: AttentionContext) -> Tensor:
    """softmax(s) v over the keys that may be seen: [B, H, T, S], [B, G, S, W] -> [B, H, T, W]."""
    see = ctx.attention_mask()
    if see is not None:
        scores = scores.masked_fill(~see, torch.finfo(scores.dtype).min)
    if ctx.sink is not None:
        sink = ctx.sink.to(scores.dtype)[:, None, None].expand(*scores.shape[:-1], 1)
        scores = torch.cat([scores, sink], -1)
    weights = scores.softmax(-1)[..., : v.shape[2]]
    if see is not None:  # a row that sees nothing came out uniform
        weights = weights.masked_fill(~see, 0)
    if ctx.dropout:
        weights = F.dropout(weights, ctx.dropout)
    return weights.to(v.dtype) @ spread(v, scores.shape[1])


class Naive(Kernel):
    """softmax(scale q kᵀ + bias) v, step by step: the oracle that every other kernel is held to.

    Vaswani et al. 2017, https://arxiv.org/abs/1706.03762. Stores all T x S scores. A query that may see no key
    gives zeros. A sink is one more score per head, which takes weight and gives nothing.
    """

    supports = frozenset({"bias", "window", "softcap", "sink", "dropout", "cross"})
    effective = "naive"

    def __init__(self, n_heads: int, head_dim: int, needs: Sequence[str]):
        super().__init__()

    def forward(self, q: Tensor, k: Tensor, v: Tensor, ctx: AttentionContext) -> Tensor:
        return weigh(score(q, k, ctx.bias, ctx), v, ctx)


class Additive(Kernel):
    """softmax(scale w·tanh(q + k) + bias) v, with a vector w per head; the scale is 1 unless the attention gives one.

    Bahdanau et al. 2014, https://arxiv.org/abs/1409.0473. Each pair of a query and a key needs K hyperbolic tangents,
    so all T x S x K of them are stored: no way is known to hide them from memory as in the tiled product. A query that
    may see no key gives zeros.
    """

    supports = Naive.supports
    effective = "additive"

    def __init__(self, n_heads: int, head_dim: int, needs: Sequence[str]):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n_heads, head_dim) * head_dim**-0.5)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, ctx: AttentionContext) -> Tensor:
        pairs = torch.tanh(q[:, :, :, None] + spread(k, q.shape[1])[:, :, None])  # [B, H, T, S, K]
        weight = self.weight if ctx.scale is None else self.weight * ctx.scale
        scores = (pairs @ weight[:, None, :, None]).squeeze(-1)
        return weigh(settle(scores, ctx.bias, ctx), v, ctx)


@register_flop_formula(torch.ops.aten._scaled_dot_product_flash_attention_for_cpu)
def in_fused_attention(q: torch.Size, k: torch.Size, v: torch.Size, *rest, **more) -> int:
    """FLOPs that torch's counter has no number for: q [B, H, T, K], k [B, G, S, K], v [B, G, S, W]."""
    return 2 * q.numel() * k[2] + 2 * q[:3].numel() * v[2] * v[3]


class Flash(Kernel):
    """`torch.nn.functional.scaled_dot_product_attention`: exact, and never stores the scores where torch can help it.

    Dao et al. 2022, https://arxiv.org/abs/2205.14135. `effective` says where torch must take its plain path.
    """

    supports = frozenset({"bias", "window", "dropout", "cross"})

    def __init__(self, n_heads: int, head_dim: int, needs: Sequence[str]):
        super().__init__()
        reasons = {"learned-bias": "the bias needs a gradient", "dropout": "dropout on a CPU"}
        slow = " and ".join(why for need, why in reasons.items() if need in needs)
        self.effective = f"flash (SDPA's math path: {slow})" if slow else "flash"

    def forward(self, q: Tensor, k: Tensor, v: Tensor, ctx: AttentionContext) -> Tensor:
        # SDPA counts `is_causal` from the first key, we from the last: they agree only where T = S.
        causal = ctx.mask.plain and ctx.mask.causal and ctx.bias is None and q.shape[2] == k.shape[2]
        added = ctx.additive_mask()
        mask = added.to(q.dtype) if added is not None else None if causal else ctx.attention_mask()
        scale, width = ctx.scale, v.shape[-1]
        if width != q.shape[-1]:  # torch's fused kernels know one width alone; zeros change nothing
            scale = q.shape[-1] ** -0.5 if scale is None else scale
            q, k, v = (F.pad(x, (0, max(width, q.shape[-1]) - x.shape[-1])) for x in (q, k, v))
        out = F.scaled_dot_product_attention(
            q,
            k,
            v,
            attn_mask=mask,
            dropout_p=ctx.dropout,
            is_causal=causal,
            scale=scale,
            enable_gqa=q.shape[1] != k.shape[1],
        )
        return out[..., :width]


class Tiled(Kernel):
    """Flash attention by hand: blocks of scores and a softmax that is corrected as it goes.

    With m the largest score so far, l = Σ exp(s - m) and o = Σ exp(s - m) v, a block that raises m to m' first
    shrinks l and o by exp(m - m'); the output is o / l. Milakov & Gimelshein 2018,
    https://arxiv.org/abs/1805.02867; Dao et al. 2022, https://arxiv.org/abs/2205.14135. Without a gradient the memory
    is O(T + S), plus the mask and the bias where there are such (a plain causal mask is never stored).
    """

    supports = frozenset({"bias", "window", "softcap", "sink", "cross"})
    effective = "tiled"

    def __init__(self, n_heads: int, head_dim: int, needs: Sequence[str], *, block: int = 64):
        super().__init__()
        if block < 1:
            raise ValueError(f"block is {block}; it should be at least 1")
        self.block = block

    def forward(self, q: Tensor, k: Tensor, v: Tensor, ctx: AttentionContext) -> Tensor:
        starts = range(0, max(q.shape[2], 1), self.block)
        return torch.cat([self.strip(start, q, k, v, ctx) for start in starts], 2)

    def strip(self, start: int, q: Tensor, k: Tensor, v: Tensor, ctx: AttentionContext) -> Tensor:
        """The outputs of one block of queries, which begins at `start`: [B, H, block, W]."""
        T, S = q.shape[2], k.shape[2]
        rows = slice(start, min(start + self.block, T))
        q, last = q[:, :, rows], S - T + rows.stop
        peak, total, out = begin(q, v, ctx)
        for first in range(0, last if ctx.mask.plain and ctx.mask.causal else S, self.block):
            keys = slice(first, min(first + self.block, S))
            scores = score(q, k[:, :, keys], None if ctx.bias is None else ctx.bias[..., rows, keys], ctx)
            scores = scores.to(peak.dtype)
            see = look(rows, keys, S - T, ctx)
            if see is not None:
                scores = scores.masked_fill(~see, torch.finfo(scores.dtype).min)
            higher = torch.maximum(peak, scores.detach().amax(-1, keepdim=True))
            weights, shrink = torch.exp(scores - higher), torch.exp(peak - higher)
            if see is not None:
                weights = weights.masked_fill(~see, 0)
            total = total * shrink + weights.sum(-1, keepdim=True)
            out = out * shrink + weights.to(v.dtype) @ spread(v[:, :, keys], q.shape[1])
            peak = higher
        return (out / total.masked_fill(total == 0, 1)).to(v.dtype)


def begin(q: Tensor, v: Tensor, ctx: AttentionContext) -> tuple[Tensor, Tensor, Tensor]:
    """Largest score, sum and output before the first key, in float32 or wider; a sink is already counted."""
    wide = torch.promote_types(q.dtype, torch.float32)
    peak = q.new_full((*q.shape[:3], 1), torch.finfo(wide).min, dtype=wide)
    total = torch.zeros_like(peak)
    if ctx.sink is not None:
        sink = ctx.sink.to(wide)[:, None, None].expand_as(peak)
        peak = sink.detach()
        total = torch.exp(sink - peak)
    return peak, total, q.new_zeros(*q.shape[:3], v.shape[-1], dtype=wide)


def look(rows: slice, keys: slice, behind: int, ctx: AttentionContext) -> Tensor | None:
    """The mask of one block; `behind` is how many keys stand before the first query."""
    if not (ctx.mask.plain and ctx.mask.causal):
        see = ctx.attention_mask()
        return see if see is None else see[..., rows, keys]
    if keys.stop <= behind + rows.start + 1:
        return None
    index = torch.arange(keys.start, keys.stop, device=ctx.k_at.device)
    return torch.arange(behind + rows.start, behind + rows.stop, device=index.device)[:, None] >= index


def auto(n_heads: int, head_dim: int, needs: Sequence[str]) -> Kernel:
    """Flash where it can carry what is needed on a fast path, naive elsewhere; `effective` of the result says which."""
    slow = {"dropout", "learned-bias"}
    return (Flash if set(needs) <= Flash.supports - slow else Naive)(n_heads, head_dim, needs)
