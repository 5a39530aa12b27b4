"""`zoo.build` from Python: what may be written, what is said of a mistake, and what the module then is."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Annotated, Any

import pytest
import torch
from click.testing import CliRunner
from support.catalogue import offered
from torch import nn
from torch.testing import assert_close

import zoo
from zoo import SpecError, Variant
from zoo.cli import main
from zoo.declare import yaml
from zoo.model.cost import count_flops_per_token
from zoo.parts import Attention, AttentionContext, OutputProjection, Part, Shape
from zoo.testing import check_model
from zoo.testing.model_case import perturb
from zoo_plugins.ffn import Gated, Plain

SHAPE = {"d_model": 24, "n_heads": 4, "n_layers": 2, "vocab_size": 17, "max_len": 16}
SOURCE = torch.tensor([[4, 5, 6, 7], [8, 9, 10, 11]])
TARGET = torch.tensor([[12, 13, 14], [15, 16, 4]])


def built(model=None, seed=0, registry=None, **shape):
    """In float64 and eval mode, every parameter perturbed."""
    return perturb(zoo.build(model or {}, shape={**SHAPE, **shape}, seed=seed, registry=registry).double())


# what may be written


def test_names_and_mappings_are_one():
    by_name = zoo.build("llama-like", shape="quick")
    written = {
        "architecture": "decoder-only", "position": {"name": "rope", "base": 1e4}, "norm": "rmsnorm",
        "residual": "pre-norm", "ffn": "swiglu", "attention": {"name": "gqa", "kv_heads": 2},
    }  # fmt: skip
    shape = {"d_model": 64, "n_heads": 4, "n_layers": 2, "max_len": 64}
    by_mapping = zoo.build(written, shape=shape)
    assert_same_weights(by_name, by_mapping)
    changed = zoo.build({"like": "llama-like", "position": "alibi"}, shape={"like": "quick", "n_layers": 3})
    assert changed.decoder.depth == 3 and type(changed.decoder.positions[0]).__name__ == "Alibi"


def assert_same_weights(a, b):
    assert_close(dict(a.state_dict()), dict(b.state_dict()), atol=0, rtol=0)


@pytest.mark.parametrize("architecture", ["decoder-only", "encoder-only", "encoder-decoder"])
def test_calls(architecture):
    model = zoo.build({"architecture": architecture}, shape=SHAPE)
    assert isinstance(model, nn.Module)
    assert model(SOURCE, TARGET).shape == (2, 3, 17)
    assert model.states(SOURCE, TARGET).shape == (2, 3, 24)
    assert_close(model.head(model.states(SOURCE, TARGET)), model(SOURCE, TARGET))
    assert model(SOURCE[:, :0], TARGET).shape == (2, 3, 17)
    assert_close(model(None, TARGET), model(SOURCE[:, :0], TARGET))
    assert model(SOURCE, TARGET[:, :0]).shape == (2, 0, 17)
    assert model.read(SOURCE).shape == (2, 4, 17)
    assert model.generate(SOURCE, 5, stop=()).shape == (2, 5)
    assert model.generate(SOURCE, 0).shape == (2, 0)


@pytest.mark.parametrize("kernel", ["flash", "naive"])
def test_attention_named_by_its_kernel_is_short_for_both(kernel):
    short, long = built({"attention": kernel}), built({"attention": "mha", "kernel": kernel})
    assert repr(short) == repr(long)
    assert_close(short(SOURCE, TARGET), long(SOURCE, TARGET), atol=0, rtol=0)


def test_repr_shows_the_parts():
    shown = repr(zoo.build("llama-like", shape=SHAPE))
    assert shown.startswith("DecoderOnly(") and len(shown.splitlines()) < 60
    for part in ("Rope", "RMSNorm", "PreNorm", "Gated", "MultiHead", "Embedding(17, 24)"):
        assert part in shown


# what is said of a mistake

MISTAKES = """\
models:
  wrong:
    position: {name: rope, bass: 1.0}
    norm: rmsnrom
    attention: {name: gqa, kv_heads: 2.5}
    ffn: {first: [gelu]}
    hed: tied
"""


def test_all_faults_at_once_and_in_the_words_of_the_command(tmp_path):
    with pytest.raises(SpecError) as refusal:
        zoo.build(yaml.load(MISTAKES).value["models"]["wrong"], shape=SHAPE)
    said = [str(fault) for fault in refusal.value.faults]
    assert str(refusal.value).splitlines() == said
    assert said[:3] == [
        "model.position.bass: position 'rope' has no option 'bass'; did you mean 'base'?",
        "model.norm: no norm is called 'rmsnrom'; did you mean 'rmsnorm'?",
        "model.attention.kv_heads: attention 'gqa'.kv_heads is 2.5; it should be an integer or null",
    ]
    (tmp_path / "wrong.yaml").write_text(MISTAKES)
    result = CliRunner().invoke(main, ["validate", str(tmp_path / "wrong.yaml")])
    there = re.findall(r"wrong\.yaml:(\d+:\d+): (.*)", result.output)
    assert result.exit_code == 2 and len(said) == 5
    assert [text for _, text in there] == [text.partition(": ")[2] for text in said]
    assert [place for place, _ in there] == ["3:28", "4:11", "5:38", "6:10", "7:5"]


REFUSED = {
    "model is null": (None, {}),
    "no model is called 'lama-like'; did you mean 'llama-like'?": ("lama-like", {}),
    "share is true; it should be an integer of at least 1": ({"share": True}, {}),
    "architecture is a list; a model has one, not one per layer": ({"architecture": ["decoder-only"] * 2}, {}),
    "ffn is an empty list": ({"ffn": []}, {}),
    "beside 'first' and 'repeat' nothing else may stand": ({"ffn": {"repeat": ["gelu"], "fist": ["none"]}}, {}),
    "ffn says nothing of the decoder": ({"ffn": {"encoder": "gelu"}}, {}),
    "architecture 'decoder-only' has no encoder": ({"ffn": {"encoder": "gelu", "decoder": "relu"}}, {}),
    "decoder_layers is 0; it should be at least 1": (
        {"architecture": {"name": "encoder-decoder", "decoder_layers": 0}}, {}
    ),
    "architecture 'decoder-only' has no cross-attention": ({"cross": "mha"}, {}),
    "no attention of this model asks for a kernel": ({"attention": "none", "kernel": "naive"}, {}),
    "kernel 'flash': it does not support softcap, which is needed here; use 'additive', 'naive' or 'tiled'": (
        {"attention": {"name": "mha", "softcap": 2.0}, "kernel": "flash"}, {}
    ),
    "it does not support rotation, which position 'rope' needs": ({"attention": "none", "position": "rope"}, {}),
    "write 'cross:' with": ({"architecture": "encoder-decoder", "attention": "none"}, {}),
    "give head_dim in the shape": ({"position": "rope", "attention": {"name": "mha", "head_dim": 8}}, {}),
    "shape has no option 'd_modle'; did you mean 'd_model'?": ({}, {"d_modle": 24}),
    "n_heads 5 does not divide d_model 24": ({}, {"n_heads": 5}),
}  # fmt: skip


@pytest.mark.parametrize("said", REFUSED)
def test_what_cannot_be_is_refused_with_its_reason(said):
    model, shape = REFUSED[said]
    with pytest.raises(SpecError, match=re.escape(said)):
        zoo.build(model, shape={**SHAPE, **shape})


def test_a_task_that_the_architecture_cannot_express():
    with pytest.raises(SpecError, match="task: architecture 'encoder-decoder' reads a source, and task"):
        zoo.build("t5-like", shape=SHAPE, task="language-modeling")
    with pytest.raises(SpecError, match="asks its questions inside the target, which architecture 'encoder-only'"):
        zoo.build("bert-like", shape={**SHAPE, "max_len": 64}, task="associative-recall")
    assert zoo.build("gpt2-like", shape=SHAPE, task="language-modeling")


def test_calls_that_cannot_be():
    encoder = zoo.build("bert-like", shape=SHAPE)
    for call, said in {
        lambda: encoder(SOURCE, TARGET, aligned=True): r"an aligned target \[2, 3\] needs a source of its own size",
        lambda: encoder.generate(None, 3): "predicts its target from a source",
        lambda: encoder.generate(SOURCE, 3, prefix=TARGET): "cannot continue a prefix",
        lambda: encoder.start(SOURCE, room=2): "all its target tokens at once",
        lambda: zoo.build({}, shape=SHAPE).generate(None, -1): "n is -1",
        lambda: zoo.build({}, shape=SHAPE).read(SOURCE, segments=SOURCE): "has no segments",
    }.items():
        with pytest.raises(ValueError, match=said):
            call()


# the forms of a slot


def kinds(stack, step="ffn"):
    """What stands at each layer; a number counts the distinct modules."""
    return [type(getattr(stack.layers[i % len(stack.layers)], step, None)).__name__ for i in range(stack.depth)]


def test_a_list_repeats_and_first_stands_once():
    alternating = built({"ffn": ["gelu", "swiglu", "none"]}, n_layers=5)
    assert kinds(alternating.decoder) == ["Plain", "Gated", "NoneType", "Plain", "Gated"]
    led = built({"ffn": {"first": ["relu", "none", "relu2"], "repeat": ["swiglu", "gelu"]}}, n_layers=6)
    assert kinds(led.decoder) == ["Plain", "NoneType", "Plain", "Gated", "Plain", "Gated"]
    assert [led.decoder.layers[i].ffn.activation for i in (0, 2, 3, 4)] == ["relu", "relu2", "swish", "gelu"]


def test_a_step_that_is_none_leaves_no_norm():
    norms = [len(layer.residual.norms) for layer in built({"ffn": ["gelu", "none"]}).decoder.layers]
    assert norms == [2, 1]


def test_stacks_may_differ():
    given = {
        "architecture": {"name": "encoder-decoder", "decoder_layers": 3}, "ffn": {"encoder": "relu", "decoder": "glu"},
        "position": {"encoder": "learned", "decoder": ["rope", "none"]},
        "attention": {"encoder": "mha", "decoder": {"first": ["mqa"], "repeat": ["mha"]}}, "cross": "mqa",
    }  # fmt: skip
    model = built(given)
    assert (model.encoder.depth, model.decoder.depth) == (2, 3)
    assert set(kinds(model.encoder)) == {"Plain"} and set(kinds(model.decoder)) == {"Gated"}
    assert [layer.attention.k.out_features for layer in model.decoder.layers] == [6, 24, 24]
    assert {layer.cross.k.out_features for layer in model.decoder.layers} == {6}
    assert [type(p).__name__ for p in model.decoder.positions] == ["Rope", "NoPosition"]
    assert model.decoder.position_of == (0, 1, 0)


def test_shared_layers_are_the_layers_of_an_unrolled_model():
    shared, whole = built({"share": 2, "position": "rope"}, n_layers=5), built({"position": "rope"}, n_layers=5)
    assert len(shared.decoder.layers) == 2 and shared.decoder.depth == 5
    weights = shared.state_dict()
    layer = re.compile(r"layers\.(\d)\.")
    whole.load_state_dict(
        {name: weights[layer.sub(lambda m: f"layers.{int(m[1]) % 2}.", name)] for name in whole.state_dict()}
    )
    assert_close(shared(SOURCE, TARGET), whole(SOURCE, TARGET), atol=0, rtol=0)


def test_one_position_per_entry_of_a_list():
    one, two = built({"position": "t5-bias"}, n_layers=4), built({"position": ["t5-bias", "t5-bias"]}, n_layers=4)
    assert len(one.decoder.positions) == 1 and len(two.decoder.positions) == 2
    tables = [{p.data_ptr() for p in model.decoder.positions.parameters()} for model in (one, two)]
    assert [len(t) for t in tables] == [1, 2]
    for position in two.decoder.positions:
        position.load_state_dict(one.decoder.positions[0].state_dict())
    two.load_state_dict({**two.state_dict(), **one.state_dict()})
    assert_close(one(SOURCE, TARGET), two(SOURCE, TARGET))


def test_a_narrow_embedding_needs_no_heads_that_divide_it():
    for position in ("sinusoidal", "learned", "rope"):
        model = built({"position": position}, d_embed=10)
        assert model(SOURCE, TARGET).shape == (2, 3, 17)
    assert model.decoder.embedding.table.weight.shape == (17, 10)


# parts in options


class Doubled(nn.Module):
    """Twice what an inner step says."""

    def __init__(self, *, inner: Annotated[Any, Part("ffn")] = "relu", times: float = 2.0):
        super().__init__()
        self.inner, self.times = inner(), times

    def forward(self, x, ctx):
        return self.times * self.inner(x, ctx)


class Narrow(nn.Module):
    """An inner step of another width."""

    def __init__(self, shape: Shape, *, inner: Annotated[Any, Part("ffn")] = "doubled"):
        super().__init__()
        self.inner = inner(shape=replace(shape, d_ff=10))

    def forward(self, x, ctx):
        return self.inner(x, ctx)


class SideBySide(Attention):
    """The sum of two attentions, each with a cell of its own."""

    supports = frozenset({"rotation", "bias", "cross", "bidirectional"})

    def __init__(
        self, *, one: Annotated[Any, Part("attention")] = "mha", other: Annotated[Any, Part("attention")] = "mqa"
    ):
        super().__init__()
        self.one, self.other = one(), other()

    def forward(self, x, memory, ctx: AttentionContext):
        ones, others = (replace(ctx, cell=ctx.cell.inner(key)) for key in ("one", "other"))
        return self.one(x, memory, ones) + self.other(x, memory, others)


class Tilted(Attention):
    """An inner attention with one more bias, a learned slope per head of this layer."""

    supports = frozenset({"rotation", "bias", "cross", "bidirectional"})

    def __init__(self, shape: Shape, *, inner: Annotated[Any, Part("attention")] = "mha"):
        super().__init__()
        self.inner, self.slope = inner(), nn.Parameter(torch.zeros(shape.n_heads, 1, 1))

    def forward(self, x, memory, ctx):
        own = self.slope * (ctx.q_at[:, None, :, None] - ctx.k_at[:, None, None, :])
        return self.inner(x, memory, replace(ctx, bias=own if ctx.bias is None else ctx.bias + own))


class Forwards(Attention):
    """Each token becomes its predecessors' mean; it learns where it stands and says what torch cannot count."""

    supports = frozenset()

    def __init__(self, layer):
        super().__init__()
        self.causal = layer.causal

    def forward(self, x, memory, ctx):
        return x.cumsum(1) / torch.arange(1, x.shape[1] + 1, device=x.device)[:, None]

    def uncounted(self, tokens):
        return 1000 * tokens


OWN = offered(
    Variant("attention", "forwards", Forwards),
    Variant("attention", "tilted", Tilted),
    Variant("ffn", "doubled", Doubled),
    Variant("ffn", "narrow", Narrow),
    Variant("attention", "side-by-side", SideBySide),
)


def test_a_part_inside_an_option():
    model = built({"ffn": {"name": "doubled", "inner": {"name": "gelu", "d_ff": 12}}}, registry=OWN)
    inner = model.decoder.layers[0].ffn.inner
    assert isinstance(inner, Plain) and inner.activation == "gelu" and inner.up.out_features == 12
    plain = built({"ffn": {"name": "gelu", "d_ff": 12}})
    plain.load_state_dict({name.replace("ffn.inner.", "ffn."): p for name, p in model.state_dict().items()})
    x = torch.randn(2, 3, 24, dtype=torch.float64)
    assert_close(model.decoder.layers[0].ffn(x, None), 2 * plain.decoder.layers[0].ffn(x, None))
    nested = built({"ffn": {"name": "doubled", "inner": {"name": "doubled", "inner": "swiglu"}}}, registry=OWN)
    assert isinstance(nested.decoder.layers[1].ffn.inner.inner, Gated)
    assert isinstance(built({"ffn": "doubled"}, registry=OWN).decoder.layers[0].ffn.inner, Plain)


def test_an_inner_part_gets_what_its_owner_changed():
    """So does a part inside that one."""
    model = built({"ffn": "narrow"}, registry=OWN)
    assert model.decoder.layers[0].ffn.inner.inner.up.out_features == 10


def test_the_inner_output_projection_starts_small_too():
    model = zoo.build({"ffn": "doubled"}, shape={**SHAPE, "d_model": 96, "n_layers": 8}, registry=OWN)
    inner = model.decoder.layers[0].ffn.inner
    assert isinstance(inner.down, OutputProjection)
    assert inner.down.weight.std().item() == pytest.approx(384**-0.5 / 16**0.5, rel=0.05)


def test_parts_inside_options_with_caches_and_kernels():
    sides = {"name": "side-by-side", "other": {"name": "gqa", "kv_heads": 2, "window": 2}}
    check_model({"attention": sides, "position": "rope"}, registry=OWN)
    check_model({"attention": sides, "architecture": "encoder-decoder", "position": "alibi"}, registry=OWN)


def test_a_mixer_that_looks_back_only_cannot_serve_an_encoder():
    said = (
        "'forwards': it does not support bidirectional, which the encoder of architecture 'encoder-only' needs; .*'mha'"
    )
    with pytest.raises(SpecError, match=said):
        built({"architecture": "encoder-only", "attention": "forwards"}, registry=OWN)
    with pytest.raises(SpecError) as refusal:
        built({"architecture": "encoder-decoder", "attention": "forwards", "position": "rope"}, registry=OWN)
    said = [str(fault) for fault in refusal.value.faults]
    lacks = [text.partition("it does not support ")[2].split()[0].strip(";,") for text in said]
    assert lacks == ["bidirectional", "rotation", "cross"]
    one_each = {"encoder": "mha", "decoder": "forwards"}
    model = built({"architecture": "encoder-decoder", "attention": one_each, "cross": "mha"}, registry=OWN)
    assert model.decoder.layers[0].attention.causal


def test_what_torch_cannot_count_is_added_at_every_call():
    """Also where one layer is used twice, and for all the tokens that a stack reads."""
    task = SimpleNamespace(source_len=4, target_len=5, aligned=False)
    own, torchs = {}, {}
    for share in (1, 2):
        model = {"attention": "forwards", "share": share}
        own[share] = count_flops_per_token(zoo.build(model, shape=SHAPE, registry=OWN).to("meta"), task)
        torchs[share] = count_flops_per_token(zoo.build({**model, "attention": "none"}, shape=SHAPE).to("meta"), task)
    assert own[1] - torchs[1] == own[2] - torchs[2] == 2 * 1000 * (4 + 5) / 5


@pytest.mark.parametrize("position", ["none", "alibi"])
def test_every_layer_sees_the_bias_that_it_was_given(position):
    """What a kernel makes of bias and mask is made once per pass, but not from another layer's bias."""
    check_model({"attention": "tilted", "position": position, "kernel": "flash"}, registry=OWN)


@pytest.mark.parametrize(
    "inner, said",
    [
        ({"name": "gelu", "width": 3}, "model.ffn.inner.width: ffn 'gelu' has no option 'width'"),
        ("geluu", "model.ffn.inner: no ffn is called 'geluu'; did you mean 'gelu'?"),
        ({"name": "gelu", "d_ff": 0}, "model.ffn.inner: ffn 'gelu': d_ff is 0; it should be at least 1"),
        (3, "model.ffn.inner: ffn is 3; it should be a name, or a mapping with a 'name'"),
    ],
)
def test_faults_inside_options_say_where(inner, said):
    with pytest.raises(SpecError, match=re.escape(said)):
        zoo.build({"ffn": {"name": "doubled", "inner": inner}}, shape=SHAPE, registry=OWN)


def test_an_inner_attention_is_held_to_its_place():
    sides = {"name": "side-by-side", "one": {"name": "mha", "softcap": 2.0}}
    with pytest.raises(SpecError, match="kernel 'flash': it does not support softcap"):
        zoo.build({"attention": sides, "kernel": "flash"}, shape=SHAPE, registry=OWN)


# initial weights


def test_weights_come_from_the_seed_and_leave_the_global_generator_alone():
    before = torch.random.get_rng_state()
    one, again, other = (zoo.build("t5-like", shape=SHAPE, seed=seed) for seed in (3, 3, 4))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert_same_weights(one, again)
    matrices = [name for name, p in one.named_parameters() if p.ndim == 2]
    assert all(not torch.equal(one.get_parameter(name), other.get_parameter(name)) for name in matrices)
    torch.manual_seed(99)
    assert_same_weights(one, zoo.build("t5-like", shape=SHAPE, seed=3))


@pytest.mark.parametrize(
    "change",
    [{"position": "rope"}, {"position": "learned"}, {"norm": "rmsnorm"}, {"attention": "mqa"}, {"ffn": "swiglu"},
     {"head": "untied"}, {"residual": "sandwich-norm"}, {"ffn": "none"}, {"attention": {"name": "mha", "bias": True}}],
    ids=str,
)  # fmt: skip
def test_variants_start_equal_wherever_their_shapes_agree(change):
    one, other = (zoo.build(model, shape=SHAPE) for model in ({"norm": "layernorm"}, change))
    state = other.state_dict()
    both = {name for name, p in one.named_parameters() if name in state and state[name].shape == p.shape and p.ndim > 1}
    assert len(both) >= 7
    for name in both:
        assert torch.equal(one.get_parameter(name), state[name]), name


def test_initial_sizes():
    """Tables 0.4 width^-0.5, linears fan_in^-0.5, and (2 L)^-0.5 of that where the residual stream is written."""
    model = zoo.build({"head": "untied"}, shape={**SHAPE, "d_model": 128, "n_layers": 8, "vocab_size": 500})
    layer = model.decoder.layers[3]
    for weight, expected in {
        layer.attention.q.weight: 128**-0.5,
        layer.attention.out.weight: 128**-0.5 / 4,
        layer.ffn.up.weight: 128**-0.5,
        layer.ffn.down.weight: 512**-0.5 / 4,
        model.head.table.weight: 0.4 * 128**-0.5,
    }.items():
        assert weight.std().item() == pytest.approx(expected, rel=0.02)
    deep = zoo.build({"residual": "deepnorm", "norm": "layernorm"}, shape={**SHAPE, "d_model": 128, "n_layers": 8})
    beta = (8 * 8) ** -0.25
    assert deep.decoder.layers[0].ffn.down.weight.std().item() == pytest.approx(512**-0.5 * beta**2, rel=0.02)


# use


@torch.no_grad()
def test_dropout_acts_on_the_embedded_input_and_on_every_step():
    bare = zoo.build({"attention": "none", "ffn": "none", "norm": "none"}, shape={**SHAPE, "dropout": 0.5})
    x = bare.eval().states(None, TARGET)
    ratio = bare.train().states(None, TARGET) / x
    assert set(ratio.round(decimals=4).unique().tolist()) == {0.0, 2.0}

    model, calls = zoo.build("t5-like", shape={**SHAPE, "dropout": 0.5}), []
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.register_forward_hook(lambda module, given, got: calls.append(module.p))
    model(SOURCE, TARGET)
    assert calls == [0.5] * ((1 + 2 * 2) + (1 + 2 * 3))


@pytest.mark.parametrize("architecture", ["decoder-only", "encoder-decoder"])
@pytest.mark.parametrize("padded", [False, True])
@torch.no_grad()
def test_a_reordered_cache_goes_on_with_the_rows_it_was_given(architecture, padded):
    """What beam search needs: rows are dropped, repeated and moved, and one becomes several."""
    model = built({"architecture": architecture, "position": "rope"})
    source = torch.tensor([[4, 5, 6, 7], [8, 9, 10, 11], [5, 7, 9, 11]])
    keep = torch.tensor([[1, 1, 1, 1], [0, 0, 1, 1], [0, 1, 1, 1]], dtype=torch.bool) if padded else None
    first, then = (
        torch.tensor([[1, 12, 13], [1, 14, 15], [1, 16, 4]]),
        torch.tensor([[5, 6], [7, 8], [9, 10], [11, 12]]),
    )
    rows = torch.tensor([2, 0, 0, 1])
    cache = model.start(source, keep, room=5)
    model.step(cache, first)
    cache.reorder(rows)
    got = model.step(cache, then)
    target = torch.cat([first[rows][:, 1:], then, then[:, :1]], 1)
    whole = model(source[rows], target, source_keep=None if keep is None else keep[rows])
    assert_close(got, whole[:, 3:5])
    alone = model.start(source[:1], None if keep is None else keep[:1], room=5)
    model.step(alone, first[:1])
    alone.reorder(torch.zeros(4, dtype=torch.long))
    expected = model(source[[0] * 4], torch.cat([first[[0] * 4][:, 1:], then, then[:, :1]], 1))
    assert_close(model.step(alone, then), expected[:, 3:5])


def test_writing_leaves_every_module_in_its_mode():
    for model in (zoo.build("gpt2-like", shape={**SHAPE, "dropout": 0.5}), zoo.build("bert-like", shape=SHAPE)):
        frozen = next(m for m in model.modules() if isinstance(m, nn.Linear)).eval()
        written = [model.generate(SOURCE, 3) for _ in range(2)]
        assert torch.equal(*written)
        assert model.training and not frozen.training


EVERY_POSITION = {"position": ["sinusoidal", "learned", "rope", "alibi", "t5-bias"]}


@pytest.mark.parametrize(
    "model", [EVERY_POSITION, "bert-like", "t5-like"], ids=["decoder-only", "bert-like", "t5-like"]
)
def test_a_model_compiles_to_one_graph(model):
    plain = built(model, n_layers=5 if model is EVERY_POSITION else 1)
    torch._dynamo.reset()
    compiled = torch.compile(plain, fullgraph=True, backend="eager")
    keep = torch.tensor([[False, True, True, True], [True] * 4])
    assert_close(compiled(SOURCE, TARGET, source_keep=keep), plain(SOURCE, TARGET, source_keep=keep))


# against torch


def copied(theirs: nn.MultiheadAttention, ours) -> None:
    q, k, v = (getattr(ours, name) for name in "qkv")
    theirs.in_proj_weight.copy_(torch.cat([q.weight, k.weight, v.weight]))
    theirs.in_proj_bias.copy_(torch.cat([q.bias, k.bias, v.bias]))
    theirs.out_proj.load_state_dict(ours.out.state_dict())


def torch_layers(stack, kind: type[nn.Module], first: bool, activation: str) -> nn.ModuleList:
    """Torch's own layers with a stack's weights."""
    layers = nn.ModuleList()
    for ours in stack.layers:
        layer = kind(24, 4, 40, 0.0, activation, batch_first=True, norm_first=first, dtype=torch.float64).eval()
        copied(layer.self_attn, ours.attention)
        layer.linear1.load_state_dict(ours.ffn.up.state_dict())
        layer.linear2.load_state_dict(ours.ffn.down.state_dict())
        if hasattr(layer, "multihead_attn"):
            copied(layer.multihead_attn, ours.cross)
        for i, norm in enumerate(ours.residual.norms):
            getattr(layer, f"norm{i + 1}").load_state_dict(norm.state_dict())
        layers.append(layer)
    return layers


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("residual", ["pre-norm", "post-norm"])
@torch.no_grad()
def test_encoder_and_decoder_are_torchs(residual, activation):
    model = built(
        {
            "architecture": "encoder-decoder", "embedding": "plain", "position": "none", "norm": "layernorm",
            "residual": residual, "ffn": {"name": activation, "bias": True, "d_ff": 40},
            "attention": {"name": "mha", "bias": True},
        }
    )  # fmt: skip
    first = residual == "pre-norm"
    keep = torch.tensor([[True] * 4, [True, True, False, False]])
    memory = model.encoder.embedding.table(SOURCE)
    for layer in torch_layers(model.encoder, nn.TransformerEncoderLayer, first, activation):
        memory = layer(memory, src_key_padding_mask=~keep)
    memory = model.encoder.final(memory)
    assert isinstance(model.encoder.final, nn.Identity) is not first
    ours = model.encoder(SOURCE, keep)
    assert_close(ours[keep], memory[keep], atol=1e-10, rtol=0)

    inputs = torch.cat([torch.full_like(TARGET[:, :1], model.shape.bos), TARGET[:, :-1]], 1)
    x = model.decoder.embedding.table(inputs)
    causal = nn.Transformer.generate_square_subsequent_mask(3, dtype=torch.float64)
    for layer in torch_layers(model.decoder, nn.TransformerDecoderLayer, first, activation):
        x = layer(x, memory, tgt_mask=causal, memory_key_padding_mask=~keep)
    logits = model.decoder.final(x) @ model.head.table.weight.T
    assert_close(model(SOURCE, TARGET, source_keep=keep), logits, atol=1e-10, rtol=0)
