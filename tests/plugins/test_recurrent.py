"""Recurrent networks against torch's own."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from support.contexts import context, keep
from torch import nn
from torch.testing import assert_close

import zoo
from zoo import SpecError
from zoo.model.cost import count_flops, count_kv_bytes_per_token
from zoo.parts import Cell as Memory
from zoo.parts import Place, Shape, Uncached
from zoo.testing import CHECKS, ModelCase
from zoo.testing.model_case import perturb
from zoo_plugins import recurrent
from zoo_plugins.recurrent import Recurrent

CELLS = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}
B, T, D, W = 3, 8, 6, 5
PADDED = {
    "left": keep("11111111", "..111111", ".......1"),
    "right": keep("11111111", "111111..", "1......."),
    "holes": keep("11111111", "1.11.1.1", ".1...1.."),
    "a row of pads": keep("11111111", "........", "1111...."),
}


def mixer(cell: str, causal: bool = True, width: int = W) -> Recurrent:
    place = Place("decoder", 0, {"decoder": 1}, causal)
    return perturb(Recurrent(Shape(d_model=D, n_heads=2), place, cell=cell, width=width).double())


def drawn(*size: int) -> torch.Tensor:
    return torch.randn(*size, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def theirs(ours: Recurrent, cell: str) -> nn.RNNBase:
    """Torch's module with our weights."""
    made = CELLS[cell](D, W, batch_first=True, bidirectional=len(ours.cells) == 2).double()
    with torch.no_grad():
        for own, side in zip(ours.cells, ("", "_reverse"), strict=False):
            parts = {"weight_ih": own.input.weight, "weight_hh": own.hidden.weight, "bias_ih": own.bias}
            for name, value in parts.items():
                getattr(made, f"{name}_l0{side}").copy_(value)
            getattr(made, f"bias_hh_l0{side}").zero_()
            if cell == "gru":
                getattr(made, f"bias_hh_l0{side}")[2 * W :] = own.candidate
    return made


@pytest.mark.parametrize("way", ["fused", "step by step"])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("cell", CELLS)
def test_it_is_torchs(cell, causal, way, monkeypatch):
    if way == "step by step":
        every = torch.ones(B, T, dtype=torch.bool)
        monkeypatch.setattr(recurrent.Cell, "forward", lambda self, x, state, *_: self.scan(x, zeros(self, x), every))
    ours, x = mixer(cell, causal), drawn(B, T, D)
    hidden, _ = theirs(ours, cell)(x)
    assert_close(ours(x, x, context(T, T, causal=causal)), hidden @ ours.out.weight.T)


def zeros(cell, x):
    return (x.new_zeros(x.shape[0], cell.width),) * cell.kept


@pytest.mark.parametrize("cell", CELLS)
def test_torchs_loop_and_ours_have_the_same_states_and_gradients(cell):
    """In float32, where torch has loops of its own for some."""
    own = mixer(cell).float().cells[0]
    x, before = drawn(B, T, D).float(), tuple(drawn(B, W).float() / 2 for _ in range(own.kept))
    every = torch.ones(B, T, dtype=torch.bool)
    found = []
    for run in (lambda x: own.fused(x, *before), lambda x: own.scan(x, before, every)):
        moving = x.clone().requires_grad_()
        out, state = run(moving)
        loss = out.square().sum() + state[-1].sum()
        found.append([out, *state, *torch.autograd.grad(loss, [moving, *own.parameters()])])
    assert_close(found[0], found[1], atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize("padded", PADDED)
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("cell", CELLS)
def test_a_padded_row_is_the_row_alone(cell, causal, padded):
    ours, x, real = mixer(cell, causal), drawn(B, T, D), PADDED[padded]
    for memory in [Uncached(), *([Memory(T)] if causal else [])]:
        out = ours(x, x, context(T, T, causal=causal, keep=real, new_keep=real, cell=memory))
        assert out.isfinite().all()
        for row in range(B):
            alone, own = x[row : row + 1, real[row]], Memory(T)
            n = alone.shape[1]
            assert_close(out[row, real[row]], ours(alone, alone, context(n, n, causal=causal, cell=own))[0])
            if memory.recall() is not None:
                states = zip(memory.recall(), own.recall(), strict=True)
                for together, apart in states:
                    assert_close(together[row : row + 1], apart)


@pytest.mark.parametrize("cell, vectors", [("rnn", 1), ("lstm", 2), ("gru", 1)])
def test_what_is_remembered_has_one_size(cell, vectors):
    ours = mixer(cell)
    for length in (1, 5, 40):
        memory, x = Memory(length), drawn(B, length, D)
        ours(x, x, context(length, length, causal=True, cell=memory))
        assert [list(s.shape) for s in memory.tensors()] == [[B, W]] * vectors
    model = zoo.build({"attention": cell}, shape="quick")
    task = SimpleNamespace(source_len=0, target_len=9, aligned=False)
    assert count_kv_bytes_per_token(model.to("meta"), task) == 0


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_flops_are_those_of_the_maps(cell, device):
    """With and without weights, though torch's own loop is closed to its counter."""
    n, gates = 7, {"rnn": 1, "lstm": 4, "gru": 3}[cell]
    shape = {"d_model": 12, "n_heads": 2, "n_layers": 1, "vocab_size": 17, "max_len": n}
    model = zoo.build({"attention": {"name": cell, "width": W}, "ffn": "none"}, shape=shape).to(device)
    ids = torch.zeros(1, n, dtype=torch.long, device=device)
    assert count_flops(model, None, ids) == 2 * n * (gates * W * (12 + W) + W * 12 + 12 * 17)


def test_an_lstm_begins_by_remembering():
    model = zoo.build({"attention": "lstm"}, shape={"d_model": 6, "n_heads": 2, "n_layers": 1, "vocab_size": 9})
    assert model.decoder.layers[0].attention.cells[0].bias.tolist() == [0.0] * 6 + [1.0] * 6 + [0.0] * 12


def test_only_a_stack_that_is_not_causal_reads_backwards():
    model = zoo.build({"architecture": "encoder-decoder", "attention": "gru", "cross": "mha"}, shape="quick")
    cells = [len(stack.layers[0].attention.cells) for stack in (model.encoder, model.decoder)]
    assert cells == [2, 1] and model.encoder.layers[0].attention.out.in_features == 128


REFUSED = {
    "width is 0; it should be at least 1": {"attention": {"name": "rnn", "width": 0}},
    "attention 'lstm': it does not support rotation": {"attention": "lstm", "position": "rope"},
    "attention 'gru': it does not support bias": {"attention": "gru", "position": "alibi"},
    "attention 'gru': it does not support cross; write 'cross:' with": {
        "attention": "gru", "architecture": "encoder-decoder"
    },
    "no attention of this model asks for a kernel": {"attention": "rnn", "kernel": "naive"},
    "attention 'lstm' has no option 'cell'": {"attention": {"name": "lstm", "cell": "gru"}},
}  # fmt: skip


@pytest.mark.parametrize("said", REFUSED)
def test_where_it_cannot_serve(said):
    with pytest.raises(SpecError, match=said):
        zoo.build(REFUSED[said], shape="quick")


# Planted bugs


def advanced_by_pads(forward):
    return lambda self, x, state, keep, ends: forward(self, x, state, None, ends)


def state_of_the_last_slot(forward):
    """The loop without holds, over what was brought together: right outputs, and a state that the pads moved."""

    def broken(self, x, state, keep, ends):
        if keep is None or not ends:
            return forward(self, x, state, keep, ends)
        order = recurrent.real_first(keep)
        out, state = forward(self, recurrent.take(x, order), state, None, ends)
        return recurrent.take(out, order.argsort(1)), state

    return broken


def both_ways(init):
    def broken(self, shape, layer, **options):
        init(self, shape, Place(layer.stack, layer.index, layer.depths, False), **options)

    return broken


def uncarried(self, x, memory, ctx):
    return self.out(self.cells[0](x, None, ctx.new_keep, True)[0])


BUGS = {
    "state-not-carried": ("decoding", "decoder-only", recurrent.Recurrent, "forward", lambda forward: uncarried),
    "pads-advance-the-state": ("padding", "decoder-only", recurrent.Cell, "forward", advanced_by_pads),
    "pads-advance-what-is-kept": ("decoding", "decoder-only", recurrent.Cell, "forward", state_of_the_last_slot),
    "a-causal-stack-reads-backwards": ("future", "decoder-only", recurrent.Recurrent, "__init__", both_ways),
}


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found(name, cell, monkeypatch):
    check, architecture, owner, attribute, broken = BUGS[name]
    model = {"attention": cell, "architecture": architecture}
    assert CHECKS[check](ModelCase.of(model)) is None
    monkeypatch.setattr(owner, attribute, broken(getattr(owner, attribute)))
    with pytest.raises(AssertionError, match="should"):
        CHECKS[check](ModelCase.of(model))
