"""Residual layouts, held to their papers' lines written out with plain functions, and to torch's layers."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from zoo.parts import Place, Shape
from zoo_plugins.norm import LayerNorm
from zoo_plugins.residual import (
    DeepNorm,
    LayerScale,
    OutputNorm,
    Parallel,
    PostNorm,
    PreNorm,
    ReZero,
    SandwichNorm,
)

ALONE = Place("decoder", 0, {"decoder": 2}, True)


class Times(nn.Module):
    """A norm that can be told from every other: the n-th made multiplies by the n-th prime."""

    def __init__(self, factor: int):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return self.factor * x


def primes():
    factors = iter([2, 3, 5, 7, 11, 13])
    return lambda: Times(next(factors))


def f(x):
    return x * x


def g(x):
    return x + 10


X = torch.tensor([1.0, -2.0])
WEIGHTS = torch.tensor([[4.0, 5.0], [6.0, 7.0]])


def rezero(norm, n_steps):
    """With a weight of 4."""
    made = ReZero(norm, n_steps)
    nn.init.constant_(made.weight, 4.0)
    return made


def layerscale(norm, n_steps):
    """With the rows of `WEIGHTS`."""
    made = LayerScale(norm, n_steps, Shape(d_model=2, n_heads=1), ALONE)
    for scale, row in zip(made.scales, WEIGHTS, strict=False):
        scale.data = row
    return made


@pytest.mark.parametrize(
    "make, right",
    [
        (lambda n: PreNorm(n, 2), lambda x: (y := x + f(2 * x)) + g(3 * y)),
        (lambda n: PostNorm(n, 2), lambda x: 3 * ((y := 2 * (x + f(x))) + g(y))),
        (lambda n: SandwichNorm(n, 2), lambda x: (y := x + 5 * f(2 * x)) + 7 * g(3 * y)),
        (lambda n: OutputNorm(n, 2), lambda x: (y := x + 2 * f(x)) + 3 * g(y)),
        (lambda n: PreNorm(n, 2, bare=1), lambda x: (y := x + f(x)) + g(2 * y)),
        (lambda n: rezero(n, 2), lambda x: (y := x + 4 * f(2 * x)) + 4 * g(3 * y)),
        (lambda n: layerscale(n, 2), lambda x: (y := x + WEIGHTS[0] * f(2 * x)) + WEIGHTS[1] * g(3 * y)),
        (lambda n: Parallel(n, 2), lambda x: x + f(2 * x) + g(2 * x)),
        (lambda n: Parallel(n, 2, per_step=True), lambda x: x + f(2 * x) + g(3 * x)),
        # alpha of a lone stack of two layers: 4^(1/4) = sqrt(2)
        (lambda n: DeepNorm(n, 2, ALONE), lambda x: 3 * (2**0.5 * (y := 2 * (2**0.5 * x + f(x))) + g(y))),
    ],
    ids=["pre", "post", "sandwich", "output", "bare", "rezero", "layerscale", "parallel", "parallel per step", "deep"],
)
def test_where_the_norms_stand(make, right):
    assert_close(make(primes())(X, f, g), right(X))


@pytest.mark.parametrize(
    "make, norms, final",
    [
        (PreNorm, 3, True),
        (PostNorm, 3, False),
        (SandwichNorm, 6, True),
        (OutputNorm, 3, True),
        (Parallel, 1, True),
        (lambda n, s: Parallel(n, s, per_step=True), 3, True),
        (ReZero, 3, True),
        (lambda n, s: LayerScale(n, s, Shape(d_model=4, n_heads=1), ALONE), 3, True),
        (lambda n, s: DeepNorm(n, s, ALONE), 3, False),
    ],
)
def test_number_of_norms_and_the_final_one(make, norms, final):
    def norm():
        return LayerNorm(4)

    residual = make(norm, 3)
    assert sum(isinstance(m, LayerNorm) for m in residual.modules()) == norms
    assert isinstance(residual.final(norm), LayerNorm if final else nn.Identity)
    assert residual.enter(X) is X
    residual(torch.randn(2, 4), f, g, f).sum().backward()
    assert all(p.grad is not None for p in residual.parameters())


@pytest.mark.parametrize("make", [PreNorm, PostNorm, SandwichNorm, OutputNorm, Parallel, ReZero, layerscale])
def test_a_layer_without_steps_passes_on(make):
    residual = make(lambda: LayerNorm(2), 0)
    assert residual(X) is X and list(residual.parameters()) == []


@pytest.mark.parametrize("make, first", [(PreNorm, True), (PostNorm, False)])
def test_held_to_torch(make, first):
    torch.manual_seed(0)
    theirs = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True, norm_first=first)
    for p in theirs.parameters():
        nn.init.normal_(p)
    norms = iter([theirs.norm1, theirs.norm2])
    x = torch.randn(2, 5, 8)
    got = make(lambda: next(norms), 2)(
        x,
        lambda y: theirs.self_attn(y, y, y, need_weights=False)[0],
        lambda y: theirs.linear2(theirs.linear1(y).relu()),
    )
    assert_close(got, theirs(x), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    "stack, depths, alpha, beta",
    [
        # Wang et al. 2022, figure 2: (2N)^1/4 and (8N)^-1/4 for one stack
        ("encoder", {"encoder": 8}, 2.0, 0.353553),
        ("decoder", {"decoder": 2}, 1.414214, 0.5),
        # 0.81 (N^4 M)^1/16 and 0.87 (N^4 M)^-1/16; (3M)^1/4 and (12M)^-1/4
        ("encoder", {"encoder": 16, "decoder": 1}, 1.62, 0.435),
        ("encoder", {"encoder": 6, "decoder": 4}, 1.382445, 0.509747),
        ("decoder", {"encoder": 6, "decoder": 27}, 3.0, 0.235702),
    ],
)
def test_deepnorm_scales(stack, depths, alpha, beta):
    residual = DeepNorm(lambda: LayerNorm(4), 2, Place(stack, 0, depths, stack == "decoder"))
    assert residual.alpha == pytest.approx(alpha, rel=1e-5)
    assert residual.gain == pytest.approx(beta**2, rel=1e-5)


def test_only_deepnorm_has_its_own_gain():
    assert all(m(lambda: LayerNorm(2), 2).gain is None for m in (PreNorm, PostNorm, SandwichNorm, OutputNorm, Parallel))


def test_a_layer_of_rezero_starts_as_nothing_and_learns():
    residual = ReZero(lambda: LayerNorm(2), 2)
    assert [(name, p.shape) for name, p in residual.named_parameters() if "norm" not in name] == [("weight", ())]
    assert torch.equal(residual(X, f, g), X) and residual.gain == 1.0
    residual(X, f, g).sum().backward()
    assert residual.weight.grad.abs() > 0


def test_rezero_held_to_the_authors_layer():
    """x + w * attention(x), then x + w * ffn(x), with one w and no norm (Bachlechner et al. 2020, their code)."""
    torch.manual_seed(0)
    attention, ffn = nn.MultiheadAttention(8, 2, batch_first=True), nn.Linear(8, 8)
    ours, x = rezero(lambda: nn.Identity(), 2), torch.randn(2, 5, 8)
    right = x + 4.0 * attention(x, x, x)[0]
    right = right + 4.0 * ffn(right)
    assert_close(ours(x, lambda y: attention(y, y, y)[0], ffn), right)


@pytest.mark.parametrize("depth, init", [(12, 0.1), (18, 0.1), (24, 1e-5), (36, 1e-6)])
def test_layerscale_starts_by_depth(depth, init):
    """Touvron et al. 2021, section 2.2."""
    place = Place("encoder", 0, {"encoder": depth}, False)
    residual = LayerScale(lambda: LayerNorm(4), 2, Shape(d_model=4, n_heads=1), place)
    assert [s.tolist() for s in residual.scales] == [pytest.approx([init] * 4)] * 2
    given = LayerScale(lambda: LayerNorm(4), 2, Shape(d_model=4, n_heads=1), place, init=0.3)
    assert given.scales[1].tolist() == pytest.approx([0.3] * 4)


def test_impossible_options():
    with pytest.raises(ValueError, match="init is 0.0"):
        LayerScale(lambda: LayerNorm(4), 2, Shape(d_model=4, n_heads=1), ALONE, init=0.0)
    for bare in (-1, 3):
        with pytest.raises(ValueError, match=f"bare is {bare}; .* the 2 steps"):
            PreNorm(lambda: LayerNorm(4), 2, bare=bare)


def test_bare_steps_keep_the_places_of_the_others():
    names = [[n for n, _ in PreNorm(lambda: LayerNorm(4), 2, bare=bare).named_parameters()] for bare in (0, 1, 2)]
    assert names == [["norms.0.weight", "norms.0.bias", "norms.1.weight", "norms.1.bias"], names[0][2:], []]


def test_a_missing_step_is_noticed():
    for make in (PreNorm, PostNorm, SandwichNorm, OutputNorm, ReZero):
        with pytest.raises(ValueError):
            make(lambda: LayerNorm(2), 2)(X, f)


def test_compiles_to_one_graph():
    for make in (PreNorm, PostNorm, SandwichNorm, OutputNorm, Parallel, rezero, layerscale):
        residual = make(lambda: LayerNorm(2), 2)
        compiled = torch.compile(residual, fullgraph=True, backend="eager")
        assert_close(compiled(X, f, g), residual(X, f, g))
