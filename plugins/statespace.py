"""State spaces that choose by content what they remember.

B batch, T new tokens, D d_model, I inner width, N state per inner channel, R rank of the step sizes, C taps.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from zoo.parts import Attention, AttentionContext, OutputProjection, Shape

from .recurrent import real_first, take


class SelectiveScan(torch.autograd.Function):
    """h_t = exp(Δ_t A) h_{t-1} + Δ_t u_t B_t, y_t = C_t·h_t; all that a step needs stays in the processor's cache.

    u and Δ [T, B, I], A [I, N], B and C [T, B, N], h [B, I, N] -> y [T, B, I] and the last h. Backwards the same
    recurrence runs from the end, and makes exp(Δ_t A) anew.
    """

    @staticmethod
    def forward(ctx, u, dt, A, B, C, h):
        if u.is_meta:  # nothing is computed, and as much is kept
            ctx.save_for_backward(u, dt, A, B, C, *h.new_empty(len(u) + 1, *h.shape))
            return torch.empty_like(u), h.clone()
        states, y = [h], []
        for t in range(u.shape[0]):
            h = torch.addcmul((u[t] * dt[t])[..., None] * B[t, :, None], (dt[t, ..., None] * A).exp_(), h)
            states.append(h)
            y.append((h * C[t, :, None]).sum(-1))
        ctx.save_for_backward(u, dt, A, B, C, *states)
        return torch.stack(y) if y else u.clone(), h.clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, d_y, d_h):
        u, dt, A, B, C, *states = ctx.saved_tensors
        d_A, found = torch.zeros_like(A), []
        for t in reversed(range(u.shape[0])):
            d_C = (d_y[t, ..., None] * states[t + 1]).sum(1)
            d_h = torch.addcmul(d_h, d_y[t, ..., None], C[t, :, None])
            d_B = ((u[t] * dt[t])[..., None] * d_h).sum(1)
            d_in = (d_h * B[t, :, None]).sum(-1)
            d_h = d_h * (dt[t, ..., None] * A).exp_()
            d_exponent = d_h * states[t]
            d_A += (d_exponent * dt[t, ..., None]).sum(0)
            found.append((d_in * dt[t], d_in * u[t] + (d_exponent * A).sum(-1), d_B, d_C))
        d_u, d_dt, d_B, d_C = map(torch.stack, zip(*reversed(found), strict=True)) if found else (u, dt, B, C)
        return d_u, d_dt, d_A, d_B, d_C, d_h


class Mamba(Attention):
    """out = (y + d u) silu(gate) Wo, h_t = exp(Δ_t A) h_{t-1} + Δ_t B_t u_t, y_t = C_t·h_t, where u is a causal
    convolution of the input and Δ, B and C are linear in u.

    Gu and Dao 2023, https://arxiv.org/abs/2312.00752. It usually stands in a model whose `ffn` is none. `d_state` is N,
    `d_conv` the taps of the convolution, `expand` I / D and `dt_rank` R, D / 16 if it is auto. What is remembered are
    h and the last taps. Raises `ValueError` for a size below 1.
    """

    supports = frozenset()

    def __init__(
        self,
        shape: Shape,
        *,
        d_state: int = 16,
        d_conv: int = 4,
        expand: int = 2,
        dt_rank: int | Literal["auto"] = "auto",
    ):
        super().__init__()
        rank = math.ceil(shape.d_model / 16) if dt_rank == "auto" else dt_rank
        for name, size in {"d_state": d_state, "d_conv": d_conv, "expand": expand, "dt_rank": rank}.items():
            if size < 1:
                raise ValueError(f"{name} is {size}; it should be at least 1")
        inner = expand * shape.d_model
        self.sizes = [rank, d_state, d_state]
        self.up = nn.Linear(shape.d_model, 2 * inner, bias=False)
        self.conv = nn.Conv1d(inner, inner, d_conv, groups=inner)
        self.select = nn.Linear(inner, sum(self.sizes), bias=False)
        self.dt = nn.Linear(rank, inner, bias=False)
        steps = torch.linspace(math.log(1e-3), math.log(1e-1), inner).exp()
        self.dt_bias = nn.Parameter(steps + torch.log(-torch.expm1(-steps)))  # softplus of it is `steps`
        self.log_decay = nn.Parameter(torch.arange(1.0, d_state + 1).log().repeat(inner, 1))
        self.skip = nn.Parameter(torch.ones(inner))
        self.out = OutputProjection(inner, shape.d_model, bias=False)

    def forward(self, x: Tensor, memory: Tensor, ctx: AttentionContext) -> Tensor:
        if not x.shape[1]:  # nothing to convolve
            return x
        if ctx.new_keep is None:
            return self.mix(x, None, ctx)
        order = real_first(ctx.new_keep)
        real = ctx.new_keep.gather(1, order)
        return take(self.mix(take(x, order), real, ctx), order.argsort(1))

    def mix(self, x: Tensor, real: Tensor | None, ctx: AttentionContext) -> Tensor:
        """x [B, T, D], whose pads come last in each row."""
        u, gate = self.up(x).chunk(2, -1)
        taps = self.conv.kernel_size[0] - 1
        wide = torch.promote_types(u.dtype, torch.float32)
        tail, h = ctx.cell.recall() or (
            u.new_zeros(u.shape[0], taps, u.shape[2]),
            u.new_zeros(u.shape[0], *self.log_decay.shape, dtype=wide),
        )
        u = torch.cat([tail, u], 1)
        n = x.shape[1] if real is None else real.sum(1, keepdim=True)
        tail = take(u, (n + torch.arange(taps, device=u.device)).expand(u.shape[0], -1))
        u = F.silu(self.conv(u.transpose(1, 2)).transpose(1, 2))
        dt, B, C = self.select(u).split(self.sizes, -1)
        dt = F.softplus((self.dt(dt) + self.dt_bias).to(wide))
        if real is not None:
            dt = dt * real[..., None]  # a step of no size changes nothing
        moving = [part.to(wide).transpose(0, 1).contiguous() for part in (u, dt, B, C)]
        y, h = SelectiveScan.apply(*moving[:2], -self.log_decay.to(wide).exp(), *moving[2:], h)
        ctx.cell.store(tail, h)
        y = y.transpose(0, 1).to(u.dtype) + self.skip * u
        return self.out(y * F.silu(gate))

    def uncounted(self, tokens: int) -> int:
        """The scan: Δ A, its exponential, Δ u B, the new h in two and C·h in two."""
        return 7 * tokens * self.log_decay.numel()
