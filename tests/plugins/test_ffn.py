"""FFNs, held to torch's modules, to math.erf and to the formulas of Shazeer 2020."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from zoo import build
from zoo.declare.shape import Shape
from zoo.parts import NoStep, OutputProjection
from zoo_plugins.ffn import ACTIVATIONS, Gated, Plain, hidden_width, nothing

SHAPE = Shape(d_model=12, n_heads=3)
LINE = torch.linspace(-4, 4, 1601, dtype=torch.float64)


def phi(x: float) -> float:
    return 0.5 * (1 + math.erf(x / math.sqrt(2)))


SCALAR = {
    "identity": lambda x: x,
    "relu": lambda x: max(x, 0.0),
    "relu2": lambda x: max(x, 0.0) ** 2,
    "gelu": lambda x: x * phi(x),
    "gelu-tanh": lambda x: 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "tanh": math.tanh,
    "swish": lambda x: x / (1 + math.exp(-x)),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation_formulas(name):
    right = torch.tensor([SCALAR[name](x) for x in LINE.tolist()], dtype=torch.float64)
    assert_close(ACTIVATIONS[name](LINE), right)


def test_exact_gelu_and_its_approximation_are_two_names():
    """FFN-2: they differ by up to 4.7e-4 on -4..4."""
    assert_close(ACTIVATIONS["gelu"](LINE), nn.GELU()(LINE))
    assert_close(ACTIVATIONS["gelu-tanh"](LINE), nn.GELU(approximate="tanh")(LINE))
    gap = (ACTIVATIONS["gelu"](LINE) - ACTIVATIONS["gelu-tanh"](LINE)).abs().max().item()
    assert gap == pytest.approx(4.7e-4, rel=0.02)


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("bias", [False, True])
def test_plain(name, bias):
    ffn, x = Plain(SHAPE, activation=name, d_ff=20, bias=bias).double(), torch.randn(2, 3, 12).double()
    hidden = x @ ffn.up.weight.T + (ffn.up.bias if bias else 0)
    right = hidden.detach().clone().apply_(SCALAR[name]) @ ffn.down.weight.T + (ffn.down.bias if bias else 0)
    assert_close(ffn(x, None), right)


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("bias", [False, True])
def test_gated(name, bias):
    """The activation acts on the gate alone: (act(x W) * x V) W2 (Shazeer 2020, equations 4 to 6)."""
    ffn, x = Gated(SHAPE, activation=name, d_ff=20, bias=bias).double(), torch.randn(2, 3, 12).double()
    gate = x @ ffn.gate.weight.T + (ffn.gate.bias if bias else 0)
    up = x @ ffn.up.weight.T + (ffn.up.bias if bias else 0)
    right = (gate.detach().clone().apply_(SCALAR[name]) * up) @ ffn.down.weight.T + (ffn.down.bias if bias else 0)
    assert_close(ffn(x, None), right)


def test_parameters():
    plain, gated = Plain(SHAPE, activation="relu"), Gated(SHAPE, activation="relu", bias=True)
    assert {name: tuple(p.shape) for name, p in plain.named_parameters()} == {
        "up.weight": (48, 12),
        "down.weight": (12, 48),
    }
    assert {name: tuple(p.shape) for name, p in gated.named_parameters()} == {
        "up.weight": (32, 12), "gate.weight": (32, 12), "down.weight": (12, 32),
        "up.bias": (32,), "gate.bias": (32,), "down.bias": (12,),
    }  # fmt: skip
    assert isinstance(plain.down, OutputProjection) and isinstance(gated.down, OutputProjection)
    assert not isinstance(plain.up, OutputProjection) and not isinstance(gated.gate, OutputProjection)


@pytest.mark.parametrize(
    "d_model, ratio, width",
    [
        (512, 8 / 3, 1368),  # 1365.33 rounded up
        (384, 8 / 3, 1024),  # exact, and stays so
        (64, 4.0, 256),
        (200, 2.2, 440),  # 440.00000000000006 in floating point
        (5, 4.0, 24),
        (1, 0.01, 8),
        (4096, 8 / 3, 10928),
    ],
)
def test_ratio_is_rounded_up_to_a_multiple_of_8(d_model, ratio, width):
    assert hidden_width(Shape(d_model=d_model, n_heads=1), None, ratio) == width


def test_explicit_widths_win_and_are_not_rounded():
    shape = Shape(d_model=12, n_heads=3, d_ff=17)
    assert hidden_width(shape, 13, 4.0) == 13
    assert hidden_width(shape, None, 4.0) == 17
    for make in (Plain, Gated):
        assert make(shape, activation="relu", d_ff=13, ratio=2.0).up.out_features == 13
        assert make(shape, activation="relu", ratio=2.0).up.out_features == 17
        assert make(SHAPE, activation="relu", ratio=2.0).up.out_features == 24


@pytest.mark.parametrize("d_model", [96, 384, 768])
def test_gated_and_plain_have_equally_many_parameters(d_model):
    shape = Shape(d_model=d_model, n_heads=1)
    plain, gated = (sum(p.numel() for p in m(shape, activation="relu").parameters()) for m in (Plain, Gated))
    assert plain == gated == 8 * d_model**2


@pytest.mark.parametrize("make", [Plain, Gated])
@pytest.mark.parametrize("option, value", [("d_ff", 0), ("d_ff", -8), ("ratio", 0.0), ("ratio", -1.0)])
def test_impossible_sizes(make, option, value):
    with pytest.raises(ValueError, match=f"{option} is {value}"):
        make(SHAPE, activation="relu", **{option: value})


def test_each_token_is_treated_alone():
    for make in (Plain, Gated):
        ffn, x = make(SHAPE, activation="gelu"), torch.randn(2, 5, 12)
        assert_close(ffn(x, None)[:, 3], ffn(x[:, 3], None))


def test_repr_names_the_activation():
    assert "gelu-tanh" in repr(Plain(SHAPE, activation="gelu-tanh"))
    assert "swish" in repr(Gated(SHAPE, activation="swish"))


def test_nothing_is_absent():
    assert isinstance(nothing(), NoStep)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_compiles_to_one_graph(name):
    ffn, x = Gated(SHAPE, activation=name), torch.randn(1, 2, 12)
    assert_close(torch.compile(ffn, fullgraph=True, backend="eager")(x, None), ffn(x, None))


@pytest.mark.parametrize("name, act", [("geglu-tanh", "gelu_new"), ("geglu", "gelu"), ("swiglu", "silu")])
def test_gated_names_held_to_transformers(name, act):
    reason = "transformers is not installed"
    t5 = pytest.importorskip("transformers.models.t5.modeling_t5", reason=reason)
    config = pytest.importorskip("transformers", reason=reason).T5Config(
        d_model=12, d_ff=20, feed_forward_proj="gated-gelu"
    )
    config.dense_act_fn = act
    theirs, x = t5.T5DenseGatedActDense(config).eval(), torch.randn(2, 3, 12)
    model = build({"ffn": {"name": name, "d_ff": 20}}, shape={"d_model": 12, "n_heads": 3, "n_layers": 1})
    ours = model.decoder.layers[0].ffn
    ours.load_state_dict(
        {f"{a}.weight": getattr(theirs, b).weight for a, b in (("gate", "wi_0"), ("up", "wi_1"), ("down", "wo"))}
    )
    assert_close(ours(x, None), theirs(x))
