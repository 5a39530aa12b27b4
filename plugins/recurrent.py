"""Recurrent networks as mixers of tokens: what is remembered has one size, however much was read.

B batch, T new tokens, D d_model, W hidden width.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import register_flop_formula

from zoo.parts import Attention, AttentionContext, OutputProjection, Place, Shape, Uncached

State = tuple[Tensor, ...]


def real_first(keep: Tensor) -> Tensor:
    """The indices of each row of `keep` [B, T] in the order that brings its real tokens before its pads."""
    return (~keep).to(torch.uint8).argsort(dim=1, stable=True)


def take(x: Tensor, order: Tensor) -> Tensor:  # [B, T, D], [B, T] -> [B, T, D]
    return x.gather(1, order[..., None].expand(-1, -1, x.shape[-1]))


@register_flop_formula([torch.ops.aten.mkldnn_rnn_layer, torch.ops.aten._cudnn_rnn])
def in_fused_loops(x: torch.Size, weights, *rest, **more) -> int:
    """FLOPs that torch's counter has no number for: those of the maps of x [T, B, D] and of the hidden vectors."""
    maps = weights if isinstance(weights, list) else [weights, rest[0]]
    return 2 * x[:-1].numel() * sum(w.numel() for w in maps if len(w) == 2)


class Cell(nn.Module):
    """One recurrence in one direction. `gates` is how many affine maps it has of input and hidden vector, and `kept`
    how many vectors it hands on, the hidden one first.
    """

    gates: int
    kept = 1

    def __init__(self, dim: int, width: int):
        super().__init__()
        self.width = width
        self.input = nn.Linear(dim, self.gates * width, bias=False)
        self.hidden = nn.Linear(width, self.gates * width, bias=False)
        self.bias = nn.Parameter(torch.zeros(self.gates * width))

    def step(self, z: Tensor, *state: Tensor) -> State:
        """The next state, of z = W x + b [B, gates W] and the state before."""
        raise NotImplementedError

    def fused(self, x: Tensor, *state: Tensor) -> tuple[Tensor, State]:
        """As `scan` without pads, by torch's own loop."""
        raise NotImplementedError

    def forward(self, x: Tensor, state: State | None, keep: Tensor | None, ends: bool) -> tuple[Tensor, State]:
        """x [B, T, D] -> [B, T, W], and the state after the last real token of each row, if `ends` asks for it."""
        state = state or (x.new_zeros(x.shape[0], self.width),) * self.kept
        if not x.shape[1]:
            return x.new_zeros(*x.shape[:2], self.width), state
        if keep is None:
            return self.fused(x, *state)
        if ends:
            return self.scan(x, state, keep)
        order = real_first(keep)  # what follows the real tokens does not reach them
        out, _ = self.fused(take(x, order), *state)
        return take(out, order.argsort(1)), state

    def scan(self, x: Tensor, state: State, keep: Tensor) -> tuple[Tensor, State]:
        """Step by step; a pad leaves the state as it was."""
        out = []
        for z, real in zip((self.input(x) + self.bias).unbind(1), keep[..., None].unbind(1), strict=True):
            state = tuple(torch.where(real, new, old) for new, old in zip(self.step(z, *state), state, strict=True))
            out.append(state[0])
        return torch.stack(out, 1), state

    def run(self, loop, x: Tensor, state, bias: Tensor) -> State:
        """One of torch's loops over x, with a second bias, on the hidden side."""
        weights = [self.input.weight, self.hidden.weight, self.bias, bias]
        return loop(x.to(bias.dtype), state, weights, True, 1, 0.0, torch.is_grad_enabled(), False, True)


class Elman(Cell):
    """h' = tanh(W x + U h + b)."""

    gates = 1

    def step(self, z: Tensor, *state: Tensor) -> State:
        return (torch.tanh(z + self.hidden(state[0])),)

    def fused(self, x: Tensor, *state: Tensor) -> tuple[Tensor, State]:
        out, h = self.run(torch.rnn_tanh, x, state[0][None], torch.zeros_like(self.bias))
        return out, (h[0],)


class LongShortTerm(Cell):
    """c' = σ(f) c + σ(i) tanh(g), h' = σ(o) tanh(c'), with (i, f, g, o) = W x + U h + b. At first b_f = 1, so that
    it begins by remembering (Jozefowicz et al. 2015, ICML).
    """

    gates = 4
    kept = 2

    def __init__(self, dim: int, width: int):
        super().__init__(dim, width)
        with torch.no_grad():
            self.bias[width : 2 * width] = 1.0

    def step(self, z: Tensor, *state: Tensor) -> State:
        h, c = state
        i, f, g, o = (z + self.hidden(h)).chunk(4, -1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c

    def fused(self, x: Tensor, *state: Tensor) -> tuple[Tensor, State]:
        out, h, c = self.run(torch.lstm, x, tuple(s[None] for s in state), torch.zeros_like(self.bias))
        return out, (h[0], c[0])


class Gated(Cell):
    """h' = (1 - z) n + z h, z = σ(W_z x + U_z h + b_z), r = σ(W_r x + U_r h + b_r), n = tanh(W_n x + b_n + r (U_n h +
    c_n)): the reset gate acts after the product, as in torch and cuDNN.
    """

    gates = 3

    def __init__(self, dim: int, width: int):
        super().__init__(dim, width)
        self.candidate = nn.Parameter(torch.zeros(width))

    def step(self, z: Tensor, *state: Tensor) -> State:
        (h,) = state
        r, u, n = z.chunk(3, -1)
        r_h, u_h, n_h = self.hidden(h).chunk(3, -1)
        n = torch.tanh(n + torch.sigmoid(r + r_h) * (n_h + self.candidate))
        u = torch.sigmoid(u + u_h)
        return ((1 - u) * n + u * h,)

    def fused(self, x: Tensor, *state: Tensor) -> tuple[Tensor, State]:
        bias = torch.cat([torch.zeros_like(self.bias[: 2 * self.width]), self.candidate])
        out, h = self.run(torch.gru, x, state[0][None], bias)
        return out, (h[0],)


CELLS = {"rnn": Elman, "lstm": LongShortTerm, "gru": Gated}


class Recurrent(Attention):
    """out_t = [h_t, and in a stack that is not causal also the h_t of a second cell that reads backwards] Wo.

    Elman 1990, Cognitive Science 14(2); LSTM: Hochreiter and Schmidhuber 1997, Neural Computation 9(8); GRU: Cho et
    al. 2014, https://arxiv.org/abs/1406.1078; both ways: Schuster and Paliwal 1997, IEEE Transactions on Signal
    Processing 45(11). `width` is W and defaults to D. Pads leave the hidden vector as it was. Raises `ValueError` for
    a width below 1.
    """

    supports = frozenset({"bidirectional"})

    def __init__(
        self, shape: Shape, layer: Place, *, cell: Literal["rnn", "lstm", "gru"] = "lstm", width: int | None = None
    ):
        super().__init__()
        if width is not None and width < 1:
            raise ValueError(f"width is {width}; it should be at least 1")
        width = width or shape.d_model
        self.cells = nn.ModuleList(CELLS[cell](shape.d_model, width) for _ in range(1 if layer.causal else 2))
        self.out = OutputProjection(len(self.cells) * width, shape.d_model, bias=False)

    def forward(self, x: Tensor, memory: Tensor, ctx: AttentionContext) -> Tensor:
        keep, ends = ctx.new_keep, not isinstance(ctx.cell, Uncached)
        hidden, state = self.cells[0](x, ctx.cell.recall(), keep, ends)
        ctx.cell.store(*state)
        for backwards in self.cells[1:]:
            other, _ = backwards(x.flip(1), None, None if keep is None else keep.flip(1), False)
            hidden = torch.cat([hidden, other.flip(1)], -1)
        return self.out(hidden)
