"""The two ends of a model: ids to vectors, and last states to logits."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from zoo import build
from zoo.parts import Shape
from zoo_plugins.embedding import Tokens
from zoo_plugins.head import Logits, Transformed, untied

PLAIN = Shape(d_model=6, n_heads=2, vocab_size=11)
NARROW = Shape(d_model=6, n_heads=2, vocab_size=11, d_embed=4)
IDS = torch.tensor([[3, 0, 10], [1, 1, 2]])


def table(shape: Shape) -> nn.Embedding:
    torch.manual_seed(0)
    return nn.Embedding(shape.vocab_size, shape.embed_width)


def layer_norm(dim: int = 6) -> nn.Module:
    made = nn.LayerNorm(dim)
    nn.init.constant_(made.bias, 0.5)
    return made


@pytest.mark.parametrize("shape", [PLAIN, NARROW])
@pytest.mark.parametrize("scale", [True, False])
def test_embedded_ids_are_scaled_by_the_root_of_their_width(shape, scale):
    rows = table(shape)
    made = Tokens(shape, rows, layer_norm, scale=scale)
    keep = torch.tensor([[True, True, False], [True, True, True]])
    x, kept = made.look_up(IDS, keep, None)
    assert kept is keep
    assert made.width == x.shape[-1] == {PLAIN: 6, NARROW: 4}[shape]
    torch.testing.assert_close(x[0, 2], rows.weight[10] * (math.sqrt(made.width) if scale else 1))


def test_a_plain_embedding_settles_as_it_is():
    x = torch.randn(2, 3, 6)
    assert Tokens(PLAIN, table(PLAIN), layer_norm).finish(x) is x


def test_norm_comes_before_the_way_up_and_has_the_narrow_width():
    made, x = Tokens(NARROW, table(NARROW), layer_norm, normed=True), torch.randn(2, 3, 4)
    normed = (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, correction=0, keepdim=True) + 1e-5) + 0.5
    torch.testing.assert_close(made.finish(x), normed @ made.up.weight.T)
    assert made.up.bias is None and made.up.weight.shape == (6, 4)


def test_names_of_the_embeddings_weights():
    made = Tokens(NARROW, table(NARROW), layer_norm, normed=True)
    assert {n for n, _ in made.named_parameters()} == {"table.weight", "norm.weight", "norm.bias", "up.weight"}
    assert {n for n, _ in Tokens(PLAIN, table(PLAIN), layer_norm).named_parameters()} == {"table.weight"}


def test_segments_are_not_ignored_in_silence():
    with pytest.raises(ValueError, match="has no segments"):
        Tokens(PLAIN, table(PLAIN), layer_norm).look_up(IDS, None, IDS)


def test_tied_logits_are_products_with_the_tables_rows():
    rows, x = table(PLAIN), torch.randn(2, 3, 6)
    made = Logits(PLAIN, rows)
    logits = made(x)
    assert logits.shape == (2, 3, 11)
    torch.testing.assert_close(logits[1, 2, 7], torch.dot(x[1, 2], rows.weight[7]))
    assert [p is rows.weight for p in made.parameters()] == [True]


def test_both_ends_pull_at_a_tied_table():
    rows = table(PLAIN)
    ends = nn.ModuleList([Tokens(PLAIN, rows, layer_norm), Logits(PLAIN, rows)])
    assert sum(p.numel() for p in ends.parameters()) == 11 * 6
    x, _ = ends[0].look_up(IDS[:, :1], None, None)
    ends[1](x).sum().backward()
    # Row 3 was read once and row 1 once; every row was scored against the sum of both inputs.
    root, total = math.sqrt(6), rows.weight.detach().sum(0)
    inputs = root * (rows.weight[3] + rows.weight[1]).detach()
    torch.testing.assert_close(rows.weight.grad[3], inputs + root * total)
    torch.testing.assert_close(rows.weight.grad[5], inputs)


def test_a_narrow_table_is_reached_by_a_projection():
    rows, x = table(NARROW), torch.randn(2, 3, 6)
    made = Logits(NARROW, rows)
    torch.testing.assert_close(made(x), x @ made.down.weight.T @ rows.weight.T)
    assert made.down.bias is None


@pytest.mark.parametrize("make", [lambda **given: Logits(PLAIN, table(PLAIN), **given), lambda **g: untied(PLAIN, **g)])
def test_scale_then_bias_then_softcap(make):
    made, x = make(bias=True, scale=0.25, softcap=2.0), torch.randn(2, 3, 6)
    assert made.bias.tolist() == [0.0] * 11
    nn.init.normal_(made.bias)
    raw = 0.25 * (x @ made.table.weight.T) + made.bias
    torch.testing.assert_close(made(x), 2 * torch.tanh(raw / 2))


def test_an_untied_head_has_a_table_of_its_own_as_wide_as_the_model():
    made, x = untied(NARROW), torch.randn(2, 3, 6)
    assert [(n, tuple(p.shape)) for n, p in made.named_parameters()] == [("table.weight", (11, 6))]
    torch.testing.assert_close(made(x), x @ made.table.weight.T)


@pytest.mark.parametrize("softcap", [0.0, -1.0])
def test_a_softcap_is_above_zero(softcap):
    with pytest.raises(ValueError, match="it should be above 0"):
        untied(PLAIN, softcap=softcap)


def test_transform_goes_to_the_width_of_the_table():
    made, x = Transformed(NARROW, table(NARROW), layer_norm), torch.randn(2, 3, 6)
    nn.init.normal_(made.logits.bias)
    hidden = made.norm(torch.nn.functional.gelu(x @ made.dense.weight.T + made.dense.bias))
    torch.testing.assert_close(made(x), hidden @ made.logits.table.weight.T + made.logits.bias)
    assert {n: tuple(p.shape) for n, p in made.named_parameters()} == {
        "dense.weight": (4, 6), "dense.bias": (4,), "norm.weight": (4,), "norm.bias": (4,),
        "logits.table.weight": (11, 4), "logits.bias": (11,),
    }  # fmt: skip


def test_transform_without_biases():
    made = Transformed(PLAIN, table(PLAIN), layer_norm, dense_bias=False, bias=False, activation="relu")
    assert made.dense.bias is None and made.logits.bias is None and "activation=relu" in repr(made)


@pytest.mark.parametrize(
    "kind, shape", [("bert", PLAIN), ("roberta", PLAIN), ("albert", NARROW), ("modernbert", PLAIN)]
)
def test_transform_held_to_transformers(kind, shape):
    models = pytest.importorskip("transformers", reason="transformers is not installed")
    name = {"bert": "Bert", "roberta": "Roberta", "albert": "Albert", "modernbert": "ModernBert"}[kind]
    sizes = {"vocab_size": 11, "hidden_size": 6, "num_attention_heads": 2, "intermediate_size": 8, "pad_token_id": 0}
    sizes |= {"num_hidden_layers": 1, "embedding_size": 4, "bos_token_id": 1, "eos_token_id": 2}
    whole = getattr(models, f"{name}ForMaskedLM")(getattr(models, f"{name}Config")(**sizes)).eval()
    for p in whole.parameters():
        nn.init.normal_(p)
    theirs, dense, norm = {
        "bert": lambda m: (m.cls, m.cls.predictions.transform.dense, m.cls.predictions.transform.LayerNorm),
        "roberta": lambda m: (m.lm_head, m.lm_head.dense, m.lm_head.layer_norm),
        "albert": lambda m: (m.predictions, m.predictions.dense, m.predictions.LayerNorm),
        "modernbert": lambda m: (nn.Sequential(m.head, m.decoder), m.head.dense, m.head.norm),
    }[kind](whole)
    rows = nn.Embedding.from_pretrained(whole.get_input_embeddings().weight.detach())
    ours = Transformed(
        shape,
        rows,
        lambda dim: nn.LayerNorm(dim, eps=norm.eps, bias=norm.bias is not None),
        dense_bias=dense.bias is not None,
        activation="gelu-tanh" if kind == "albert" else "gelu",
    )
    ours.dense.load_state_dict(dense.state_dict())
    ours.norm.load_state_dict(norm.state_dict())
    ours.logits.bias.data = whole.get_output_embeddings().bias.data
    x = torch.randn(2, 3, 6)
    torch.testing.assert_close(ours(x), theirs(x))


def test_a_pooler_is_a_transform_with_tanh_and_no_norm():
    """BERT-base without its head, with the pooler: 109,482,240 parameters."""
    parts = {
        "architecture": "encoder-only", "position": "learned", "residual": "post-norm",
        "embedding": {"name": "normed", "segments": 2}, "attention": {"name": "mha", "bias": True},
        "ffn": {"name": "gelu", "bias": True},
    }  # fmt: skip
    shape = {"d_model": 768, "n_heads": 12, "n_layers": 12, "d_ff": 3072, "vocab_size": 30522, "max_len": 512}
    counts = {}
    for head in ("tied", "transform", {"name": "transform", "activation": "tanh", "norm": "none", "bias": False}):
        with torch.device("meta"):
            model = build({**parts, "head": head}, shape=shape)
        counts[str(head)[:9]] = sum(p.numel() for p in model.parameters())
    assert [*counts.values()] == [109_482_240 - 768 * 769, 109_514_298, 109_482_240]
