"""Linear attention against its formula, one query at a time."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from support.contexts import context, keep
from torch.testing import assert_close

import zoo
import zoo_plugins.linear
from zoo import SpecError
from zoo.parts import Cell, Shape
from zoo.testing import CHECKS, ModelCase
from zoo.testing.model_case import perturb
from zoo_plugins.linear import LinearAttention

B, T, S, D, H = 3, 11, 7, 12, 3
HOLES = keep("11111111111", "1.11.1.1..1", "...........")
SOURCE = keep("1111111", ".1.11..", ".......")


def mixer(**options) -> LinearAttention:
    return perturb(LinearAttention(Shape(d_model=D, n_heads=H), **options).double())


def drawn(*size: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def feature(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x > 0, x + 1, x.exp())


@torch.no_grad()
def formula(ours: LinearAttention, x, memory, sees) -> torch.Tensor:
    """Σ_s w_ts v_s / Σ_s w_ts, w_ts = φ(q_t)·φ(k_s), over the s for which `sees(b, t, s)`."""
    heads = [layer(y).unflatten(2, (H, -1)) for layer, y in ((ours.q, x), (ours.k, memory), (ours.v, memory))]
    q, k, v = feature(heads[0]), feature(heads[1]), heads[2]
    out = torch.zeros_like(q)
    for b, t, h in ((b, t, h) for b in range(B) for t in range(x.shape[1]) for h in range(H)):
        seen = [s for s in range(memory.shape[1]) if sees(b, t, s)]
        weights = torch.tensor([float(q[b, t, h] @ k[b, s, h]) for s in seen], dtype=x.dtype)
        if seen:
            out[b, t, h] = weights @ v[b, seen, h] / weights.sum()
    return out.flatten(2) @ ours.out.weight.T


@pytest.mark.parametrize("chunk", [1, 3, 4, 11, 100])
@pytest.mark.parametrize("real", [None, HOLES], ids=["whole", "holes"])
def test_looking_back(real, chunk):
    ours, x = mixer(chunk=chunk), drawn(B, T, D)
    out = ours(x, x, context(T, T, causal=True, keep=real, new_keep=real))
    assert_close(out, formula(ours, x, x, lambda b, t, s: s <= t and (real is None or bool(real[b, s]))))


@pytest.mark.parametrize("real", [None, HOLES], ids=["whole", "holes"])
def test_looking_both_ways(real):
    ours, x = mixer(), drawn(B, T, D)
    out = ours(x, x, context(T, T, keep=real, new_keep=real))
    assert_close(out, formula(ours, x, x, lambda b, t, s: real is None or bool(real[b, s])))


@pytest.mark.parametrize("real", [None, SOURCE], ids=["whole", "holes"])
def test_looking_at_a_source(real):
    """Which is summed up at the first look and never looked at again."""
    ours, x, memory, cell = mixer(), drawn(B, T, D), drawn(B, S, D, seed=2), Cell(0)
    expected = formula(ours, x, memory, lambda b, t, s: real is None or bool(real[b, s]))
    for source in (memory, torch.full_like(memory, torch.nan)):
        out = ours(x, source, context(T, S, keep=real, cell=cell))
        assert_close(out, expected)
    assert_close(ours(x, memory[:, :0], context(T, 0)), torch.zeros_like(x))


def test_what_is_remembered_has_one_size():
    ours = mixer()
    for length in (1, 40):
        cell, x = Cell(length), drawn(B, length, D)
        ours(x, x, context(length, length, causal=True, cell=cell))
        assert [list(s.shape) for s in cell.tensors()] == [[B, H, 4, 5]]


@torch.no_grad()
@pytest.mark.parametrize("dtype, most", [(torch.float32, 3e-6), (torch.bfloat16, 0.03)])
def test_sums_are_kept_in_float32(dtype, most):
    """Over 2000 tokens, whose sum bfloat16 could not count."""
    ours, x = mixer(), drawn(1, 2000, D)
    exact = ours(x, x, context(2000, 2000, causal=True))
    rounded = x.to(dtype)
    out = ours.to(dtype)(rounded, rounded, context(2000, 2000, causal=True))
    assert out.dtype == dtype and (out.double() - exact).abs().max() < most * exact.abs().max()


def test_its_cost_grows_with_the_length_not_with_its_square():
    model = zoo.build({"attention": "linear"}, shape={"d_model": 64, "n_heads": 4, "n_layers": 1, "vocab_size": 17})
    ids = {n: torch.zeros(1, n, dtype=torch.long, device="meta") for n in (512, 1024)}
    cost = {n: zoo.model.cost.count_flops(model.to("meta"), None, row) for n, row in ids.items()}
    assert cost[1024] / cost[512] == pytest.approx(2, rel=0.01)


def test_where_it_cannot_serve():
    for position, lacks in (("rope", "rotation"), ("alibi", "bias")):
        with pytest.raises(SpecError, match=f"attention 'linear': it does not support {lacks}"):
            zoo.build({"attention": "linear", "position": position}, shape="quick")
    with pytest.raises(SpecError, match="chunk is 0; it should be at least 1"):
        zoo.build({"attention": {"name": "linear", "chunk": 0}}, shape="quick")


def shifted(scan):
    """The sum before each chunk is that after it."""

    def broken(q, k, v, before, chunk):
        sums, last = scan(q, k, v, before, chunk)
        return sums + q @ (last - (0 if before is None else before[0])), last

    return broken


BUGS = {
    "sum-not-carried": ("decoding", "scan", lambda scan: lambda q, k, v, before, chunk: scan(q, k, v, None, chunk)),
    "a-sum-of-what-is-to-come": ("future", "scan", shifted),
    "weights-of-pads": ("padding", "LinearAttention.remember", lambda own: lambda self, memory, keep: own(self, memory, None)),
}  # fmt: skip


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found(name, monkeypatch):
    check, target, broken = BUGS[name]
    model = {"attention": {"name": "linear", "chunk": 2}}
    assert CHECKS[check](ModelCase.of(model)) is None
    owner, _, attribute = f"zoo_plugins.linear.{target}".rpartition(".")
    place = zoo_plugins.linear if owner == "zoo_plugins.linear" else LinearAttention
    monkeypatch.setattr(place, attribute, broken(getattr(place, attribute)))
    with pytest.raises(AssertionError, match="should"):
        CHECKS[check](ModelCase.of(model))


def test_the_feature_is_the_papers():
    x = drawn(50)
    assert_close(F.elu(x) + 1, feature(x))
