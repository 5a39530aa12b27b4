"""Mamba against its formulas and against transformers."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from support.contexts import context, keep
from torch.testing import assert_close

import zoo
from zoo import SpecError
from zoo.model.cost import count_flops
from zoo.parts import Cell, Shape, Uncached
from zoo.testing import CHECKS, ModelCase
from zoo.testing.model_case import perturb
from zoo_plugins import statespace
from zoo_plugins.statespace import Mamba, SelectiveScan

B, T, D = 3, 9, 6
PADDED = {
    "left": keep("111111111", "..1111111", "........1"),
    "right": keep("111111111", "1111111..", "1........"),
    "holes": keep("111111111", "1.11.1..1", ".1...1..."),
    "a row of pads": keep("111111111", ".........", "1111....."),
}


def mixer(**options) -> Mamba:
    return perturb(Mamba(Shape(d_model=D, n_heads=2), **options).double())


def drawn(*size: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def slowly(u, dt, A, B, C, h):
    """The recurrence as it is written, differentiated by torch."""
    out = []
    for t in range(u.shape[0]):
        h = torch.exp(dt[t, ..., None] * A) * h + dt[t, ..., None] * B[t, :, None] * u[t, ..., None]
        out.append((C[t, :, None] * h).sum(-1))
    return torch.stack(out), h


def test_the_scan_and_its_gradient():
    inner, state = 5, 4
    given = [drawn(T, B, inner), drawn(T, B, inner, seed=2).exp(), -drawn(inner, state, seed=3).exp()]
    given += [drawn(T, B, state, seed=4), drawn(T, B, state, seed=5), drawn(B, inner, state, seed=6)]
    pulls = drawn(T, B, inner, seed=7), drawn(B, inner, state, seed=8)
    found = []
    for scan in (SelectiveScan.apply, slowly):
        moving = [x.clone().requires_grad_() for x in given]
        out = scan(*moving)
        found.append([*out, *torch.autograd.grad(out, moving, pulls)])
    assert_close(found[0], found[1])
    one = [x[:2] if x.shape[0] == T else x for x in given]
    assert torch.autograd.gradcheck(SelectiveScan.apply, [x.clone().requires_grad_() for x in one])


def formula(ours: Mamba, x: torch.Tensor) -> torch.Tensor:
    """One row [T, D], tap by tap and channel by channel."""
    u, gate = ours.up(x).chunk(2, -1)
    taps, length = ours.conv.kernel_size[0], x.shape[0]
    mixed = torch.zeros_like(u)
    for t in range(length):
        for j in range(taps):
            if t - j >= 0:
                mixed[t] += ours.conv.weight[:, 0, taps - 1 - j] * u[t - j]
    u = F.silu(mixed + ours.conv.bias)
    rank, state, _ = ours.sizes
    low, B, C = ours.select(u).split([rank, state, state], -1)
    dt = torch.log1p(torch.exp(ours.dt.weight @ low.T + ours.dt_bias[:, None])).T
    out, h = torch.zeros_like(u), torch.zeros(u.shape[1], state, dtype=x.dtype)
    for t in range(length):
        for i in range(u.shape[1]):
            h[i] = torch.exp(-dt[t, i] * ours.log_decay[i].exp()) * h[i] + dt[t, i] * u[t, i] * B[t]
            out[t, i] = C[t] @ h[i] + ours.skip[i] * u[t, i]
    return (out * F.silu(gate)) @ ours.out.weight.T


@pytest.mark.parametrize("options", [{}, {"d_state": 3, "d_conv": 2, "expand": 1, "dt_rank": 4}, {"d_conv": 1}])
@torch.no_grad()
def test_it_is_the_formula(options):
    ours, x = mixer(**options), drawn(2, T, D)
    out = ours(x, x, context(T, T, causal=True))
    assert_close(out, torch.stack([formula(ours, row) for row in x]))


@pytest.mark.parametrize("padded", PADDED)
@pytest.mark.parametrize("taps", [1, 4])
def test_a_padded_row_is_the_row_alone(taps, padded):
    """Its convolution gathers real tokens, and what it keeps for the next is what they left."""
    ours, x, real = mixer(d_conv=taps), drawn(B, T, D), PADDED[padded]
    for memory in (Uncached(), Cell(T)):
        out = ours(x, x, context(T, T, causal=True, keep=real, new_keep=real, cell=memory))
        for row in range(B):
            alone, own = x[row : row + 1, real[row]], Cell(T)
            n = alone.shape[1]
            assert_close(out[row, real[row]], ours(alone, alone, context(n, n, causal=True, cell=own))[0])
            for together, apart in zip(memory.recall() or (), own.recall() or (0, 0), strict=False):
                assert_close(together[row : row + 1], torch.zeros_like(together[:1]) + apart)


def test_it_is_transformers():
    """Its plain path on a CPU; the whole model, in and out, stands among the published ones."""
    hf = pytest.importorskip("transformers", reason="the package 'transformers' is not installed")
    from transformers.models.mamba.modeling_mamba import MambaMixer

    config = hf.MambaConfig(hidden_size=D, state_size=5, conv_kernel=3, expand=2, time_step_rank=2)
    theirs = perturb(MambaMixer(config, layer_idx=0).double())
    ours = mixer(d_state=5, d_conv=3, expand=2, dt_rank=2)
    parts = {"up": "in_proj", "conv": "conv1d", "select": "x_proj", "out": "out_proj"}
    with torch.no_grad():
        for own, other in parts.items():
            getattr(ours, own).load_state_dict(getattr(theirs, other).state_dict())
        ours.dt.weight.copy_(theirs.dt_proj.weight)
        ours.dt_bias.copy_(theirs.dt_proj.bias)
        ours.log_decay.copy_(theirs.A_log)
        ours.skip.copy_(theirs.D)
        x = drawn(B, T, D)
        # Theirs has its decay in float32, whatever the rest is in.
        assert_close(ours(x, x, context(T, T, causal=True)), theirs(x), atol=1e-6, rtol=1e-6)


def test_what_is_remembered_has_one_size():
    ours = mixer(d_state=5, d_conv=3)
    for length in (1, 40):
        cell, x = Cell(length), drawn(B, length, D)
        ours(x, x, context(length, length, causal=True, cell=cell))
        assert [list(s.shape) for s in cell.tensors()] == [[B, 2, 2 * D], [B, 2 * D, 5]]


def test_where_it_starts():
    """Decays 1 … N; steps from 0.001 to 0.1, evenly in their logarithm; the input passes."""
    model = zoo.build({"attention": "mamba"}, shape="quick")
    mixed = model.decoder.layers[0].attention
    assert_close(mixed.log_decay.exp()[7], torch.arange(1.0, 17.0))
    steps = F.softplus(mixed.dt_bias)
    assert_close(steps[[0, -1]], torch.tensor([1e-3, 1e-1]), rtol=1e-4, atol=0)
    assert_close(steps.log().diff(), torch.full((127,), math.log(100) / 127), rtol=1e-3, atol=0)
    assert mixed.skip.eq(1).all() and mixed.dt.in_features == 4


def test_flops_by_hand():
    d, inner, n, rank, taps, length = 16, 32, 8, 1, 4, 7
    shape = {"d_model": d, "n_heads": 2, "n_layers": 1, "vocab_size": 17}
    model = zoo.build({"attention": {"name": "mamba", "d_state": n}, "ffn": "none"}, shape=shape)
    linears = d * 2 * inner + inner * (rank + 2 * n) + rank * inner + inner * d + d * 17
    ids = torch.zeros(1, length, dtype=torch.long, device="meta")
    assert count_flops(model.to("meta"), None, ids) == length * (2 * linears + 2 * inner * taps + 7 * inner * n)


def test_where_it_cannot_serve():
    said = "it does not support bidirectional, which the encoder of architecture 'encoder-only' needs"
    with pytest.raises(SpecError, match=said):
        zoo.build({"attention": "mamba", "architecture": "encoder-only"}, shape="quick")
    with pytest.raises(SpecError, match="attention 'mamba': it does not support rotation"):
        zoo.build({"attention": "mamba", "position": "rope"}, shape="quick")
    for name in ("d_state", "d_conv", "expand", "dt_rank"):
        with pytest.raises(SpecError, match=f"{name} is 0; it should be at least 1"):
            zoo.build({"attention": {"name": "mamba", name: 0}}, shape="quick")


# Planted bugs


def tail_one_off(take):
    """The taps that are kept for the next pass end one token too early."""
    return lambda x, order: take(x, (order - 1).clamp_min(0) if order.shape[1] == 3 else order)


def holding_nothing(apply):
    """Pads have a step like any other."""
    return lambda u, dt, *rest: apply(u, torch.where(dt == 0, 0.1, dt), *rest)


def from_nothing(apply):
    return lambda *moving: apply(*moving[:5], torch.zeros_like(moving[5]))


BUGS = {
    "taps-one-off": ("decoding", statespace, "take", tail_one_off),
    "state-not-carried": ("decoding", SelectiveScan, "apply", from_nothing),
    "pads-move-the-state": ("decoding", SelectiveScan, "apply", holding_nothing),
    "taps-over-pads": ("padding", statespace, "real_first", lambda _: lambda keep: torch.arange(keep.shape[1]).expand_as(keep)),
}  # fmt: skip


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found(name, monkeypatch):
    check, owner, attribute, broken = BUGS[name]
    model = {"attention": "mamba", "ffn": "none"}
    assert CHECKS[check](ModelCase.of(model)) is None
    monkeypatch.setattr(owner, attribute, broken(getattr(owner, attribute)))
    with pytest.raises(AssertionError, match="should"):
        CHECKS[check](ModelCase.of(model))
