"""Embeddings: kinds of tokens, and the order of positions, norm and the way up, held to transformers' own modules."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from zoo import SpecError, build
from zoo.parts import Shape
from zoo_plugins.embedding import Tokens

PLAIN = Shape(d_model=6, n_heads=2, vocab_size=11)
NARROW = Shape(d_model=6, n_heads=2, vocab_size=11, d_embed=4)
IDS = torch.tensor([[3, 0, 10], [1, 1, 2]])
KINDS = torch.tensor([[0, 1, 1], [1, 0, 1]])


def made(shape: Shape, **options) -> Tokens:
    torch.manual_seed(0)
    table = nn.Embedding(shape.vocab_size, shape.embed_width)
    embedding = Tokens(shape, table, lambda dim: nn.LayerNorm(dim, eps=0.01), **options)
    for p in embedding.parameters():
        nn.init.normal_(p)
    return embedding


def test_a_kind_is_added_to_the_scaled_vector():
    embedding = made(NARROW, segments=2)
    x, _ = embedding.look_up(IDS, None, KINDS)
    assert_close(x[0, 1], 2 * embedding.table.weight[0] + embedding.segments.weight[1])
    assert_close(x[1, 1], 2 * embedding.table.weight[1] + embedding.segments.weight[0])


def test_all_tokens_are_of_the_first_kind_where_nobody_says():
    embedding = made(PLAIN, segments=2)
    assert torch.equal(embedding.look_up(IDS, None, None)[0], embedding.look_up(IDS, None, torch.zeros_like(IDS))[0])
    assert made(PLAIN).segments is None


def test_a_negative_number_of_kinds_is_refused():
    with pytest.raises(ValueError, match="segments is -1"):
        made(PLAIN, segments=-1)


@pytest.mark.parametrize("positions, width", [("narrow", 4), ("wide", 6)])
def test_where_positions_and_norm_stand(positions, width):
    embedding = made(NARROW, scale=False, normed=True, positions=positions, bias=True)
    assert embedding.width == width and embedding.norm.weight.shape == (width,)
    place = torch.randn(1, 3, width)
    x, _ = embedding.look_up(IDS, None, None)
    rows, up, norm = embedding.table(IDS), embedding.up, embedding.norm
    right = norm(up(rows) + place) if positions == "wide" else up(norm(rows + place))
    assert_close(embedding.finish(x + place), right)


def test_the_way_up_has_a_bias_if_asked():
    assert made(NARROW).up.bias is None and made(NARROW, bias=True).up.bias.shape == (6,)


def test_segments_reach_the_embedding_through_a_model():
    parts = {"architecture": "encoder-only", "embedding": {"name": "normed", "segments": 2}}
    model = build(parts, shape={"d_model": 24, "n_heads": 4, "n_layers": 1, "vocab_size": 11}).eval()
    plain, told = model.read(IDS), model.read(IDS, segments=KINDS)
    assert torch.equal(plain, model.read(IDS, segments=torch.zeros_like(IDS)))
    assert not torch.allclose(plain, told, atol=1e-3)


def test_a_norm_of_its_own():
    parts = {"norm": "layernorm", "embedding": {"name": "normed", "norm": {"name": "rmsnorm", "eps": 0.5}}}
    model = build(parts, shape={"d_model": 8, "n_heads": 2, "n_layers": 1, "vocab_size": 11})
    assert type(model.decoder.embedding.norm).__name__ == "RMSNorm" and model.decoder.embedding.norm.eps == 0.5
    assert type(model.decoder.final).__name__ == "LayerNorm"


def test_impossible_options_are_faults_where_they_stand():
    with pytest.raises(SpecError, match="embedding 'normed': segments is -2"):
        build({"embedding": {"name": "normed", "segments": -2}}, shape="quick")


def positions(theirs: nn.Module) -> torch.Tensor:
    return theirs.position_embeddings.weight[: IDS.shape[1]]


@pytest.mark.parametrize("kind, shape", [("bert", PLAIN), ("albert", NARROW)])
def test_held_to_transformers(kind, shape):
    """BERT's embeddings: words, kinds and positions, then a norm; ALBERT's are narrow and have a way up."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    sizes = {"vocab_size": 11, "hidden_size": 6, "num_attention_heads": 2, "intermediate_size": 8, "pad_token_id": 0}
    sizes |= {"num_hidden_layers": 1, "layer_norm_eps": 0.01, "max_position_embeddings": 8, "embedding_size": 4}
    model = {"bert": transformers.BertModel, "albert": transformers.AlbertModel}[kind]
    reference = model(model.config_class(**sizes)).eval()
    theirs, above = reference.embeddings, getattr(reference.encoder, "embedding_hidden_mapping_in", nn.Identity())
    for p in reference.parameters():
        nn.init.normal_(p)
    ours = made(shape, scale=False, normed=True, segments=2, bias=True)
    ours.table.weight.data = theirs.word_embeddings.weight.data
    ours.segments.weight.data = theirs.token_type_embeddings.weight.data
    ours.norm.load_state_dict(theirs.LayerNorm.state_dict())
    ours.up.load_state_dict(above.state_dict())
    x, _ = ours.look_up(IDS, None, KINDS)
    assert_close(ours.finish(x + positions(theirs)), above(theirs(IDS, KINDS)))
