"""Norms, held to torch and to their formulas in float64."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from zoo_plugins.norm import DynamicTanh, LayerNorm, NoNorm, RMSNorm, ScaleNorm

ALL = [LayerNorm, RMSNorm, ScaleNorm]
LOUD = 1e-2  # an eps that a wrong place or value cannot hide behind


def layer(x, weight=1.0, bias=0.0, eps=LOUD):
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + eps).sqrt() * weight + bias


def rms(x, weight=1.0, eps=LOUD):
    return x / (x.square().mean(-1, keepdim=True) + eps).sqrt() * weight


def scale(x, weight=1.0, eps=LOUD):
    return weight * x / x.square().sum(-1, keepdim=True).sqrt().clamp(min=eps)


FORMULA = {LayerNorm: layer, RMSNorm: rms, ScaleNorm: scale}


def shaken(norm: torch.nn.Module) -> torch.nn.Module:
    """Every parameter moved from its start, so that none can go missing unseen."""
    random = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for p in norm.parameters():
            p.add_(torch.randn(p.shape, generator=random) / 4)
    return norm


def right(norm: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    parameters = {name: p.detach().double() for name, p in norm.named_parameters()}
    return FORMULA[type(norm)](x.double(), **parameters, eps=norm.eps)


@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-12), (torch.float32, 2e-6)])
def test_formula(make, dtype, tolerance):
    norm = shaken(make(7, eps=LOUD)).to(dtype)
    x = (torch.randn(2, 3, 7, dtype=torch.float64) * 3 + 1).to(dtype)
    assert_close(norm(x), right(norm, x).to(dtype), atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_rounds_once(make, dtype):
    norm = shaken(make(48)).to(dtype)
    x = torch.randn(64, 48, dtype=torch.float64).to(dtype)
    got = norm(x)
    assert got.dtype == dtype
    # Rounding the exact result once errs by at most half a unit in the last place; the rest is float32's.
    assert_close(got.double(), right(norm, x), rtol=0.501 * torch.finfo(dtype).eps, atol=1e-6)


def test_held_to_torch():
    x = torch.randn(2, 5, 12)
    own = shaken(LayerNorm(12, eps=LOUD))
    assert_close(own(x), F.layer_norm(x, (12,), own.weight, own.bias, LOUD))
    own = shaken(RMSNorm(12, eps=LOUD))
    assert_close(own(x), F.rms_norm(x, (12,), own.weight, LOUD))


@pytest.mark.parametrize("make, eps", [(LayerNorm, 1e-5), (RMSNorm, 1e-6), (ScaleNorm, 1e-5)])
def test_default_eps(make, eps):
    norm, x = make(8), torch.tensor([[1.0, -1, 1, -1, 1, -1, 1, -1]]) * 1e-3
    assert norm.eps == eps
    assert_close(norm(x), right(norm, x).float())


@pytest.mark.parametrize("make", ALL)
def test_starts_as_plain_normalisation(make):
    x = torch.randn(4, 16)
    x = x - x.mean(-1, keepdim=True)
    assert_close(make(16)(x).square().mean(-1), torch.ones(4), atol=1e-3, rtol=0)


def test_parameters():
    names = {
        "weight bias": LayerNorm(6),
        "weight": LayerNorm(6, bias=False),
        "": LayerNorm(6, affine=False),
    }
    for right_names, norm in names.items():
        assert [name for name, _ in norm.named_parameters()] == right_names.split()
    assert list(RMSNorm(6).state_dict()) == ["weight"] and RMSNorm(6).weight.shape == (6,)
    assert list(ScaleNorm(6).state_dict()) == ["weight"] and ScaleNorm(6).weight.shape == ()
    assert_close(ScaleNorm(16).weight.item(), 4.0)
    assert list(NoNorm(6).parameters()) == []


def test_layer_norm_without_bias_or_gain():
    x = torch.randn(3, 6)
    own = shaken(LayerNorm(6, bias=False))
    assert_close(own(x), F.layer_norm(x, (6,), own.weight))
    assert_close(LayerNorm(6, affine=False)(x), F.layer_norm(x, (6,)))


def test_layer_norm_with_unit_offset():
    own, x = LayerNorm(6, unit_offset=True, eps=LOUD), torch.randn(3, 6)
    assert torch.equal(own.weight, torch.zeros(6))
    assert_close(own(x), F.layer_norm(x, (6,), eps=LOUD))
    shaken(own)
    assert_close(own(x), F.layer_norm(x, (6,), 1 + own.weight, own.bias, LOUD))
    assert LayerNorm(6, unit_offset=True, bias=False)(x).shape == (3, 6)
    with pytest.raises(ValueError, match="no weight to offset"):
        LayerNorm(6, unit_offset=True, affine=False)


def test_layer_norm_with_unit_offset_held_to_nemotron():
    nemotron = pytest.importorskip("transformers.models.nemotron.modeling_nemotron", reason="no transformers")
    own, x = shaken(LayerNorm(6, unit_offset=True, eps=LOUD)), torch.randn(3, 6)
    theirs = nemotron.NemotronLayerNorm1P(6, eps=LOUD)
    theirs.load_state_dict(own.state_dict())
    assert_close(own(x), theirs(x))


def squashed(x, alpha, weight, bias):
    return torch.tanh(alpha * x) * weight + bias


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_dynamic_tanh(dtype):
    own = shaken(DynamicTanh(48, alpha=0.8)).to(dtype)
    x = (torch.randn(64, 48, dtype=torch.float64) * 3).to(dtype)
    got, parameters = own(x), {name: p.detach().double() for name, p in own.named_parameters()}
    assert got.dtype == dtype
    one_rounding = 0.501 * torch.finfo(dtype).eps if dtype.itemsize == 2 else 1e-5
    assert_close(got.double(), squashed(x.double(), **parameters), rtol=one_rounding, atol=2e-6)


def test_dynamic_tanh_starts_as_published():
    own, x = DynamicTanh(6), torch.randn(3, 6)
    assert {name: p.shape for name, p in own.named_parameters()} == {"alpha": (), "weight": (6,), "bias": (6,)}
    assert_close(own(x), torch.tanh(0.5 * x))
    torch.autograd.gradcheck(lambda x, *_: own(x), (x.double().requires_grad_(), *shaken(own).double().parameters()))
    with pytest.raises(ValueError, match="alpha is 0.0"):
        DynamicTanh(6, alpha=0.0)


def test_unit_offset():
    own, x = RMSNorm(6, unit_offset=True), torch.randn(3, 6)
    assert torch.equal(own.weight, torch.zeros(6))
    assert_close(own(x), F.rms_norm(x, (6,), eps=1e-6))
    shaken(own)
    assert_close(own(x), F.rms_norm(x, (6,), 1 + own.weight, 1e-6))


@pytest.mark.parametrize("make, formula", [(RMSNorm, rms), (LayerNorm, layer)])
def test_unit_offset_is_added_in_float32(make, formula):
    own = shaken(make(48, unit_offset=True)).to(torch.bfloat16)
    x = torch.randn(64, 48).bfloat16()
    weight, *bias = (p.detach().double() for p in own.parameters())
    exact = formula(x.double(), 1 + weight, *bias, eps=own.eps)
    assert_close(own(x).double(), exact, rtol=0.501 * torch.finfo(torch.bfloat16).eps, atol=1e-6)


@pytest.mark.parametrize("make", [RMSNorm, ScaleNorm])
def test_half_does_not_overflow(make):
    """300^2 is beyond float16 (NORM-1)."""
    got = make(8).half()(torch.full((8,), 300.0).half())
    assert_close(got, torch.ones(8).half(), atol=0, rtol=0)


@pytest.mark.parametrize("make", ALL)
def test_extreme_rows(make):
    """A row of zeros, one with a spike, a tiny one (NORM-3)."""
    norm = shaken(make(8))
    spike, tiny = torch.zeros(8), torch.tensor([1e-4, -1e-4] * 4)
    spike[3] = 1e3
    x = torch.stack([torch.zeros(8), spike, tiny]).requires_grad_()
    got = norm(x)
    assert_close(got.detach(), right(norm, x.detach()).float(), atol=1e-5, rtol=1e-5)
    zero = norm.bias if make is LayerNorm else torch.zeros(8)
    assert torch.equal(got[0], zero)
    got.sum().backward()
    assert x.grad.isfinite().all() and all(p.grad.isfinite().all() for p in norm.parameters())


@pytest.mark.parametrize("make", ALL)
def test_gradients(make):
    norm = shaken(make(5, eps=LOUD)).double()
    torch.autograd.gradcheck(lambda x, *_: norm(x), (torch.randn(2, 5).double().requires_grad_(), *norm.parameters()))


def test_serves_a_head():
    x = torch.randn(2, 3, 5, 4)
    assert_close(RMSNorm(4)(x)[1, 2, 3], RMSNorm(4)(x[1, 2, 3]))


def test_no_norm():
    x = torch.randn(3)
    assert NoNorm(3)(x) is x


@pytest.mark.parametrize("make", ALL)
def test_negative_eps_is_refused(make):
    with pytest.raises(ValueError, match="eps is -0.1"):
        make(4, eps=-0.1)
