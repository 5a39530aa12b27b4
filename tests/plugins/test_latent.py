"""Latent attention, held to transformers' DeepSeek-V2 and to multi-head attention with the keys written out."""

from __future__ import annotations

import pytest
import torch
from support.contexts import context, keep
from torch import nn
from torch.testing import assert_close

from zoo import build
from zoo.model import cost
from zoo.parts import Cell, OutputProjection, Shape
from zoo_plugins.kernel import Flash, Naive, Tiled
from zoo_plugins.latent import Latent
from zoo_plugins.norm import RMSNorm
from zoo_plugins.position import Rope

SHAPE = Shape(d_model=20, n_heads=4, head_dim=6, max_len=16)
KERNELS = [Naive, Flash, Tiled]
WIDTHS = {"kv_rank": 7, "nope_dim": 5, "v_dim": 3}
FORMS = {
    "narrow values": WIDTHS,
    "wide values": {**WIDTHS, "v_dim": 13},
    "a latent of queries": {**WIDTHS, "q_rank": 9},
    "biases and sharper scores": {**WIDTHS, "q_rank": 9, "bias": True, "sharpness": 1.7},
}


def latent(kernel=Naive, **options) -> Latent:
    torch.manual_seed(0)
    made = Latent(SHAPE, kernel, lambda dim=20: RMSNorm(dim, eps=0.01), **options).double().eval()
    for p in made.parameters():
        nn.init.normal_(p, std=0.4)
    return made


def drawn(*size: int) -> torch.Tensor:
    return torch.randn(*size, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def rope(pairing="interleaved") -> Rope:
    return Rope(SHAPE, pairing=pairing)


def told(T: int, S: int | None = None, position=None, **given):
    """A causal context under rope; without an S, of the whole text."""
    position, S = position or rope(), S or T
    return context(T, S, causal=True, position=position, ready=position.prepare(torch.arange(S - T, S)[None]), **given)


# Against transformers


def theirs(ours: Latent):
    pytest.importorskip("transformers")
    from transformers.models.deepseek_v2.modeling_deepseek_v2 import DeepseekV2Attention, DeepseekV2Config

    nope, turned, value = ours.widths
    latent_queries = not ours.direct
    config = DeepseekV2Config(
        hidden_size=20, num_attention_heads=4, num_key_value_heads=4, head_dim=turned, qk_rope_head_dim=turned,
        qk_nope_head_dim=nope, v_head_dim=value, kv_lora_rank=ours.kv_norm.weight.numel(), rms_norm_eps=0.01,
        q_lora_rank=ours.q_norm.weight.numel() if latent_queries else None, attention_bias=ours.out.bias is not None,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0}, attn_implementation="eager",
    )  # fmt: skip
    made = DeepseekV2Attention(config, 0).double().eval()
    names = {"q_b_proj": "q_up"} if latent_queries else {"q_proj": "q"}
    names |= {"q_a_proj": "q_down", "q_a_layernorm": "q_norm"} if latent_queries else {}
    names |= {"kv_a_layernorm": "kv_norm", "kv_b_proj": "kv_up", "o_proj": "out"}
    mine, state = ours.state_dict(), {}
    for name in made.state_dict():
        owner, kind = name.rsplit(".", 1)
        if owner == "kv_a_proj_with_mqa":
            state[name] = torch.cat([mine[f"kv_down.{kind}"], mine[f"k_rope.{kind}"]])
        else:
            state[name] = mine[f"{names[owner]}.{kind}"]
    made.load_state_dict(state)
    for norm in (made.q_a_layernorm, made.kv_a_layernorm):  # theirs is 1e-6 whatever the config says
        if norm is not None:
            norm.variance_epsilon = 0.01
    made.scaling = made.scaling * (1.7 if ours.out.bias is not None else 1.0)
    return made, config


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("form", FORMS)
def test_deepseek_v2(form, kernel):
    ours, x = latent(kernel, **FORMS[form]), drawn(2, 9, 20)
    made, config = theirs(ours)
    from transformers.models.deepseek_v2.modeling_deepseek_v2 import DeepseekV2RotaryEmbedding

    turns = DeepseekV2RotaryEmbedding(config)(x, torch.arange(9)[None])
    mask = torch.full((9, 9), -torch.inf, dtype=torch.float64).triu(1)[None, None]
    right = made(x, attention_mask=mask, position_embeddings=turns)[0]
    assert_close(ours(x, x, told(9)), right, atol=1e-6, rtol=1e-6)  # their angles are float32
    plain = ours(x, x, context(9, 9, causal=True))
    assert not torch.allclose(plain, right, atol=1e-2), "the position was never asked to rotate"


# Against its own formula, and what it remembers


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("form", FORMS)
def test_it_is_multi_head_attention_with_these_keys_and_values(form, kernel):
    ours, x, memory = latent(kernel, **FORMS[form]), drawn(2, 5, 20), drawn(2, 8, 20).flip(1)
    real = keep("111111..", "11111111")
    nope, turned, value = ours.widths
    c = ours.kv_norm(ours.kv_down(memory))
    q = ours.q(x) if ours.direct else ours.q_up(ours.q_norm(ours.q_down(x)))
    outs = []
    for h in range(4):
        k, v = c @ rows(ours.kv_up, h * (nope + value), nope), c @ rows(ours.kv_up, h * (nope + value) + nope, value)
        own = q[..., h * (nope + turned) :][..., : nope + turned]
        scores = own[..., :nope] @ k.mT + own[..., nope:] @ ours.k_rope(memory).mT
        scores = scores * FORMS[form].get("sharpness", 1.0) / (nope + turned) ** 0.5
        outs.append(scores.masked_fill(~real[:, None], -torch.inf).softmax(-1) @ v)
    got = ours(x, memory, context(5, 8, keep=real))
    assert_close(got, ours.out(torch.cat(outs, -1)))


def rows(linear: nn.Linear, start: int, n: int) -> torch.Tensor:
    return linear.weight[start : start + n].T


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("sizes", [[1] * 9, [4, 4, 1]])
def test_reading_in_pieces_equals_reading_at_once(kernel, sizes):
    ours, x, cell = latent(kernel, **FORMS["a latent of queries"]), drawn(2, 9, 20), Cell(9)
    whole, read, pieces = ours(x, x, told(9)), 0, []
    for new in x.split(sizes, 1):
        read += new.shape[1]
        pieces.append(ours(new, new, told(new.shape[1], read, cell=cell)))
    assert_close(torch.cat(pieces, 1), whole)
    assert [list(t.shape) for t in cell.tensors()] == [[2, 1, 9, 7], [2, 1, 9, 6]]


@pytest.mark.parametrize("architecture", ["decoder-only", "encoder-decoder"])
def test_the_cache_grows_by_a_latent_and_one_head_per_token_and_layer(architecture):
    attention = {"name": "mla", "kv_rank": 7, "nope_dim": 5, "v_dim": 9}
    sizes = {"d_model": 20, "n_heads": 4, "head_dim": 6, "n_layers": 3, "vocab_size": 17, "max_len": 16}
    with torch.device("meta"):
        model = build({"architecture": architecture, "attention": attention, "position": "rope"}, shape=sizes)
    task = type("Task", (), {"source_len": 5, "target_len": 6, "aligned": False})
    assert cost.count_kv_bytes_per_token(model, task) == 3 * (7 + 6) * 4


def test_a_source_is_read_once():
    ours, x, memory, cell = latent(**WIDTHS), drawn(2, 3, 20), drawn(2, 7, 20), Cell(9)
    first = ours(x, memory, context(3, 7, cell=cell))
    assert [list(t.shape) for t in cell.tensors()] == [[2, 1, 7, 7], [2, 1, 7, 6]]
    assert torch.equal(ours(x, torch.full_like(memory, torch.nan), context(3, 7, cell=cell)), first)


# How it is built


def test_widths_follow_the_head_where_none_is_given():
    ours = latent()
    assert ours.widths == (6, 6, 6) and ours.kv_down.out_features == 24
    assert isinstance(ours.out, OutputProjection)


def test_names_of_the_weights():
    short = ["q", "kv_down", "kv_norm", "kv_up", "k_rope", "out"]
    assert list(latent().state_dict()) == [f"{name}.weight" for name in short]
    assert {"q_down.weight", "q_norm.weight", "q_up.weight"} <= latent(q_rank=5).state_dict().keys()
    biased = [name for name in latent(q_rank=5, bias=True).state_dict() if name.endswith("bias")]
    assert biased == ["q_down.bias", "kv_down.bias", "k_rope.bias", "out.bias"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kv_rank": 0}, "kv_rank is 0; it should be at least 1"),
        ({"q_rank": 0}, "q_rank is 0; it should be at least 1"),
        ({"nope_dim": -1}, "nope_dim is -1; it should be at least 1"),
        ({"v_dim": 0}, "v_dim is 0; it should be at least 1"),
        ({"sharpness": 0.0}, "sharpness is 0.0; it should be above 0"),
        ({"dropout": 1.0}, "dropout is 1.0; it should be at least 0 and below 1"),
    ],
)
def test_impossible_numbers_are_refused(options, said):
    with pytest.raises(ValueError) as refusal:
        latent(**options)
    assert said in str(refusal.value)


def test_dropout_is_for_training_alone():
    ours, x = latent(**WIDTHS, dropout=0.5), drawn(2, 9, 20)
    calm = ours(x, x, told(9))
    assert torch.equal(calm, ours(x, x, told(9)))
    torch.manual_seed(0)
    assert not torch.allclose(ours.train()(x, x, told(9)), calm)
