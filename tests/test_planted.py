"""A test of the tests: each bug that is planted here must make the check fail that is meant to find it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import pytest
import torch
import torch.nn.functional as F
from plugged import offered
from torch import nn

import zoo.generate
import zoo.measure
import zoo.stack
import zoo_plugins.architecture
import zoo_plugins.kernel
from zoo import SpecError, Variant
from zoo.cache import Cache, Cell
from zoo.context import Mask
from zoo.parts import Attention, OutLinear, Shape
from zoo.stack import Stack
from zoo.testing import CHECKS, Case, check_variant
from zoo_plugins.ffn import Gated
from zoo_plugins.head import Logits
from zoo_plugins.kernel import Flash
from zoo_plugins.norm import LayerNorm, RMSNorm


class Bug(NamedTuple):
    """What is replaced (a class or a module, and a name in it), by what the original is turned into."""

    check: str
    model: dict
    owner: object
    name: str
    broken: Callable[[Callable], Callable]


def wider(dense):
    return lambda mask, q_at, k_at: dense(replace(mask, window=mask.window and mask.window + 1), q_at, k_at)


def leaking(dense):
    def one_further(mask, q_at, k_at):
        see = dense(mask, q_at, k_at)
        return see if see is None else see | see.roll(1, -1)

    return one_further


def blind_to(**forgotten):
    """A kernel that forgets something of what it is told."""
    return lambda forward: lambda self, q, k, v, ctx: forward(self, q, k, v, replace(ctx, **forgotten))


def from_the_first_key(forward):
    def broken(self, q, k, v, ctx):
        causal = ctx.mask.plain and ctx.mask.causal
        return F.scaled_dot_product_attention(q, k, v, attn_mask=None if causal else ctx.see(), is_causal=causal)

    return broken


def unguarded(forward):
    """-inf where looking is forbidden, and nothing for a row in which all is."""

    def broken(self, q, k, v, ctx):
        scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
        see = ctx.see()
        return (scores if see is None else scores.masked_fill(~see, -torch.inf)).softmax(-1) @ v

    return broken


def unsaved(init):
    def broken(self, dim, **options):
        init(self, dim, **options)
        self.eps = torch.rand(()).item()

    return broken


class Reread(NamedTuple):
    """The cell of a layer that finds what the first one remembers."""

    cell: Cell

    def grow(self, *new):
        return tuple(buffer[:, :, : self.cell.length] for buffer in self.cell.buffers)


def mixed(cell):
    return lambda self, layer, step: cell(self, 0, step) if layer == 0 else Reread(cell(self, 0, step))


def untying(apply):
    def broken(self, fn, recurse=True):
        apply(self, fn, recurse)
        self.table = copy.deepcopy(self.table)
        return self

    return broken


def without(*keywords):
    return lambda f: lambda *args, **given: f(*args, **{k: v for k, v in given.items() if k not in keywords})


def after(change):
    return lambda forward: lambda self, x, *rest: change(forward(self, x, *rest))


def before(change):
    return lambda forward: lambda self, x, *rest: forward(self, change(x), *rest)


def tiling(_):
    return lambda x, n_heads: x.repeat(1, n_heads // x.shape[1], 1, 1)


def twice(shift):
    return lambda target, keep, bos: shift(shift(target, keep, bos), keep, bos)


def uncounted(count):
    return lambda ids, keep, seen=0: count(ids, None, seen)


def unpadded(across):
    return lambda self, at, memory, keep, *rest: across(self, at, memory, None, *rest)


DECODER = {"architecture": "decoder-only", "position": "rope", "norm": "rmsnorm", "ffn": "swiglu", "kernel": "naive"}
CROSSED = {"architecture": "encoder-decoder", "position": "learned", "kernel": "naive"}
GROUPED = {**DECODER, "attention": {"name": "gqa", "kv_heads": 2}}
CENTRED = {**DECODER, "norm": "layernorm"}
BIASED = {**DECODER, "position": "alibi"}
SCALED = {**DECODER, "attention": {"name": "mha", "scale": 1.0}}
FAST = {**DECODER, "kernel": "flash"}
WINDOWED = {**DECODER, "attention": {"name": "mha", "window": 3}}

BUGS = {
    "not-a-number": Bug("runs", DECODER, Logits, "forward", after(lambda logits: (logits - 9).log())),
    "gate-unused": Bug("gradients", DECODER, Gated, "forward", lambda _: lambda self, x, ctx: self.down(self.up(x))),
    "heads-tiled": Bug("kernels", GROUPED, zoo_plugins.kernel, "spread", tiling),
    "bias-dropped-by-the-fast-path": Bug("kernels", BIASED, Flash, "forward", blind_to(bias=None)),
    "scale-dropped": Bug("kernels", SCALED, Flash, "forward", blind_to(scale=None)),
    "one-token-ahead": Bug("future", DECODER, Mask, "dense", leaking),
    "norm-over-time": Bug("future", CENTRED, LayerNorm, "forward", before(lambda x: x - x.mean(1, keepdim=True))),
    "shifted-twice": Bug("future", DECODER, zoo_plugins.architecture, "shift", twice),
    "window-one-too-wide": Bug("window", WINDOWED, Mask, "dense", wider),
    "positions-restarted": Bug("decoding", DECODER, Cache, "seen", lambda _: lambda self: 0),
    "shared-layers-share-a-cache": Bug("decoding", {**DECODER, "share": 1}, Cache, "cell", mixed),
    "causal-from-the-first-key": Bug("decoding", FAST, Flash, "forward", from_the_first_key),
    "loss-of-pads": Bug("padding", DECODER, zoo.measure, "weighed", lambda _: lambda nll, weight: nll.sum()),
    "pads-have-positions": Bug("padding", DECODER, zoo.stack, "count", uncounted),
    "pads-of-the-source-are-read": Bug("padding", CROSSED, Stack, "across", unpadded),
    "a-row-that-sees-nothing": Bug("padding", CROSSED, zoo_plugins.kernel.Naive, "forward", unguarded),
    "norm-over-rows": Bug("rows", CENTRED, LayerNorm, "forward", before(lambda x: x - x.mean(0))),
    "dropout-in-eval": Bug("dropout", DECODER, nn.Dropout, "forward", lambda _: lambda self, x: F.dropout(x, self.p)),
    "dropout-of-weights-in-eval": Bug("dropout", FAST, Flash, "forward", blind_to(dropout=0.5)),
    "no-dropout": Bug("dropout", DECODER, nn.Dropout, "forward", lambda _: lambda self, x: x),
    "state-not-saved": Bug("round_trip", DECODER, RMSNorm, "__init__", unsaved),
    "untied-by-a-move": Bug("copies", DECODER, Logits, "_apply", untying),
    "slope-reversed": Bug("learning", DECODER, Logits, "forward", after(lambda logits: 2 * logits.detach() - logits)),
    "logits-too-large": Bug("untrained", DECODER, Logits, "forward", after(lambda logits: 50 * logits)),
    "pads-of-the-prefix-are-read": Bug("generation", DECODER, zoo.generate, "generate", without("prefix_keep")),
    "nothing-ends-a-row": Bug("generation", DECODER, zoo.generate, "generate", without("stop")),
}


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found(name, monkeypatch):
    bug = BUGS[name]
    check = CHECKS[bug.check]
    assert check(Case.of(bug.model)) is None, "the sound twin passes"
    monkeypatch.setattr(bug.owner, bug.name, bug.broken(getattr(bug.owner, bug.name)))
    with pytest.raises(AssertionError) as found:
        check(Case.of(bug.model))
    assert "should" in str(found.value) and '"architecture"' in str(found.value)


def test_every_check_finds_a_bug():
    assert {bug.check for bug in BUGS.values()} == set(CHECKS)


class RunningMean(Attention):
    """The mean of what was read so far: a mixer that takes no kernel, and remembers a sum and a count."""

    honours = frozenset({"two-way"})

    def __init__(self, shape: Shape, *, counts_pads: bool = False):
        super().__init__()
        self.counts_pads = counts_pads
        self.v = nn.Linear(shape.d_model, shape.d_model, bias=False)
        self.out = OutLinear(shape.d_model, shape.d_model, bias=False)

    def forward(self, x, memory, ctx):
        real = torch.ones_like(x[..., :1])
        if ctx.new_keep is not None and not self.counts_pads:
            real = real * ctx.new_keep[..., None]
        total, count = (self.v(x) * real).cumsum(1), real.cumsum(1)
        if not ctx.mask.causal:
            total, count = total[:, -1:], count[:, -1:]
        if (before := ctx.cell.recall()) is not None:
            total, count = total + before[0], count + before[1]
        ctx.cell.store(total[:, -1:], count[:, -1:])
        return self.out(total / count.clamp(min=1)).expand_as(x)


MIXERS = offered(Variant("attention", "running-mean", RunningMean))


def test_a_variant_of_ones_own_among_partners():
    results = check_variant("attention", "running-mean", registry=MIXERS, counts_pads=False)
    assert set(CHECKS) <= {result.check for result in results}
    assert {"decoder-only", "encoder-only"} <= {
        part for r in results for part in ("decoder-only", "encoder-only") if part in "".join(r.partners)
    }
    assert {r.check for r in results if r.reason == "it takes no kernel"} == {"kernels"}


def test_a_broken_variant_among_partners():
    with pytest.raises(AssertionError, match="Sources were padded") as found:
        check_variant("attention", "running-mean", registry=MIXERS, counts_pads=True)
    assert '"counts_pads": true' in str(found.value)
    refused = "No partner takes attention:running-mean(.|\\n)*has no option 'count_pads'"
    with pytest.raises(AssertionError, match=refused):
        check_variant("attention", "running-mean", registry=MIXERS, count_pads=True)
    with pytest.raises(SpecError, match="nothing is held of the slot 'atention'; did you mean 'attention'"):
        check_variant("atention", "running-mean", registry=MIXERS)
