"""The same weights in transformers and here: equal logits, whatever the padding, with and without a cache, both ways.

The rows stand in published.py. Every parameter is moved from where it starts, so that no value hides a mistake.
`pytest tests/test_parity.py --table FILE` also writes what was measured.
"""

from __future__ import annotations

import functools
import inspect

import pytest
import torch
from published import MODELS, Row, V
from safetensors.torch import load_file

from zoo import exchange
from zoo.library import open_library
from zoo.runner import Trained

transformers = pytest.importorskip("transformers", reason="transformers is not installed; it comes with the extra hf")
transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

LIBRARY = open_library()
CLOSE = 1e-5
STEPS = 8
LENGTHS = (12, 9, 4)
SIDES = {"plain": None, "right": False, "left": True}


def reference(row: Row):
    """The model of transformers, every parameter moved."""
    cls = getattr(transformers, row.cls)
    torch.manual_seed(0)
    config = cls.config_class(**row.settings)
    model = cls._from_config(config, attn_implementation=row.attention, dtype=torch.float32).eval()
    random = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if not name.endswith(row.fixed or "-"):
                p += torch.randn(p.shape, generator=random) * row.spread * (0.2 if p.ndim < 2 else p.shape[-1] ** -0.5)
        for name, x in model.named_buffers():
            if name in model.state_dict() and x.is_floating_point():
                x += torch.randn(x.shape, generator=random) * row.spread * 0.2
    return model


class Worlds:
    """Both models of a row, and the folder through which the second came from the first."""

    def __init__(self, name: str, folder):
        self.row, self.folder = MODELS[name], folder
        self.theirs = reference(self.row)
        self.theirs.save_pretrained(folder)
        self.taken = exchange.take(exchange.look(folder), LIBRARY, self.row.family)
        self.ours = exchange.load(self.taken, LIBRARY.registry)
        self.causal = self.ours.autoregressive and not self.ours.needs_source
        self.paired = self.ours.autoregressive and self.ours.needs_source

    @torch.no_grad()
    def there(self, ids, keep, target=None, model=None):
        """The logits of transformers: over `ids`, or over `target` after the source `ids`."""
        model = model or self.theirs
        known = inspect.signature(model.forward).parameters
        given = {"input_ids": ids, "attention_mask": keep.long()}
        if "position_ids" in known and self.row.positions == "told":
            given["position_ids"] = (keep.cumsum(1) - 1).clamp_min(0)
        if self.row.segments:
            given["token_type_ids"] = segments(ids)
        if target is not None:
            given["decoder_input_ids"] = target
        return model(**given).logits

    @torch.no_grad()
    def here(self, ids, keep, target=None):
        if target is not None:
            cache = self.ours.start(ids, keep, room=target.shape[1])
            return self.ours.step(cache, target)
        return self.ours.read(ids, keep=keep, segments=segments(ids) if self.row.segments else None)

    def apart(self, side: str) -> float:
        """The largest difference of two logits over all real tokens."""
        ids, keep = batch(SIDES[side])
        target = tokens(4, (len(ids), STEPS)) if self.paired else None
        there = self.there(ids, keep, target)
        here = self.here(ids, None if side == "plain" else keep, target)
        assert 0.3 < there.std() < 30, "logits that hardly differ, or differ by rounding, would prove nothing"
        real = keep if target is None else torch.ones_like(target, dtype=torch.bool)
        return float((there - here)[real].abs().max())

    @torch.no_grad()
    def apart_cached(self) -> float:
        """The largest difference of the logits of given tokens, read one by one or all at once, after padded rows."""
        ids, keep = batch(left=self.row.positions != "slots")
        given = tokens(3, (len(ids), STEPS))
        if self.paired:
            whole = self.there(ids, keep, given)
            cache = self.ours.start(ids, keep, room=STEPS)
        else:
            every = torch.cat([keep, torch.ones_like(given, dtype=torch.bool)], 1)
            whole = self.there(torch.cat([ids, given], 1), every)[:, ids.shape[1] :]
            cache = self.ours.start(None, room=ids.shape[1] + STEPS)
            self.ours.step(cache, ids, keep)
        steps = [self.ours.step(cache, given[:, t : t + 1]) for t in range(STEPS)]
        return float((torch.cat(steps, 1) - whole).abs().max())


def tokens(seed: int, size: tuple[int, int]) -> torch.Tensor:
    return torch.randint(4, V, size, generator=torch.Generator().manual_seed(seed))


def segments(ids: torch.Tensor) -> torch.Tensor:
    return (torch.arange(ids.shape[1]) % 3 == 1).long().expand_as(ids)


def batch(left: bool | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids [3, 12] and which of them are real: all, or rows of different lengths padded on one side."""
    ids, most = tokens(2, (len(LENGTHS), max(LENGTHS))), max(LENGTHS)
    keep = torch.ones_like(ids, dtype=torch.bool)
    for row, n in enumerate(LENGTHS if left is not None else ()):
        keep[row, slice(None, most - n) if left else slice(n, None)] = False
    return ids.masked_fill(~keep, 0), keep


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    """`worlds(name)`, made once for all tests of a row."""
    return functools.cache(lambda name: Worlds(name, tmp_path_factory.mktemp(name)))


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", MODELS)
def test_logits_are_those_of_transformers(worlds, name, side):
    both = worlds(name)
    if side == "left" and both.row.positions == "slots":
        pytest.skip("transformers counts pads as positions here")
    far = both.apart(side)
    assert far <= CLOSE, f"{MODELS[name].cls} of transformers and ours, {side} padding: logits {far} apart"


@pytest.mark.parametrize("name", MODELS)
def test_a_cache_changes_nothing(worlds, name):
    both = worlds(name)
    if not both.ours.autoregressive:
        pytest.skip("an encoder reads all at once")
    far = both.apart_cached()
    assert far <= CLOSE, f"ours step by step and {MODELS[name].cls} of transformers at once: logits {far} apart"


@pytest.mark.parametrize("name", MODELS)
def test_what_came_in_goes_out_bit_for_bit(worlds, name, tmp_path):
    both = worlds(name)
    exchange.give(both.taken.family, Trained(both.taken.spec, both.ours, LIBRARY), tmp_path)
    there, here = load_file(both.folder / "model.safetensors"), load_file(tmp_path / "model.safetensors")
    there = {k: x for k, x in there.items() if not k.endswith(both.row.fixed or "-")}
    assert sorted(there) == sorted(here)
    assert [k for k, x in there.items() if not torch.equal(x, here[k])] == []
    again = both.theirs.__class__.from_pretrained(tmp_path, attn_implementation=both.row.attention).eval()
    ids, keep = batch(left=False)
    target = tokens(4, (len(ids), STEPS)) if both.paired else None
    assert torch.equal(both.there(ids, keep, target, again), both.there(ids, keep, target))
