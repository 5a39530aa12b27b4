"""Kernels against the formula, against torch and against one another."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from support.contexts import context, keep
from torch.nn.attention.bias import causal_lower_right
from torch.utils.flop_counter import FlopCounterMode

import zoo
from zoo.parts import Shape
from zoo_plugins.attention import MultiHead
from zoo_plugins.kernel import Additive, Flash, Naive, Tiled, auto

B, H = 3, 4
KERNELS = {
    "naive": Naive,
    "flash": Flash,
    "tiled": Tiled,
    "tiled-1": lambda *told: Tiled(*told, block=1),
    "tiled-3": lambda *told: Tiled(*told, block=3),
}
HOLES = keep("111111111", "1.11.1.11", ".1...1111")
LEFT, RIGHT = keep("111111111", "..1111111", "....11111"), keep("111111111", "1111111..", "1111.....")
EMPTY = keep("111111111", ".........", "...1111..")

CASES = {
    "all see all": dict(T=7, S=7),
    "causal": dict(T=9, S=9, causal=True),
    "one new query": dict(T=1, S=9, causal=True),
    "three new queries": dict(T=3, S=9, causal=True),
    "three new queries, left pads": dict(T=3, S=9, causal=True, keep=LEFT),
    "several blocks": dict(T=66, S=70, causal=True),
    "shared heads": dict(T=9, S=9, causal=True, G=2),
    "one key head": dict(T=3, S=9, causal=True, G=1, keep=LEFT),
    "causal window": dict(T=9, S=9, causal=True, window=3),
    "window on both sides": dict(T=9, S=9, window=2, keep=RIGHT),
    "window counts real tokens": dict(T=9, S=9, causal=True, window=2, keep=HOLES),
    "left pads": dict(T=9, S=9, causal=True, keep=LEFT),
    "right pads": dict(T=9, S=9, keep=RIGHT),
    "a row of pads": dict(T=9, S=9, keep=EMPTY),
    "a row of pads, causal": dict(T=9, S=9, causal=True, keep=EMPTY, G=2),
    "bias": dict(T=9, S=9, bias=True),
    "bias of each row": dict(T=4, S=9, bias=True, rows=B, causal=True),
    "bias and a row of pads": dict(T=9, S=9, bias=True, causal=True, keep=EMPTY),
    "bias, window, pads, shared heads": dict(T=5, S=9, bias=True, causal=True, keep=LEFT, window=4, G=2),
    "cross": dict(T=4, S=9),
    "cross, more queries than keys": dict(T=12, S=9, keep=EMPTY),
    "empty source": dict(T=4, S=0),
    "nothing at all": dict(T=0, S=0),
    "prefix": dict(T=9, S=9, causal=True, prefix=torch.tensor([0, 4, 9])),
    "wide values": dict(T=9, S=9, causal=True, W=11),
    "narrow values": dict(T=3, S=9, W=2, G=2, keep=LEFT),
    "scale": dict(T=9, S=9, scale=1.0),
    "softcap": dict(T=9, S=9, causal=True, softcap=0.7, bias=True),
    "sink": dict(T=9, S=9, causal=True, sink=True, keep=LEFT),
    "sink and a row of pads": dict(T=9, S=9, sink=True, keep=EMPTY, softcap=2.0),
    "sink and an empty source": dict(T=4, S=0, sink=True),
}


def kernel_of(name: str, dtype: torch.dtype):
    return Additive(H, 5, ()).to(dtype) if name == "additive" else KERNELS[name](H, 5, ())


PAIRS = [
    (case, kernel)
    for case, given in CASES.items()
    for kernel, make in KERNELS.items()
    if kernel != "naive" and {"softcap", "sink"} & given.keys() <= make(H, 5, ()).supports
]


def drawn(*, T, S, G=H, K=5, W=5, bias=None, rows=1, sink=None, dtype=torch.float64, **facts):
    """Queries, keys and values whose scores are far from uniform, and what the kernel is told."""
    torch.manual_seed(1)
    q, k, v = (2 * torch.randn(B, n, m, w, dtype=dtype) for n, m, w in ((H, T, K), (G, S, K), (G, S, W)))
    told = context(
        T,
        S,
        bias=torch.randn(rows, H, T, S, dtype=dtype) if bias else None,
        sink=torch.randn(H, dtype=dtype) if sink else None,
        **facts,
    )
    return q, k, v, told


def sees(b: int, i: int, j: int, told, T: int, S: int) -> bool:
    """Whether query i may see key j, from the words of the contract."""
    mask = told.mask
    ahead = j > S - T + i
    inside = mask.prefix is not None and j < mask.prefix[b]
    if mask.causal and ahead and not inside:
        return False
    if mask.keep is not None and not mask.keep[b, j]:
        return False
    row = b if told.q_at.shape[0] > 1 else 0
    return mask.window is None or abs(int(told.q_at[row, i]) - int(told.k_at[row, j])) < mask.window


def formula(q, k, v, told, match=None):
    """Σ_j exp(s_ij) v_j / (Σ_j exp(s_ij) + exp(sink)) over the keys that may be seen, one row at a time; `match` gives
    the score of a head, a query and a key, a scaled product unless it is given.
    """
    T, S = q.shape[2], k.shape[2]
    out = q.new_zeros(*q.shape[:3], v.shape[3])
    scale = told.scale or 1 / math.sqrt(q.shape[3])
    match = match or (lambda h, q, k: scale * torch.dot(q, k))
    for b, h, i in ((b, h, i) for b in range(B) for h in range(H) for i in range(T)):
        g = h // (H // k.shape[1])
        total = told.sink[h].exp() if told.sink is not None else q.new_zeros(())
        for j in (j for j in range(S) if sees(b, i, j, told, T, S)):
            s = match(h, q[b, h, i], k[b, g, j])
            if told.softcap:
                s = told.softcap * torch.tanh(s / told.softcap)
            if told.bias is not None:
                s = s + told.bias[b if told.bias.shape[0] > 1 else 0, h, i, j]
            total = total + s.exp()
            out[b, h, i] += s.exp() * v[b, g, j]
        if total > 0:
            out[b, h, i] /= total
    return out


@pytest.mark.parametrize("case", [c for c in CASES if c != "several blocks"])
def test_naive_is_the_formula(case):
    q, k, v, told = drawn(**CASES[case])
    torch.testing.assert_close(Naive(H, 5, ())(q, k, v, told), formula(q, k, v, told), atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("case", [c for c in CASES if c != "several blocks"])
@torch.no_grad()
def test_additive_is_the_formula(case):
    """w·tanh(q + k), with all that may stand around a score."""
    q, k, v, told = drawn(**CASES[case])
    kernel = Additive(H, 5, ()).double()
    scale = told.scale or 1.0
    expected = formula(q, k, v, told, lambda h, q, k: scale * kernel.weight[h] @ torch.tanh(q + k))
    torch.testing.assert_close(kernel(q, k, v, told), expected, atol=1e-12, rtol=1e-12)


def test_additive_is_what_bahdanau_wrote():
    """e_ij = v·tanh(W s_i + U h_j), c_i = Σ_j softmax_j(e_ij) h_j: one head whose values are the states themselves."""
    torch.manual_seed(0)
    one = MultiHead(Shape(d_model=6, n_heads=1), Additive, None).double()
    with torch.no_grad():
        for same in (one.v, one.out):
            same.weight.copy_(torch.eye(6))
    states, source = torch.randn(2, 3, 6, dtype=torch.float64), torch.randn(2, 5, 6, dtype=torch.float64)
    e = torch.tanh(one.q(states)[:, :, None] + one.k(source)[:, None]) @ one.kernel.weight[0]
    torch.testing.assert_close(one(states, source, context(3, 5)), e.softmax(-1) @ source)


def test_the_model_of_2015():
    """Recurrent on both sides, the encoder both ways, and additive attention between them."""
    model = {
        "architecture": "encoder-decoder",
        "attention": "gru",
        "cross": "mha",
        "kernel": "additive",
        "ffn": "none",
    }
    made = zoo.build(model, shape={"d_model": 12, "n_heads": 1, "n_layers": 1, "vocab_size": 17})
    (layer,) = made.decoder.layers
    assert layer.steps == ("attention", "cross") and isinstance(layer.cross.kernel, Additive)
    assert layer.cross.kernel.weight.shape == (1, 12)


@pytest.mark.parametrize("case, kernel", PAIRS)
def test_every_kernel_equals_naive_forward_and_backward(case, kernel):
    q, k, v, told = drawn(**CASES[case])
    pull = torch.randn(*q.shape[:3], v.shape[3], dtype=q.dtype)
    results = []
    for one in (Naive(H, 5, ()), KERNELS[kernel](H, 5, ())):
        leaves = [x.detach().clone().requires_grad_() for x in (q, k, v, told.bias, told.sink) if x is not None]
        asked = iter(leaves[3:])
        now = replace(
            told,
            memo={},
            bias=None if told.bias is None else next(asked),
            sink=None if told.sink is None else next(asked),
        )
        out = one(*leaves[:3], now)
        grads = torch.autograd.grad(out, leaves, pull, materialize_grads=True) if out.requires_grad else ()
        results.append((out, *grads))
    # Without a key some kernels have nothing to differentiate.
    for ours, oracle in zip(results[1], results[0], strict=k.shape[2] > 0):
        torch.testing.assert_close(ours, oracle, atol=1e-11, rtol=1e-9)


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_equal_torch_on_the_causal_mask_of_a_cache(kernel):
    q, k, v, told = drawn(T=3, S=9, K=7, W=7, causal=True, dtype=torch.float32)
    right = F.scaled_dot_product_attention(q, k, v, attn_mask=causal_lower_right(3, 9))
    torch.testing.assert_close(KERNELS[kernel](H, 7, ())(q, k, v, told), right, atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize("kernel", KERNELS)
def test_one_new_query_sees_all_cached_keys(kernel):
    q, k, v, told = drawn(T=1, S=8, causal=True)
    out = KERNELS[kernel](H, 5, ())(torch.zeros_like(q), k, v, told)
    torch.testing.assert_close(out, v.mean(2, keepdim=True))


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_later_token_changes_no_earlier_output_by_a_bit(kernel):
    made = KERNELS[kernel](H, 5, ())
    q, k, v, told = drawn(T=9, S=9, causal=True, dtype=torch.float32)
    before = made(q, k, v, told)
    for x in (q, k, v):
        x[:, :, 6] += 3.0
    after = made(q, k, v, told)
    assert torch.equal(after[:, :, :6], before[:, :, :6])
    assert not torch.isclose(after[:, :, 6:], before[:, :, 6:]).flatten(2).all(-1).any()


@pytest.mark.parametrize("kernel", KERNELS)
def test_neighbouring_query_heads_share_a_key_head(kernel):
    q, k, v, told = drawn(T=9, S=9, G=2, causal=True)
    made = KERNELS[kernel](H, 5, ())
    out = made(q, k, v, told)
    torch.testing.assert_close(out, made(q, k[:, [0, 0, 1, 1]], v[:, [0, 0, 1, 1]], told))
    torch.testing.assert_close(out, F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True))
    assert not torch.allclose(out, made(q, k[:, [0, 1, 0, 1]], v[:, [0, 1, 0, 1]], told))


@pytest.mark.parametrize("biased", ["", "bias", "learned bias"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kernel", [*KERNELS, "additive"])
def test_a_row_that_sees_nothing_is_exactly_zero_with_finite_gradients(kernel, dtype, biased):
    q, k, v, told = drawn(T=9, S=9, causal=True, keep=EMPTY, bias=bool(biased), dtype=dtype)
    leaves = [q, k, v] + ([told.bias] if biased == "learned bias" else [])
    for x in leaves:
        x.requires_grad_()
    out = kernel_of(kernel, dtype)(q, k, v, told)
    out.float().square().sum().backward()
    assert torch.equal(out[1], torch.zeros_like(out[1]))
    assert torch.equal(out[2, :, :3], torch.zeros_like(out[2, :, :3]))
    assert out.isfinite().all() and out[0].abs().min() > 0
    assert all(x.grad.isfinite().all() for x in leaves)
    assert not any(x.grad[1].any() for x in (q, k, v))


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("kernel", [*KERNELS, "additive"])
def test_a_masked_key_has_no_weight_at_any_scale(kernel, scale):
    q, k, v, told = drawn(T=9, S=9, keep=RIGHT, scale=scale, dtype=torch.float32)
    made = kernel_of(kernel, torch.float32)
    before = made(q, k, v, told)
    hidden = ~RIGHT[:, None, :, None]
    after = made(q, k.masked_fill(hidden, 50.0), v.masked_fill(hidden, 1e30), told)
    torch.testing.assert_close(after, before, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("case", ["causal", "bias, window, pads, shared heads", "one key head"])
def test_bfloat16_is_as_near_to_float64_as_bfloat16_allows(case, kernel):
    q, k, v, told = drawn(**CASES[case], dtype=torch.bfloat16)
    exact = Naive(H, 5, ())(q.double(), k.double(), v.double(), told)
    out = KERNELS[kernel](H, 5, ())(q, k, v, replace(told, memo={}))
    assert out.dtype == torch.bfloat16
    # Outputs reach 6, where bfloat16 rounds by 2^-7; measured: 0.031 and 0.0034.
    error = (out.double() - exact).abs()
    assert error.max() < 0.04 and error.mean() < 0.005


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_float32_bias_serves_a_bfloat16_model(kernel):
    q, k, v, told = drawn(T=9, S=9, causal=True, dtype=torch.bfloat16)
    bias = torch.randn(1, H, 9, 9)
    out = KERNELS[kernel](H, 5, ())(q, k, v, replace(told, bias=bias))
    assert out.dtype == torch.bfloat16
    exact = Naive(H, 5, ())(q.double(), k.double(), v.double(), replace(told, bias=bias, memo={}))
    assert (out.double() - exact).abs().max() < 0.04


@pytest.mark.parametrize("kernel", [Naive, Flash])
def test_dropout_zeroes_weights_and_scales_up_the_rest(kernel):
    q, k, _, told = drawn(T=60, S=60, causal=True)
    weights = torch.eye(60, dtype=q.dtype).expand(B, H, 60, 60)
    kept = kernel(H, 5, ())(q, k, weights, told)
    torch.manual_seed(0)
    out = kernel(H, 5, ())(q, k, weights, replace(told, dropout=0.25))
    torch.testing.assert_close(out, torch.where(out == 0, 0, kept / 0.75))
    seen = torch.ones(60, 60, dtype=torch.bool).tril().expand_as(out)
    assert (out[seen] == 0).double().mean() == pytest.approx(0.25, abs=0.01)


def test_tiled_skips_blocks_that_lie_in_the_future():
    q = torch.randn(1, 2, 512, 8)
    flops = {}
    for causal in (False, True):
        with FlopCounterMode(display=False) as counter:
            Tiled(2, 8, ())(q, q, q, context(512, 512, causal=causal))
        flops[causal] = counter.get_total_flops()
    assert flops[True] / flops[False] == 36 / 64  # 8 blocks a side: 1 + 2 + ... + 8 of 8²


# What is said


def test_what_each_kernel_carries():
    assert Naive.supports == {"bias", "window", "softcap", "sink", "dropout", "cross"}
    assert Flash.supports == {"bias", "window", "dropout", "cross"}
    assert Tiled.supports == {"bias", "window", "softcap", "sink", "cross"}
    assert Additive.supports == Naive.supports


@pytest.mark.parametrize(
    "asked, chosen",
    [
        ((), "flash"),
        (("window", "bias", "cross"), "flash"),
        (("softcap",), "naive"),
        (("sink", "window"), "naive"),
        (("dropout",), "naive"),
        (("bias", "learned-bias"), "naive"),
        (("unheard-of",), "naive"),
    ],
)
def test_auto_says_what_it_chose(asked, chosen):
    assert auto(H, 5, asked).effective == chosen


def test_flash_says_where_torch_takes_its_slow_path():
    assert Flash(H, 5, ("bias",)).effective == "flash"
    said = Flash(H, 5, ("bias", "learned-bias")).effective
    assert said == "flash (SDPA's math path: the bias needs a gradient)"
    assert Flash(H, 5, ("dropout",)).effective == "flash (SDPA's math path: dropout on a CPU)"
    assert Naive(H, 5, ()).effective == "naive"
    assert Tiled(H, 5, ()).effective == "tiled"


@pytest.mark.parametrize("gradient", [False, True])
def test_the_slow_path_is_the_one_that_torch_takes(gradient):
    q = torch.randn(1, H, 16, 8)
    told = context(16, 16, bias=torch.randn(1, H, 16, 16, requires_grad=gradient))
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        Flash(H, 8, ())(q, q, q, told)
    names = " ".join(event.name for event in profile.events())
    assert ("_scaled_dot_product_attention_math" in names) is gradient
    assert ("_flash_attention_for_cpu" in names) is not gradient


@pytest.mark.parametrize("width", [3, 8, 13])
def test_values_of_another_width_take_the_fast_path_too(width):
    q, v = torch.randn(1, H, 16, 8), torch.randn(1, H, 16, width)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        out = Flash(H, 8, ())(q, q, v, context(16, 16, causal=True))
    assert out.shape[-1] == width
    names = " ".join(event.name for event in profile.events())
    assert "_flash_attention_for_cpu" in names and "_scaled_dot_product_attention_math" not in names


def test_a_block_has_at_least_one_row():
    with pytest.raises(ValueError, match="block is 0; it should be at least 1"):
        Tiled(H, 5, (), block=0)
