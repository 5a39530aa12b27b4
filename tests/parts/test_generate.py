"""Writing: a cache changes nothing, each row ends where it would alone, and every option has defined edges."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from support.models import POSITIONS, built, ids
from support.scripted import Scripted
from torch.testing import assert_close

from zoo.parts.generate import generate, greedy, sample


def written_without_a_cache(model, prefix, n, choose):
    text, told = torch.cat([torch.full_like(prefix[:, :1], model.shape.bos), prefix], 1), []
    for _ in range(n):
        told.append(model.read(text)[:, -1])
        text = torch.cat([text, choose(told[-1])[:, None]], 1)
    return text[:, -n:], torch.stack(told)


@pytest.mark.parametrize("attention", ["mha", "mqa", {"name": "gqa", "kv_heads": 2}], ids=str)
@pytest.mark.parametrize("position", POSITIONS)
@torch.no_grad()
def test_a_cache_changes_no_token(position, attention):  # CACHE-1
    model, prefix = built(position=position, attention=attention), ids([5, 6, 7], [9, 8, 4])
    for choosing in (lambda: greedy, lambda: sample(generator=torch.Generator().manual_seed(0))):
        choose, told = choosing(), []
        spy = lambda logits: told.append(logits) or choose(logits)  # noqa: B023, E731
        cached = model.generate(None, 10, prefix=prefix, stop=(), choose=spy)
        whole, logits = written_without_a_cache(model, prefix, 10, choosing())
        assert torch.equal(cached, whole)
        assert_close(torch.stack(told), logits, atol=1e-5, rtol=0)


@pytest.mark.parametrize("architecture", ["decoder-only", "encoder-decoder"])
def test_a_source_leaves_nothing_behind(architecture):  # CACHE-3
    model = built(architecture=architecture, position="rope")
    first, second = ids([5, 6, 7, 8]), ids([9, 10, 11, 12])
    fresh = copy.deepcopy(model).generate(second, 6, stop=())
    model.generate(first, 6, stop=())
    assert torch.equal(model.generate(second, 6, stop=()), fresh)


def test_rows_end_each_at_its_own_step():  # GEN-1
    model = Scripted([2, 9, 9, 9, 9, 9], [7, 8, 6, 2, 9, 9])
    got = generate(model, None, 6, prefix=ids([5], [5]))
    assert got.tolist() == [[2, 0, 0, 0, 0, 0], [7, 8, 6, 2, 0, 0]]
    assert model.at == 4  # no step after the last row's end


def drawn(logits: list[float], n: int = 500, **options) -> list[int]:
    choose = sample(**options, generator=torch.Generator().manual_seed(0))
    return choose(torch.tensor([logits]).expand(n, -1)).tolist()


GREEDY = [{"temperature": 0}, {"temperature": 1e-4}, {"top_p": 0}, {"top_p": 1e-4}, {"top_k": 1}]


@pytest.mark.parametrize("options", GREEDY)
def test_the_edges_of_sampling(options):  # GEN-2
    """Each is greedy, also where logits are far apart."""
    for logits in ([0.1, 0.3, 0.2], [-1e4, 1e4, 0.0], [-math.inf, 1.0, 0.5]):
        assert set(drawn(logits, **options)) == {1}


@pytest.mark.parametrize("top_p, kept", [(0.0, 1), (0.25, 1), (0.26, 2), (0.5, 2), (0.76, 4), (1.0, 4)])
def test_top_p_keeps_the_fewest_that_reach_it(top_p, kept):  # GEN-2
    """Of four equally likely tokens, whose sums are exact."""
    assert len(set(drawn([0.0] * 4, top_p=top_p))) == kept
    unequal = [math.log(p) for p in (0.1, 0.6, 0.3)]
    assert set(drawn(unequal, top_p=top_p)) == ({1} if top_p < 0.6 else {1, 2} if top_p < 0.9 else {0, 1, 2})


def test_top_p_of_one_keeps_every_token(monkeypatch):  # GEN-2
    """Though sums of rounded numbers reach 1 long before the last of them."""
    seen = []
    monkeypatch.setattr(torch, "multinomial", lambda p, n, generator: seen.append(p) or torch.zeros(1, 1).long())
    sample(top_p=1.0)(torch.linspace(0, -40, 100)[None])
    assert (seen[0] > 0).all()


def test_top_k_beyond_the_vocabulary():  # GEN-3
    logits = [0.1, 0.5, -0.3, 0.2, 0.0]
    assert drawn(logits, top_k=50) == drawn(logits, top_k=5) == drawn(logits)
    assert set(drawn(logits, top_k=2)) == {1, 3}
    for k in (0, -1):
        with pytest.raises(ValueError, match=f"top_k {k}"):
            sample(top_k=k)


def test_generation_drops_nothing():  # TRAIN-1
    parts, prefix = {"position": "rope", "attention": {"name": "mha", "dropout": 0.5}}, ids([5, 6])
    dropping, calm = built({"dropout": 0.5}, **parts), built(position="rope")
    calm.load_state_dict(dropping.state_dict())
    torch.manual_seed(0)
    got = dropping.train().generate(None, 8, prefix=prefix, stop=())
    assert torch.equal(got, calm.generate(None, 8, prefix=prefix, stop=())) and dropping.training
