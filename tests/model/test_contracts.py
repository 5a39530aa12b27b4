"""Every variant in the catalogue, with every other, held to what any model must do.

The default suite covers all pairs of variants of different slots; the marker `exhaustive` covers the whole product.
"""

from __future__ import annotations

import itertools
from functools import cache

import pytest
import torch

from zoo import SpecError, build
from zoo.declare import signature
from zoo.declare.yaml import load
from zoo.model.stack import Layer, Stack
from zoo.parts import Kernel, NoStep, Shape, required_support
from zoo.registry import discover
from zoo.testing import CHECKS, SHAPES, ModelCase, check_model
from zoo.testing.model_case import compute_gradients, compute_mean_nll

REGISTRY = discover(plugins=False)
SLOTS = ("architecture", "position", "norm", "residual", "ffn", "attention", "kernel", "embedding", "head")
# What the name alone would not show: groups of more than one head, and more than one block.
OPTIONS = {
    ("attention", "gqa"): {"kv_heads": 2}, ("attention", "linear"): {"chunk": 3}, ("kernel", "tiled"): {"block": 3},
}  # fmt: skip
VALUES = {slot: [entry.variant.name for entry in REGISTRY.variants(slot)] for slot in SLOTS}
VALUES["kernel"].insert(0, None)  # not written: the model's default, or the attention's own
VALUES["shape"] = list(SHAPES)


def written(row: dict) -> dict:
    """The model of a row, as a user would write it."""
    parts = {slot: name for slot, name in row.items() if slot != "shape" and name is not None}
    options = {slot: OPTIONS.get((slot, name)) for slot, name in parts.items()}
    return {slot: {"name": name, **options[slot]} if options[slot] else name for slot, name in parts.items()}


def named(row: dict) -> str:
    return " ".join(str(v) for v in row.values() if v is not None)


@cache
def layer(slot: str, name: str) -> tuple[Stack, Layer]:
    """The last stack, and a layer of it, of a model with this variant and the defaults elsewhere."""
    stack = [m for m in ModelCase.of(written({slot: name})).model.modules() if isinstance(m, Stack)][-1]
    return stack, stack.layers[0]


@cache
def supports(slot: str, name: str) -> frozenset:
    """What an attention or a kernel can carry; nothing where there is none."""
    found = layer(slot, name)[1]
    if slot == "kernel":
        return next(m for m in found.modules() if isinstance(m, Kernel)).supports
    return getattr(found, "attention", NoStep()).supports


def needs(position: str) -> frozenset:
    return required_support(type(layer("position", position)[0].positions[0]))


@cache
def takes_a_kernel(attention: str) -> bool:
    entry = REGISTRY.find("attention", attention)
    return "kernel" in signature.read(REGISTRY.load(entry), "attention", entry.variant.fixed).options


@cache
def crosses(architecture: str) -> bool:
    return "cross" in layer("architecture", architecture)[1].steps


@cache
def forward_only(architecture: str) -> bool:
    """Whether all its stacks are causal."""
    model = ModelCase.of(written({"architecture": architecture})).model
    return all(m.causal for m in model.modules() if isinstance(m, Stack))


def reasons(row: dict) -> list[str]:
    """What the facts of the parts in a row, or in a part of one, forbid: pieces of the refusal."""
    architecture, position, attention, kernel, shape = map(
        row.get, ("architecture", "position", "attention", "kernel", "shape")
    )
    found = []
    if attention and position and (lacking := needs(position) - supports("attention", attention)):
        what = " and ".join(sorted(lacking))
        found.append(f"attention '{attention}': it does not support {what}, which position '{position}'")
    if attention and architecture:
        able = supports("attention", attention)
        if crosses(architecture) and "cross" not in able:
            found.append(f"attention '{attention}': it does not support cross; write 'cross:' with")
        if not forward_only(architecture) and "bidirectional" not in able:
            found.append(f"attention '{attention}': it does not support bidirectional, which the encoder of")
    if attention and kernel and not takes_a_kernel(attention):
        found.append(f"kernel '{kernel}': no attention of this model asks for a kernel")
    if kernel and position and needs(position) & ({"bias"} - supports("kernel", kernel)):
        found.append(f"kernel '{kernel}': it does not support bias")
    if kernel and architecture and crosses(architecture) and "cross" not in supports("kernel", kernel):
        found.append(f"kernel '{kernel}': it does not support cross")
    if shape and position and "rotation" in needs(position) and Shape(**SHAPES[shape]).head_width % 2:
        found.append("only pairs can be rotated")
    return found


PAIRS = [
    {a: x, b: y} for a, b in itertools.combinations(VALUES, 2) for x, y in itertools.product(VALUES[a], VALUES[b])
]  # fmt: skip
REFUSED = [pair for pair in PAIRS if reasons(pair)]


def pairwise() -> list[dict]:
    """Rows that hold, together, every pair of values that is not refused: greedy, each as many new ones as it can."""
    left = {frozenset(pair.items()): None for pair in PAIRS if not reasons(pair)}
    rows = []
    while left:
        row = dict(next(iter(left)))
        for slot in sorted((s for s in VALUES if s not in row), key=lambda s: -len(VALUES[s])):
            possible = [value for value in VALUES[slot] if not reasons({**row, slot: value})]
            row[slot] = max(possible, key=lambda v: sum(frozenset({(slot, v), old}) in left for old in row.items()))
        for pair in itertools.combinations(row.items(), 2):
            left.pop(frozenset(pair), None)
        rows.append({slot: row[slot] for slot in VALUES})
    return rows


ROWS = pairwise()
WRITTEN = load("""
per-head:    {attention: {name: mha, bias: true, qk_norm: head, window: 3}, norm: {name: layernorm, eps: 0.01}}
capped:
  position:  {name: rope, fraction: 0.34, pairing: interleaved}
  norm:      {name: rmsnorm, unit_offset: true, eps: 0.01}
  attention: {name: gqa, kv_heads: 2, bias: [q, v, out], qk_norm: full, softcap: 3.0}
  kernel:    {name: tiled, block: 2}
  head:      {name: tied, bias: true, softcap: 5.0}
windowed-encoder:
  architecture: encoder-only
  position:  alibi
  attention: {name: mqa, head_dim: 7, window: 2}
  residual:  {name: parallel, per_step: true}
  ffn:       {name: gelu, bias: true, d_ff: 10}
scaled:
  embedding: {name: normed, scale: false}
  position:  {name: learned, offset: 2}
  attention: {name: mha, dropout: 0.5, scale: 0.3}
  ffn:       {name: swiglu, ratio: 1.1, bias: true}
by-stack:
  architecture: {name: encoder-decoder, decoder_layers: 3}
  position:  {encoder: sinusoidal, decoder: t5-bias}
  norm:      {name: layernorm, bias: false}
  attention: {encoder: {name: mha, sinks: true}, decoder: [mqa, {name: mha, window: 2}]}
  cross:     {name: gqa, kv_heads: 2, bias: true}
cross-alone: {architecture: encoder-decoder, position: learned, attention: none, cross: mha, ffn: [relu, none]}
shared:      {share: 1, position: {name: t5-bias, buckets: 4, max_distance: 5}, residual: deepnorm}
first-apart:
  position:  {first: [none], repeat: [rope]}
  norm:      {name: layernorm, affine: false}
  attention: {first: [none], repeat: [{name: mha, window: 3}]}
  head:      {name: untied, bias: true, scale: 0.5}
both-ways:
  architecture: encoder-decoder
  attention: {encoder: {name: gru, width: 7}, decoder: [lstm, mamba, rnn]}
  cross:     mha
  kernel:    additive
state-space:
  attention: {name: mamba, d_state: 3, d_conv: 3, expand: 1, dt_rank: 5}
  norm:      rmsnorm
  ffn:       none
summed:
  architecture: encoder-decoder
  attention: {encoder: linear, decoder: [{name: linear, chunk: 2}, {name: mamba, d_conv: 1}, {name: lstm, width: 5}]}
  cross:     linear
additive:
  position:  t5-bias
  attention: {name: gqa, kv_heads: 2, softcap: 2.0, window: 4, sinks: true, scale: 0.7, dropout: 0.2}
  kernel:    additive
bare-first:
  position:  {name: rope-yarn, factor: 4.0, beta_fast: 2.0, beta_slow: 0.25, truncate: false, pairing: interleaved}
  norm:      {name: layernorm, unit_offset: true, bias: false}
  residual:  {first: [{name: pre-norm, bare: 1}], repeat: [{name: layerscale, init: 0.5}, rezero]}
narrow-table:
  architecture: encoder-only
  embedding: {name: normed, segments: 2, bias: true, scale: false}
  position:  {name: sinusoidal, pairing: half}
  residual:  post-norm
  head:      {name: transform, activation: gelu-tanh, dense_bias: false, norm: rmsnorm}
wide-positions: {embedding: {name: scaled, positions: wide, segments: 1}, position: learned, norm: {name: dyt, alpha: 0.9}}
""").value  # options and forms of which a name alone says nothing


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_pairs_of_variants(row):
    # Without a norm, nothing brings back to size what this layout multiplies in every layer: a step of experts then
    # makes logits of 1e25, in which the rounding of two kernels is no longer small.
    grows = row["norm"] == "none" and row["residual"] == "deepnorm"
    # At first this layout hands on what was read, which a tied head names.
    echoes = row["residual"] == "rezero" and row["head"] == "tied"
    without = ["untrained"] * (grows or echoes) + ["kernels"] * (grows and row["ffn"].startswith("moe"))
    check_model(written(row), SHAPES[row["shape"]], without=without, registry=REGISTRY)


@pytest.mark.parametrize("name", WRITTEN)
def test_options_and_forms(name):
    shape = SHAPES["factorised" if "embedding" in WRITTEN[name] else "even"]
    check_model(WRITTEN[name], shape, registry=REGISTRY)


@pytest.mark.parametrize("pair", REFUSED, ids=named)
def test_what_cannot_work_is_refused(pair):
    with pytest.raises(SpecError) as refusal:
        build(written(pair), shape=SHAPES[pair.get("shape", "even")], registry=REGISTRY)
    assert all(reason in str(refusal.value) for reason in reasons(pair)), refusal.value


def test_every_pair_is_built_or_refused():
    built = {frozenset(pair) for row in ROWS for pair in itertools.combinations(row.items(), 2)}
    refused = {frozenset(pair.items()) for pair in REFUSED}
    assert not built & refused
    assert built | refused == {frozenset(pair.items()) for pair in PAIRS}
    assert frozenset({("attention", "none"), ("position", "rope")}) in refused
    assert len(refused) < len(PAIRS) / 10


def test_a_window_is_seen():
    assert CHECKS["window"](ModelCase.of({"attention": "mha"})) == "its attention has no window"
    for name in ("per-head", "windowed-encoder"):
        assert CHECKS["window"](ModelCase.of(WRITTEN[name])) is None


OUTER = ("architecture", "position", "norm", "residual")
INNER = ("ffn", "attention", "embedding", "head")
SHALLOW = {**SHAPES["even"], "n_layers": 1}  # the pairs stand in deeper models


def kind(slot: str, name: str) -> tuple:
    """What tells a variant from those of its slot in more than a number or an elementwise function: its module's
    class, and the options that it is given here.
    """
    stack, own = layer(slot, name)
    module = {"position": stack.positions[0], "embedding": stack.embedding, "head": name, "architecture": name}
    found = module.get(slot, getattr(own, slot, None))
    return found if isinstance(found, str) else type(found), str(OPTIONS.get((slot, name)))


def kinds(slot: str) -> list[str]:
    """One variant of each kind; those of one kind stand in the pairs."""
    if slot in ("norm", "residual"):
        return VALUES[slot]
    # The last of a kind stands for it; a name that settles the kernel would hide the others.
    ordered = sorted(VALUES[slot], key=lambda name: slot == "attention" and takes_a_kernel(name))
    return list({kind(slot, name): name for name in ordered}.values())


@pytest.mark.exhaustive
@pytest.mark.parametrize("outer", list(itertools.product(*map(kinds, OUTER))), ids=" ".join)
def test_every_combination(outer):
    """The whole product of kinds, with every kernel on the same weights."""
    faults = {}
    for inner in itertools.product(*map(kinds, INNER)):
        row = dict(zip(OUTER + INNER, outer + inner, strict=True))
        try:
            if reasons(row):
                refused(row)
            else:
                works(row)
        except Exception as error:
            faults[named(row)] = f"{type(error).__name__}: {error}"
    assert not faults, f"{len(faults)} combinations fail, the first: {next(iter(faults.items()))}"


def refused(row: dict) -> None:
    with pytest.raises(SpecError) as refusal:
        ModelCase.of(written(row), SHALLOW, REGISTRY)
    assert all(reason in str(refusal.value) for reason in reasons(row)), refusal.value


def works(row: dict) -> None:
    """It builds, learns by a step, sees no future, reads on from a cache, and every kernel gives the same."""
    case = ModelCase.of(written(row), SHALLOW, REGISTRY)
    model = case.model
    source, target = case.draw(1, 4, seed=1).expand(2, -1), case.draw(1, 5, seed=2).repeat(2, 1)
    target[1, 2] = 5 if target[0, 2] != 5 else 6
    step(model, source, target)
    with torch.no_grad():
        logits = model(source, target)
        blind = 3 if model.autoregressive else 5
        case.check_equal(logits[1, :blind], logits[0, :blind], "Target token 2 became another", "the logits before")
        if model.autoregressive:
            assert not torch.equal(logits[1, 3], logits[0, 3]), "the logits after target token 2 should see it"
            cache = model.start(source, room=5)
            ids = torch.cat([torch.full_like(target[:, :1], model.shape.bos), target[:, :-1]], 1)
            steps = [model.step(cache, part) for part in ids.split([2, 1, 2], 1)]
            case.check_equal(torch.cat(steps, 1), logits, "The target was read in steps", "the logits")
        for kernel in VALUES["kernel"][1:] if takes_a_kernel(row["attention"]) else ():
            made = kernels(row["architecture"], row["position"], row["attention"], kernel)
            if any(True for module in made.values() for _ in module.parameters()):
                continue  # weights of its own make it another function
            for name, module in made.items():
                model.set_submodule(name, module)
            case.check_equal(model(source, target), logits, f"The kernel became '{kernel}'", "the logits")


@cache
def kernels(architecture: str, position: str, attention: str, kernel: str) -> dict[str, Kernel]:
    """The kernels of a model, by their places. Nothing but these four choices bears on them."""
    row = {"architecture": architecture, "position": position, "attention": attention, "kernel": kernel}
    model = ModelCase.of(written(row), SHALLOW, REGISTRY).model
    return {name: module for name, module in model.named_modules() if isinstance(module, Kernel)}


def step(model, source, target) -> None:
    """A step down the gradient, which every parameter has, lowers the loss."""
    before = compute_mean_nll(model, source, target)
    found = compute_gradients(model, before)
    dead = [name for name, g in found.items() if g is None or not g.isfinite().all()]
    assert not dead, f"{dead} have no gradient"
    after = [fallen(model, source, target, found, fall) for fall in (0.01, 1e-4)]
    assert min(after) < before, f"the loss went from {before} to {after}"


@torch.no_grad()
def fallen(model, source, target, slopes, fall) -> float:
    """The loss beyond a step that should lower it by `fall`; a long one may send a token to another expert."""
    size = fall / sum(g.square().sum() for g in slopes.values())
    start = {name: model.get_parameter(name).clone() for name in slopes}
    for name, g in slopes.items():
        model.get_parameter(name).sub_(size * g)
    after = compute_mean_nll(model, source, target).item()
    for name, x in start.items():
        model.get_parameter(name).copy_(x)
    return after
