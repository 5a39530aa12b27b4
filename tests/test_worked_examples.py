"""The worked examples of three teaching articles, through the zoo's own parts with weights set by hand.

Figures are asserted to the digits that the articles print. Where an article is wrong, the right value stands here and
the test says what the article has.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import accumulate
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from support.contexts import context
from torch import nn
from torch.autograd.profiler import profile
from torch.testing import assert_close

from zoo import build
from zoo.declare.library import open_library
from zoo.declare.spec import Node
from zoo.model.builder import bind, build_on_meta
from zoo.model.cost import count_cache_bytes, count_kv_bytes_per_token, make_rows
from zoo.parts import Shape
from zoo_plugins.attention import MultiHead
from zoo_plugins.kernel import Flash, Naive, Tiled, score
from zoo_plugins.norm import LayerNorm
from zoo_plugins.position import Sinusoidal

KERNELS = [Naive, Flash, Tiled]


def assert_digits(got: torch.Tensor, right: list, digits: int = 3) -> None:
    """Equal as far as printed: within half a unit of the last of so many decimals."""
    assert_close(got.detach().float(), torch.tensor(right), atol=0.5 * 10**-digits + 1e-6, rtol=0)


# The sentence: Apple shares fell sharply, two numbers a token

X = torch.tensor([[1.0, 0.2], [0.1, 1.0], [0.3, 0.6], [0.2, 0.5]])[None]
SWAP, SAME = torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.eye(2)
IDS = torch.tensor([[4, 5, 6, 7]])
TOLD = context(4, 4)


def by_hand(kernel, n_heads: int, q, k, v, **options) -> MultiHead:
    made = MultiHead(Shape(d_model=2, n_heads=n_heads), kernel, nn.LayerNorm, **options)
    return set_weights(made, q, k, v)


@torch.no_grad()
def set_weights(made: MultiHead, q, k, v, out=SAME) -> MultiHead:
    for linear, weight in ((made.q, q), (made.k, k), (made.v, v), (made.out, out)):
        linear.weight.copy_(weight)
    return made


def weights(made: MultiHead) -> torch.Tensor:
    """Values that are the rows of an identity bring the weights [H, T, S] to light."""
    q, k, _ = made.project(X, X, TOLD)
    return made.kernel(q, k, torch.eye(4).expand(1, k.shape[1], 4, 4), context(4, 4, scale=made.scale))[0].detach()


def test_cosine_of_apple_and_shares():
    unit = F.normalize(X, dim=-1)[:, None]
    cosines = score(unit, unit, None, context(4, 4, scale=1.0))
    assert_digits(cosines[0, 0, 0, 1], 0.2927, 4)


@pytest.mark.parametrize("kernel", KERNELS)
def test_table_1_plain_dot_products(kernel):
    made = by_hand(kernel, 1, SAME, SAME, SAME, scale=1.0)
    table = [[0.401, 0.191, 0.216, 0.191], [0.176, 0.359, 0.245, 0.220]]
    table += [[0.238, 0.293, 0.245, 0.224], [0.233, 0.290, 0.247, 0.230]]
    assert_digits(weights(made)[0], table)
    assert_digits(made(X, X, TOLD)[0, 0], [0.523, 0.497])


@pytest.mark.parametrize("kernel", KERNELS)
def test_scaling_by_the_root_of_the_width(kernel):
    made = by_hand(kernel, 1, SAME, SAME, SAME)
    q, k, _ = made.project(X, X, TOLD)
    assert_digits(score(q, k, None, TOLD)[0, 0, 0], [0.735, 0.212, 0.297, 0.212])
    assert_digits(weights(made)[0, 0], [0.353, 0.209, 0.228, 0.209])


@pytest.mark.parametrize("kernel", KERNELS)
def test_table_2_projected_queries(kernel):
    made = by_hand(kernel, 1, SWAP, SAME, SAME)
    q, k, _ = made.project(X, X, TOLD)
    assert_digits(score(q, k, None, TOLD)[0, 0, 0], [0.283, 0.721, 0.467, 0.382])
    table = [[0.206, 0.319, 0.247, 0.227], [0.361, 0.202, 0.227, 0.210]]
    table += [[0.296, 0.240, 0.240, 0.225], [0.292, 0.238, 0.241, 0.229]]
    assert_digits(weights(made)[0], table)
    assert_digits(made(X, X, TOLD)[0, 0], [0.358, 0.623])


@pytest.mark.parametrize("kernel", KERNELS)
def test_two_heads_of_width_one(kernel):
    made = by_hand(kernel, 2, SWAP, SWAP, SWAP)
    assert_digits(weights(made)[:, 0], [[0.232, 0.272, 0.251, 0.246], [0.425, 0.173, 0.211, 0.191]])
    assert_digits(made(X, X, TOLD)[0, 0], [0.591, 0.544])


def test_table_3_sinusoidal_positions():
    sinusoidal, at = Sinusoidal(Shape(d_model=2, n_heads=1)), torch.arange(4)[None]
    table = [[0, 1], [0.841, 0.540], [0.909, -0.416], [0.141, -0.990]]
    assert_digits(sinusoidal.embed(0 * X, at)[0], table)
    summed = [[1.000, 1.200], [0.941, 1.540], [1.209, 0.184], [0.341, -0.490]]
    assert_digits(sinusoidal.embed(X, at)[0], summed)


def test_a_shift_of_positions_is_a_rotation():
    """PE(p + k) = M_k PE(p), with a rotation M_k of each pair that does not depend on p."""
    width, k = 8, 5
    turns = [k * 10000.0 ** (-2 * i / width) for i in range(width // 2)]
    pairs = [torch.tensor([[math.cos(t), math.sin(t)], [-math.sin(t), math.cos(t)]]) for t in turns]
    sinusoidal = Sinusoidal(Shape(d_model=width, n_heads=1))
    here, there = (sinusoidal.embed(torch.zeros(1, 20, width), torch.arange(20)[None] + s) for s in (0, k))
    assert_close(there, here @ torch.block_diag(*pairs).T, atol=2e-6, rtol=0)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_causal_mask_is_lower_triangular(kernel):
    """Row i sees j <= i. Article 000 has it transposed: 0 for i <= j."""
    mask = context(4, 4, causal=True)
    assert mask.attention_mask()[0, 0].tolist() == [[j <= i for j in range(4)] for i in range(4)]
    made = by_hand(kernel, 1, SWAP, SAME, SAME)
    assert_digits(made(X, X, mask)[0, 0], X[0, 0].tolist(), 6)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_mask_is_added_after_the_scaling(kernel):
    """With -inf the order makes no difference, with a finite bias it does."""
    made = by_hand(kernel, 1, SAME, SAME, SAME)
    q, k, _ = made.project(X, X, TOLD)
    bias = torch.tensor([[0.0, 0, 0, 0], [1, 0, 0, 0], [2, 1, 0, 0], [3, 2, 1, 0]])[None, None]
    got = made.kernel(q, k, torch.eye(4)[None, None], replace(TOLD, bias=bias, memo={}))[0, 0]
    scores = X[0].double() @ X[0].double().T
    assert_close(got.detach(), (scores / 2**0.5 + bias[0, 0]).softmax(-1).float())
    assert not torch.allclose(got, ((scores + bias[0, 0]) / 2**0.5).softmax(-1).float(), atol=0.05)


def sentence(architecture: str, position: str, **attention) -> nn.Module:
    """A model of one attention and nothing else, whose tokens 4 to 7 are the words of the sentence."""
    parts = {
        "architecture": architecture, "embedding": "plain", "position": position, "norm": "none",
        "residual": "pre-norm", "attention": {"name": "mha", **attention}, "kernel": "naive", "ffn": "none",
    }  # fmt: skip
    model = build(parts, shape={"d_model": 2, "n_heads": 1, "n_layers": 1, "vocab_size": 8, "max_len": 8})
    model.head.table.weight.data[4:] = X[0]
    stack = model.encoder if architecture == "encoder-only" else model.decoder
    set_weights(stack.layers[0].attention, SWAP, SAME, SAME)
    return model


@torch.no_grad()
def test_the_whole_pass_of_a_built_model():
    """x + attention(x), then products with the table: states and logits of the sentence."""
    model = sentence("encoder-only", "none")
    states = model.states(IDS, IDS, aligned=True)
    assert_digits((states - X)[0, 0], [0.358, 0.623])
    assert_close(model(IDS, IDS, aligned=True)[..., 4:], states @ X[0].T)
    causal = sentence("decoder-only", "none")
    assert_close(causal.decoder(IDS)[0, 0], 2 * X[0, 0])
    assert_digits((causal.decoder(IDS) - X)[0, 3], (states - X)[0, 3].tolist(), 6)  # the last token sees all
    located = sentence("encoder-only", "sinusoidal", scale=1e-12)  # scores of 0: attention adds the mean
    summed = located.states(IDS, IDS, aligned=True)[0]
    embedded = torch.tensor([[1.000, 1.200], [0.941, 1.540], [1.209, 0.184], [0.341, -0.490]])
    assert_digits(summed, (embedded + embedded.mean(0)).tolist(), 2)


# Properties


@pytest.mark.parametrize("kernel", KERNELS)
def test_without_positions_the_order_does_not_matter(kernel):
    torch.manual_seed(0)
    made = MultiHead(Shape(d_model=20, n_heads=4), kernel, nn.LayerNorm)
    x, order = torch.randn(2, 7, 20), [3, 0, 6, 1, 5, 2, 4]
    out = made(x, x, context(7, 7))
    y = x[:, order]
    assert_close(made(y, y, context(7, 7)), out[:, order], atol=2e-6, rtol=1e-5)
    assert not torch.allclose(out[:, order], out, atol=1e-2)


def equivariance(position: str) -> tuple[torch.Tensor, torch.Tensor]:
    parts = {"architecture": "encoder-only", "position": position, "residual": "pre-norm"}
    model = build(parts, shape={"d_model": 24, "n_heads": 4, "n_layers": 2, "vocab_size": 17, "max_len": 8}).eval()
    ids, order = torch.tensor([[4, 9, 5, 16, 7, 8]]), [3, 0, 5, 1, 2, 4]
    read = lambda ids: model(ids, ids, aligned=True).detach()  # noqa: E731
    return read(ids[:, order]), read(ids)[:, order]


def test_a_built_encoder_without_positions_is_permutation_equivariant():
    assert_close(*equivariance("none"), atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize("position", ["sinusoidal", "learned", "rope", "alibi"])
def test_positions_break_the_equivariance(position):
    assert not torch.allclose(*equivariance(position), atol=1e-2)


@pytest.mark.parametrize("width", [16, 64])
def test_raw_scores_have_the_variance_of_the_head_width_and_scaled_ones_one(width):
    """Var(q·k) = d_k for unit normal q and k."""
    torch.manual_seed(0)
    q, k = torch.randn(1, 1, 400, width), torch.randn(1, 1, 400, width)
    told = context(400, 400)
    assert score(q, k, None, replace(told, scale=1.0)).var() == pytest.approx(width, rel=0.05)
    assert score(q, k, None, told).var() == pytest.approx(1, rel=0.05)


# Norms, FFNs, positions: what the articles print, and what is right


def test_layer_norm_of_one_to_six():
    got = LayerNorm(6, eps=1e-6)(torch.arange(1.0, 7.0))
    assert_digits(got, [-1.4638, -0.8783, -0.2928, 0.2928, 0.8783, 1.4638], 4)


def test_eps_stands_under_the_root():
    """Article 001 divides by √σ². With a loud ε of 1 the first of 1..6 becomes -2.5 / √(35/12 + 1)."""
    got = LayerNorm(6, eps=1.0)(torch.arange(1.0, 7.0))
    assert got[0].item() == pytest.approx(-2.5 / math.sqrt(35 / 12 + 1), rel=1e-6)
    assert torch.equal(LayerNorm(6)(torch.full((6,), 3.0)), torch.zeros(6))  # σ = 0


def test_wavelengths_grow_by_pairs():
    """PE(1) at width 6. Article 001 steps i by two and still takes base^(2i/d): its second pair is our third."""
    got = Sinusoidal(Shape(d_model=6, n_heads=1)).embed(torch.zeros(1, 1, 6), torch.tensor([[1]]))[0, 0]
    assert_digits(got, [0.84147, 0.54030, 0.04640, 0.99892, 0.00215, 1.00000], 5)


def test_swish_gate_and_sigmoid_gate_have_their_own_names():
    """Article 001 gives the formula of GLU, (xW ⊗ sigmoid(xV)) W2, under the name of SwiGLU."""
    reader, shape, got = open_library().reader(), Shape(d_model=1, n_heads=1, d_ff=1), {}
    for name in ("glu", "swiglu"):
        ffn = bind(reader.part(Node(name), "ffn"), {"shape": shape})
        for p in ffn.parameters():
            nn.init.ones_(p)
        got[name] = ffn(torch.full((1, 1, 1), 2.0), None).item()
    assert got == pytest.approx({"glu": 2 * 0.880797, "swiglu": 2 * 2 * 0.880797}, rel=1e-5)


def test_bert_has_learned_positions():
    """Article 001 lists sinusoidal ones."""
    library = open_library()
    assert library.find("models", "bert-like").plain()["position"] == "learned"


# Sizes and costs

GPT = {
    "architecture": "decoder-only", "embedding": "plain", "position": "learned", "norm": "layernorm",
    "residual": "pre-norm", "attention": {"name": "mha", "bias": True}, "ffn": {"name": "gelu-tanh", "bias": True},
    "head": "tied",
}  # fmt: skip
LLAMA = {
    "architecture": "decoder-only", "embedding": "plain", "position": "rope", "norm": "rmsnorm",
    "residual": "pre-norm", "attention": "mha", "ffn": "swiglu", "head": "untied",
}  # fmt: skip
GPT_2 = dict(d_model=768, n_heads=12, n_layers=12, d_ff=3072, max_len=1024, vocab_size=50257)
GPT_3 = dict(d_model=12288, n_heads=96, n_layers=96, d_ff=49152, max_len=2048, vocab_size=50257)
LLAMA_7B = dict(d_model=4096, n_heads=32, n_layers=32, d_ff=11008, max_len=2048, vocab_size=32000)


def sketched(parts: dict, sizes: dict) -> nn.Module:
    library = open_library()
    reader = library.reader()
    spec = reader.model(Node(parts))
    reader.finish()
    return build_on_meta(spec, Shape(**sizes), library.registry)


@pytest.mark.parametrize(
    "parts, sizes, parameters",
    [(GPT, GPT_2, 124_439_808), (LLAMA, LLAMA_7B, 6_738_415_616), (GPT, GPT_3, 174_604_259_328)],
    ids=["GPT-2", "LLaMA-7B", "GPT-3"],
)
def test_parameters_of_published_models(parts, sizes, parameters):
    model = sketched(parts, sizes)
    assert sum(p.numel() for p in model.parameters()) == parameters
    assert {p.device.type for p in model.parameters()} == {"meta"}


def test_cache_of_a_7b_model_at_4k():
    """2 · 32 layers · 4096 tokens · 4096 wide · 2 bytes. The zoo plans in float32, which is twice of float16."""
    task = SimpleNamespace(source_len=0, target_len=4096)
    attentions = {"mha": "mha", "gqa": {"name": "gqa", "kv_heads": 8}, "mqa": "mqa"}
    models = {name: sketched({**LLAMA, "attention": part}, LLAMA_7B) for name, part in attentions.items()}
    planned = 4096 * count_kv_bytes_per_token(models["mha"], task)
    size = {name: count_cache_bytes(model.half(), *make_rows(task, 1), room=4096) for name, model in models.items()}
    assert size["mha"] == planned / 2 == 2 * 32 * 4096 * 4096 * 2 == 2.0 * 2**30
    assert size["gqa"] == size["mha"] / 4 and size["mqa"] == size["mha"] / 32


def allocated(kernel, n: int) -> tuple[int, int]:
    """The most bytes that a causal pass over n tokens holds at once, and the largest block among them."""
    q, k, v = (torch.randn(1, 2, n, 8) for _ in range(3))
    with torch.no_grad(), profile(profile_memory=True) as seen:
        kernel(2, 8, ())(q, k, v, context(n, n, causal=True))
    # The allocator's own account: SDPA takes its buffers where no Python can see them.
    events = [e for e in seen.kineto_results.events() if e.name() == "[memory]"]
    blocks = [e.nbytes() for e in sorted(events, key=lambda e: e.start_ns())]
    return max(accumulate(blocks)), max(blocks)


def test_naive_attention_stores_all_weights_and_the_others_do_not():
    """O(n²) against O(n). Flash works in blocks of up to 512 keys, so it is measured from 1024 tokens on."""
    few, many = allocated(Naive, 512), allocated(Naive, 1024)
    assert many[1] == 2 * 1024 * 1024 * 4  # bytes of heads x n x n float32 scores
    assert 3.8 < many[0] / few[0] < 4.2
    for kernel, n in ((Flash, 1024), (Tiled, 256)):
        few, double = allocated(kernel, n)[0], allocated(kernel, 2 * n)[0]
        assert double / few < 2.1
        assert double < allocated(Naive, 2 * n)[0] / 10


def test_8192_tokens_take_a_quarter_gibibyte_per_head_and_sequence():
    """Article 001: 'dozens of GB'. The total depends on heads, layers and batch."""
    q = torch.empty(1, 1, 8192, 64, device="meta")
    scores = score(q, q, None, context(8192, 8192))
    assert scores.nbytes == 0.25 * 2**30
