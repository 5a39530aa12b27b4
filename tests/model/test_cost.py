"""FLOPs by hand: causal rows, windows, shared key heads, cross-attention and heads, whichever kernel computes them."""

import types

import pytest
import torch

import zoo
from zoo.model.cost import count_flops_per_token, count_pairs
from zoo.parts import Mask

D, H, L, T, V, F = 32, 4, 2, 12, 50, 64
SHAPE = {"d_model": D, "n_heads": H, "n_layers": L, "max_len": T, "vocab_size": V, "d_ff": F}
FFN, HEAD = 2 * 2 * D * F, 2 * D * V


def counted(model, source=0):
    task = types.SimpleNamespace(source_len=source, target_len=T, aligned=model.get("architecture") == "encoder-only")
    return count_flops_per_token(zoo.build({"ffn": "relu", **model}, shape=SHAPE).to("meta"), task)


def layer(seen, key_heads=H):
    """One token's share: queries and output, keys and values of fewer heads, scores and sums, FFN."""
    return 2 * 2 * D * D + 2 * 2 * D * D * key_heads // H + 2 * 2 * seen * D + FFN


@pytest.mark.parametrize("kernel", ["naive", "flash", "tiled", "auto", {"name": "tiled", "block": 5}])
@pytest.mark.parametrize("attention, heads", [("mha", H), ({"name": "gqa", "kv_heads": 2}, 2), ("mqa", 1)])
def test_a_causal_row(kernel, attention, heads):
    assert counted({"attention": attention, "kernel": kernel}) == L * layer((T + 1) / 2, heads) + HEAD


@pytest.mark.parametrize("kernel", ["naive", "flash", "tiled"])
def test_a_window(kernel):
    """Tokens see 1, 2, 3, 4, 4, 4, … keys: 42 pairs of 12 tokens."""
    assert counted({"attention": {"name": "mha", "window": 4}, "kernel": kernel}) == L * layer(42 / T) + HEAD


def test_heads_and_both_ways():
    causal = L * layer((T + 1) / 2)
    assert counted({"head": "untied"}) == counted({"head": "tied"}) == causal + HEAD
    assert counted({"architecture": "encoder-only"}, source=T) == L * layer(T) + HEAD
    cross = 2 * 4 * D * D + 2 * 2 * T * D  # the source is as long as the target
    assert counted({"architecture": "encoder-decoder"}, source=T) == L * layer(T) + causal + L * cross + HEAD


@pytest.mark.parametrize("mask", [Mask(), Mask(causal=True), Mask(window=3), Mask(causal=True, window=3)])
@pytest.mark.parametrize("queries, keys", [(7, 7), (2, 7), (1, 4), (5, 5)])
def test_pairs_are_those_of_the_dense_mask(mask, queries, keys):
    at = torch.arange(keys)[None]
    dense = mask.dense(at[:, keys - queries :], at)
    assert count_pairs(mask, queries, keys) == (queries * keys if dense is None else int(dense.sum()))
