"""Attention against torch's own."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from support.contexts import context, keep
from support.models import built
from torch import nn

from zoo.parts import Cache, Cell, Kernel, NoStep, OutputProjection, Position, Shape
from zoo_plugins.attention import MultiHead, nothing
from zoo_plugins.kernel import Flash, Naive, Tiled
from zoo_plugins.position import Rope

SHAPE = Shape(d_model=20, n_heads=4, max_len=16)  # heads 5 wide: no scale is a power of two
KERNELS = [Naive, Flash, Tiled]


def layer_norm(dim: int = SHAPE.d_model) -> nn.Module:
    return nn.LayerNorm(dim)


def multi_head(kernel=Naive, shape=SHAPE, **options) -> MultiHead:
    torch.manual_seed(0)
    made = MultiHead(shape, kernel, layer_norm, **options)
    for weight in made.parameters():
        nn.init.normal_(weight, std=0.4)
    return made


def drawn(*size: int) -> torch.Tensor:
    return torch.randn(*size, generator=torch.Generator().manual_seed(1))


class Listening(Kernel):
    """Remembers what it was asked for and told, and gives the values back."""

    supports = Naive.supports

    def __init__(self, n_heads, head_dim, needs):
        super().__init__()
        self.asked = (n_heads, head_dim, needs)

    def forward(self, q, k, v, ctx):
        self.told = ctx
        return v if v.shape[1] == q.shape[1] and v.shape[2] == q.shape[2] else torch.zeros_like(q)


class Forbidden(Position):
    def rotate(self, q, k, *ready):
        raise AssertionError("keys of another sequence have no position in this one")


# Against torch.nn.MultiheadAttention


def theirs(ours: MultiHead) -> nn.MultiheadAttention:
    """Torch's multi-head attention with our weights."""
    made = nn.MultiheadAttention(SHAPE.d_model, SHAPE.n_heads, bias=True, batch_first=True)
    with torch.no_grad():
        made.in_proj_weight.copy_(torch.cat([ours.q.weight, ours.k.weight, ours.v.weight]))
        made.in_proj_bias.copy_(torch.cat([ours.q.bias, ours.k.bias, ours.v.bias]))
        made.out_proj.weight.copy_(ours.out.weight)
        made.out_proj.bias.copy_(ours.out.bias)
    return made


PADS = keep("1111111", "11111..", ".111111")


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("facts", ["", "causal", "pads", "causal pads"])
def test_self_attention_is_torchs(facts, kernel):
    ours, x = multi_head(kernel, bias=True), drawn(3, 7, 20)
    real = PADS if "pads" in facts else torch.ones_like(PADS)
    out = ours(x, x, context(7, 7, causal="causal" in facts, keep=PADS if "pads" in facts else None))
    # Torch's masks say which keys are hidden, ours which may be seen.
    hidden = torch.ones(7, 7, dtype=torch.bool).triu(1) if "causal" in facts else None
    right, _ = theirs(ours)(x, x, x, attn_mask=hidden, key_padding_mask=~real)
    torch.testing.assert_close(out[real], right[real], atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize("kernel", KERNELS)
def test_cross_attention_is_torchs(kernel):
    ours, x, memory = multi_head(kernel, bias=True), drawn(3, 4, 20), drawn(3, 7, 20) + 1
    out = ours(x, memory, context(4, 7, keep=PADS, position=Forbidden(SHAPE)))
    right, _ = theirs(ours)(x, memory, memory, key_padding_mask=~PADS)
    torch.testing.assert_close(out, right, atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize("kernel", KERNELS)
def test_gradients_are_torchs(kernel):
    ours = multi_head(kernel, bias=True)
    their, x = theirs(ours), drawn(3, 7, 20)
    ours(x, x, context(7, 7, causal=True)).square().sum().backward()
    hidden = torch.ones(7, 7, dtype=torch.bool).triu(1)
    their(x, x, x, attn_mask=hidden, need_weights=False)[0].square().sum().backward()
    grads = torch.cat([ours.q.weight.grad, ours.k.weight.grad, ours.v.weight.grad])
    torch.testing.assert_close(grads, their.in_proj_weight.grad, atol=2e-4, rtol=1e-4)
    torch.testing.assert_close(ours.out.weight.grad, their.out_proj.weight.grad, atol=2e-4, rtol=1e-4)


@pytest.mark.parametrize("kernel", KERNELS)
def test_an_empty_source_gives_nothing_but_the_bias(kernel):
    ours, x = multi_head(kernel, bias=True), drawn(3, 4, 20)
    out = ours(x, x[:, :0], context(4, 0))
    torch.testing.assert_close(out, ours.out.bias.expand(3, 4, 20))
    assert ours(x[:, :0], x[:, :0], context(0, 0)).shape == (3, 0, 20)


# Heads that share keys


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("groups", [1, 2])
def test_shared_key_heads_equal_multi_head_with_repeated_weights(groups, kernel):
    few, all_, x = multi_head(kernel, kv_heads=groups), multi_head(kernel), drawn(3, 7, 20)
    told = context(7, 7, causal=True)

    def copied(order: list[int]) -> torch.Tensor:
        with torch.no_grad():
            all_.q.weight.copy_(few.q.weight)
            all_.out.weight.copy_(few.out.weight)
            for one, many in ((few.k, all_.k), (few.v, all_.v)):
                many.weight.copy_(one.weight.view(groups, 5, 20)[order].reshape(20, 20))
        return all_(x, x, told)

    assert few.k.weight.shape == few.v.weight.shape == (groups * 5, 20)
    repeated, tiled = {1: ([0, 0, 0, 0], None), 2: ([0, 0, 1, 1], [0, 1, 0, 1])}[groups]
    torch.testing.assert_close(few(x, x, told), copied(repeated), atol=2e-6, rtol=1e-5)
    assert tiled is None or not torch.allclose(few(x, x, told), copied(tiled), atol=1e-2)


@pytest.mark.parametrize(
    "heads, groups, near",
    [(4, 3, "2 and 4"), (3, 2, "1 and 3"), (33, 2, "1 and 3"), (4, 0, "1"), (4, -2, "1"), (4, 8, "4")],
)
def test_key_heads_must_divide_heads(heads, groups, near):
    said = f"kv_heads {groups} does not divide n_heads {heads}; the nearest that do: {near}$"
    with pytest.raises(ValueError, match=said):
        multi_head(shape=Shape(d_model=5 * heads, n_heads=heads), kv_heads=groups)


@pytest.mark.parametrize(
    "option, said",
    [
        ({"window": 0}, "window is 0"),
        ({"softcap": 0.0}, "softcap is 0.0"),
        ({"dropout": 1.0}, "dropout is 1.0"),
        ({"dropout": -0.1}, "dropout is -0.1"),
        ({"head_dim": 0}, "head_dim is 0"),
    ],
)
def test_impossible_numbers_are_refused(option, said):
    with pytest.raises(ValueError, match=said):
        multi_head(**option)


# Options


def test_names_of_the_weights():
    full = multi_head(bias=True, qk_norm="head", sinks=True)
    linears = [f"{name}.{kind}" for name in ("q", "k", "v", "out") for kind in ("weight", "bias")]
    norms = [f"{name}.{kind}" for name in ("q_norm", "k_norm") for kind in ("weight", "bias")]
    assert sorted(n for n, _ in full.named_parameters()) == sorted([*linears, *norms, "sink"])
    assert isinstance(full.out, OutputProjection)
    assert [n for n, _ in multi_head().named_parameters()] == ["q.weight", "k.weight", "v.weight", "out.weight"]


def test_biases_by_name():
    made = multi_head(bias=["q", "out"])
    assert made.q.bias is not None and made.out.bias is not None
    assert made.k.bias is None and made.v.bias is None


def test_head_dim_may_differ_from_the_shapes():
    made, x = multi_head(head_dim=3, kv_heads=2), drawn(2, 7, 20)
    assert made.q.weight.shape == (12, 20) and made.v.weight.shape == (6, 20)
    assert made(x, x, context(7, 7)).shape == (2, 7, 20)
    wide = multi_head(shape=Shape(d_model=20, n_heads=3, head_dim=7))
    assert wide.q.weight.shape == (21, 20) and wide.kernel.__class__ is Naive


def test_the_kernel_is_asked_for_what_the_options_need():
    assert multi_head(Listening).kernel.asked == (4, 5, ())
    options = dict(dropout=0.1, sinks=True, softcap=2.0, window=3, head_dim=6)
    assert multi_head(Listening, **options).kernel.asked == (4, 6, ("window", "softcap", "sink", "dropout"))


def test_the_kernel_is_told_the_options():
    made, x = multi_head(Listening, scale=0.3, softcap=2.0, sinks=True, dropout=0.1, window=3), drawn(2, 7, 20)
    made(x, x, context(7, 7, causal=True))
    told = made.kernel.told
    assert (told.scale, told.softcap, told.dropout, told.mask.window) == (0.3, 2.0, 0.1, 3)
    assert told.sink is made.sink and told.mask.causal
    made(x, x.clone(), context(7, 7))
    assert made.kernel.told.mask.window is None, "distance to another sequence means nothing"
    made.eval()(x, x, context(7, 7))
    assert made.kernel.told.dropout == 0


@pytest.mark.parametrize("kind, widths", [("none", (5, 5)), ("head", (5, 5)), ("full", (20, 10))])
def test_norms_of_queries_and_keys(kind, widths):
    made, x = multi_head(qk_norm=kind, kv_heads=2), drawn(2, 7, 20)
    q, k, v = made.project(x, x, context(7, 7))
    for linear, norm, got, width in ((made.q, made.q_norm, q, widths[0]), (made.k, made.k_norm, k, widths[1])):
        right = linear(x).unflatten(-1, (-1, width))
        if kind != "none":
            right = F.layer_norm(right, (width,), norm.weight, norm.bias)
        torch.testing.assert_close(got, right.flatten(2).unflatten(-1, (-1, 5)).transpose(1, 2))
    torch.testing.assert_close(v, made.v(x).unflatten(-1, (2, 5)).transpose(1, 2))


def test_a_window_hides_all_that_is_as_far_as_it_is_wide():
    made, x = multi_head(window=3), drawn(1, 7, 20)
    before = made(x, x, context(7, 7, causal=True))
    other = x.clone()
    other[:, 2] += 1
    changed = (made(other, other, context(7, 7, causal=True)) - before).abs().amax(-1)[0] > 1e-6
    assert changed.tolist() == [False, False, True, True, True, False, False]


@pytest.mark.parametrize("kernel", [Naive, Flash])
def test_dropout_is_for_training_alone(kernel):
    made, plain, x = multi_head(kernel, dropout=0.5), multi_head(kernel), drawn(2, 7, 20)
    told = context(7, 7, causal=True)
    assert not torch.equal(made(x, x, told), made(x, x, told))
    made.eval()
    assert torch.equal(made(x, x, told), made(x, x, told))
    assert torch.equal(made(x, x, told), plain(x, x, told))


# Memory


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("window", [None, 3])
def test_reading_in_pieces_equals_reading_at_once(window, kernel):
    shape = Shape(d_model=24, n_heads=4)
    made, x, position = multi_head(kernel, shape=shape, kv_heads=2, window=window), drawn(2, 9, 24), Rope(shape)
    ready = position.prepare(torch.arange(9)[None])
    whole = made(x, x, context(9, 9, causal=True, position=position, ready=ready))
    cell, pieces = Cell(9), []
    for start, stop in ((0, 4), (4, 5), (5, 9)):
        ready = position.prepare(torch.arange(start, stop)[None])
        told = context(stop - start, stop, causal=True, position=position, ready=ready, cell=cell)
        new = x[:, start:stop]
        pieces.append(made(new, new, told))
    torch.testing.assert_close(torch.cat(pieces, 1), whole, atol=2e-6, rtol=1e-5)
    without = made(x, x, context(9, 9, causal=True))
    assert not torch.allclose(without, whole, atol=1e-2), "the position was never asked to rotate"


def test_a_source_is_projected_once():
    made, x, memory, cell = multi_head(), drawn(2, 3, 20), drawn(2, 7, 20), Cell(9)
    first = made(x, memory, context(3, 7, cell=cell))
    kept = [t.clone() for t in cell.tensors()]
    assert [t.shape for t in kept] == [(2, 4, 7, 5)] * 2
    again = made(x, torch.full_like(memory, torch.nan), context(3, 7, cell=cell))
    assert torch.equal(again, first) and all(map(torch.equal, kept, cell.tensors()))
    other = memory.flip(1) + 1
    assert torch.equal(made(x, other, context(3, 7, cell=Cell(9))), made(x, other, context(3, 7)))


# Softcap, sinks and windows against transformers


def their_mask(T: int, window: int | None) -> torch.Tensor:
    ahead = torch.arange(T)[:, None] - torch.arange(T)
    allowed = (ahead >= 0) & (ahead < (window or T))
    return torch.zeros(T, T).masked_fill(~allowed, -torch.inf)[None, None]


def through(function, ours: MultiHead, x: torch.Tensor, window: int | None, **module) -> torch.Tensor:
    """Our projections, with a function of transformers in place of the kernel."""
    groups = ours.q.out_features // ours.k.out_features
    told = SimpleNamespace(num_key_value_groups=groups, training=False, **module)
    qkv = ours.split(ours.q(x)), ours.split(ours.k(x)), ours.split(ours.v(x))
    given = {"softcap": ours.softcap} if ours.softcap else {}
    scale = ours.scale or ours.head_dim**-0.5
    out, _ = function(told, *qkv, their_mask(x.shape[1], window), dropout=0.0, scaling=scale, **given)
    return ours.out(out.flatten(2))


@pytest.mark.parametrize("kernel", [k for k in KERNELS if "softcap" in k.supports])
@pytest.mark.parametrize("window", [None, 3])
def test_softcap_is_gemma2s(kernel, window):
    gemma2 = pytest.importorskip("transformers.models.gemma2.modeling_gemma2")
    ours, x = multi_head(kernel, kv_heads=2, softcap=2.0, scale=0.7, window=window), drawn(2, 9, 20)
    right = through(gemma2.eager_attention_forward, ours, x, window)
    torch.testing.assert_close(ours(x, x, context(9, 9, causal=True)), right, atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize("kernel", [k for k in KERNELS if "sink" in k.supports])
@pytest.mark.parametrize("window", [None, 3])
def test_sinks_are_those_of_gpt_oss(kernel, window):
    gpt_oss = pytest.importorskip("transformers.models.gpt_oss.modeling_gpt_oss")
    ours, x = multi_head(kernel, kv_heads=2, sinks=True, window=window), drawn(2, 9, 20)
    nn.init.normal_(ours.sink, std=2.0)
    right = through(gpt_oss.eager_attention_forward, ours, x, window, sinks=ours.sink)
    got = ours(x, x, context(9, 9, causal=True))
    torch.testing.assert_close(got, right, atol=2e-6, rtol=1e-5)
    slopes = [torch.autograd.grad(out.square().sum(), ours.sink)[0] for out in (got, right)]
    torch.testing.assert_close(*slopes, atol=2e-5, rtol=1e-4)


# Windows with global layers between them


def test_a_long_text_is_read_on_through_windows_and_global_layers():
    """Twenty tokens past windows of 3: what lies outside is seen by the layers without one, and by no other."""
    local = {"name": "mha", "window": 3}
    ids = torch.randint(4, 17, (2, 24), generator=torch.Generator().manual_seed(0))
    other = ids.clone()
    other[:, 0] = torch.where(ids[:, 0] == 5, 6, 5)
    seen = {}
    for name, attention in {"mixed": [local, "mha"], "local": local}.items():
        model = built({"max_len": 32, "n_layers": 4}, position="rope", attention=attention)
        whole, cache = model.read(ids), Cache(24)
        steps = [model.read(part, cache=cache) for part in ids.split([1] * 10 + [5, 1, 8], 1)]
        torch.testing.assert_close(torch.cat(steps, 1), whole, atol=1e-10, rtol=1e-10)
        seen[name] = (model.read(other) - whole).abs().amax((0, 2))
    assert seen["mixed"].min() > 1e-6
    assert seen["local"][:9].min() > 1e-6 and seen["local"][9:].max() == 0  # four layers reach 2 tokens each


def test_nothing_is_a_step_that_is_left_out():
    assert isinstance(nothing(), NoStep)
