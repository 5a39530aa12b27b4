"""Every variant of every slot of a model, side by side at one shape: the defaults, with one slot varied."""

from __future__ import annotations

from functools import cache

import pytest
import torch
import torch.nn.functional as F
from race import in_turns, race, show

from zoo import SpecError, build
from zoo.declare.library import open_library
from zoo.declare.spec import MODEL_SLOTS
from zoo.parts import AttentionContext, Mask, Position, Shape, Uncached

pytestmark = in_turns

ROUNDS = 15
SHAPE = {"d_model": 128, "n_heads": 4, "n_layers": 2, "max_len": 128, "vocab_size": 1024}
BATCH, LENGTH = 4, 128
OPTIONS = {("attention", "gqa"): {"kv_heads": 2}}
LIBRARY = open_library()
DEFAULTS = {slot: node.plain() for slot, node in LIBRARY.section("defaults").items()}
SLOTS = [slot for slot in MODEL_SLOTS if slot != "cross"]
VARIANTS = [(slot, entry.variant.name) for slot in SLOTS for entry in LIBRARY.registry.variants(slot)]
PASSES = ("forward", "forward and backward")


def passes(slot: str, name: str) -> dict:
    """The two passes over one batch of a model with this variant. Raises `SpecError` if it cannot stand alone."""
    model = build({slot: {"name": name, **OPTIONS.get((slot, name), {})}}, shape=SHAPE)
    generator = torch.Generator().manual_seed(0)
    source, target = (torch.randint(4, 1024, (BATCH, LENGTH // n), generator=generator) for n in (2, 2))

    def forward():
        with torch.no_grad():
            model.eval()(source, target)

    def both():
        model.zero_grad()
        F.cross_entropy(model.train()(source, target).flatten(0, 1), target.flatten()).backward()

    return {(name, PASSES[0]): lambda: forward, (name, PASSES[1]): lambda: both}


@cache
def timed(slot: str) -> dict[tuple[str, str], list[float]]:
    makers = {}
    for other, name in VARIANTS:
        if other == slot:
            try:
                makers |= passes(slot, name)
            except SpecError:
                continue
    return race(makers, ROUNDS)


@pytest.mark.parametrize("which", PASSES)
@pytest.mark.parametrize("slot, name", VARIANTS)
def test_variant(benchmark, slot, name, which):
    seconds = {variant: times for (variant, done), times in timed(slot).items() if done == which}
    if name not in seconds:
        pytest.skip("it does not go with the defaults")
    show(benchmark, f"{slot}, {which}", name, seconds, DEFAULTS[slot])


KERNELS = [entry.variant.name for entry in LIBRARY.registry.variants("kernel")]


@cache
def attended(length: int) -> dict[str, list[float]]:
    """Causal attention alone, forward and backward: one row, 4 heads of 32."""
    at = torch.arange(length)[None]
    q, k, v = (torch.randn(1, 4, length, 32, requires_grad=True) for _ in range(3))
    makers = {}
    for name in KERNELS:
        kernel = LIBRARY.registry.load(LIBRARY.registry.find("kernel", name))(4, 32, ())

        def both(kernel=kernel):
            told = AttentionContext(Position(Shape()), at, at, Mask(causal=True), Uncached())
            kernel(q, k, v, told).sum().backward()

        makers[name] = lambda both=both: both
    return race(makers, ROUNDS)


@pytest.mark.parametrize("length", [128, 512, 1024])
@pytest.mark.parametrize("name", KERNELS)
def test_kernel(benchmark, name, length):
    show(benchmark, f"kernel alone, {length} tokens", name, attended(length), "naive")
