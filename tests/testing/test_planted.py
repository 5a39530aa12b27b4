"""A test of the tests: each bug that is planted here must make the check fail that is meant to find it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from support import planted
from support.catalogue import offered
from torch import nn

from zoo import SpecError, Variant
from zoo.parts import Attention, OutputProjection, Shape
from zoo.testing import CHECKS, check_variant
from zoo.testing.suites import SUITES, load_suite

PAGE = Path(__file__).parents[2] / "docs" / "planted.md"


@pytest.mark.parametrize("name", planted.BUGS)
def test_a_planted_bug_is_found(name):
    found = planted.tried(name)
    assert "should" in found and len(found.split()) > 8


def test_every_check_finds_a_bug():
    """Whatever slot it is held of."""
    checks = {(SUITES[slot], check) for slot in SUITES for check in load_suite(slot).checks}
    slots = [(planted.slot_of(bug), bug.check) for bug in planted.BUGS.values()]
    assert checks == {(SUITES[slot], check) for slot, check in slots}


def test_the_table_is_what_the_page_says():
    assert PAGE.read_text() == planted.table(), "write it anew: make planted"


class RunningMean(Attention):
    """The mean of what was read so far: a mixer that takes no kernel, and remembers a sum and a count."""

    supports = frozenset({"bidirectional"})

    def __init__(self, shape: Shape, *, counts_pads: bool = False):
        super().__init__()
        self.counts_pads = counts_pads
        self.v = nn.Linear(shape.d_model, shape.d_model, bias=False)
        self.out = OutputProjection(shape.d_model, shape.d_model, bias=False)

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
    (alone,) = check_variant("attention", "running-mean", registry=MIXERS, partners=1, only=["kernels"])
    assert alone.reason == "it takes no kernel"


def test_a_broken_variant_among_partners():
    with pytest.raises(AssertionError, match="Sources were padded") as found:
        check_variant("attention", "running-mean", registry=MIXERS, counts_pads=True)
    assert '"counts_pads": true' in str(found.value)
    refused = "No partner takes attention:running-mean(.|\\n)*has no option 'count_pads'"
    with pytest.raises(AssertionError, match=refused):
        check_variant("attention", "running-mean", registry=MIXERS, count_pads=True)
    with pytest.raises(SpecError, match="there are no checks for the slot 'atention'; did you mean 'attention'"):
        check_variant("atention", "running-mean", registry=MIXERS)
