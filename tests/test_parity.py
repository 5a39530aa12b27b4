"""The same weights in transformers and here: equal logits, whatever the padding, with and without a cache, both ways.

The rows stand in published.py, what is measured in parity.py.
"""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
from published import MODELS

from zoo import SpecError

pytest.importorskip("transformers", reason="transformers is not installed; it comes with the extra hf")
from parity import CLOSE, SIDES, Worlds, read, slips  # noqa: E402, it needs transformers


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    """`worlds(name)`, made once for all tests of a row."""
    return functools.cache(lambda name: Worlds(name, tmp_path_factory.mktemp(name)))


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", MODELS)
def test_logits_are_those_of_transformers(worlds, name, side):
    both = worlds(name)
    if not both.serves(side):
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
def test_what_came_in_goes_out_bit_for_bit(worlds, name):
    assert worlds(name).changed() == []
    assert worlds(name).apart_exported() == 0


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", MODELS)
def test_every_slip_in_a_table_would_be_seen(worlds, name):
    both = worlds(name)
    slept = []
    for slip, model in slips(both.taken.model):
        try:
            other = read(model, both.taken.sizes)[0]
        except SpecError:
            continue
        if other != both.taken.spec and not both.notices(model):
            slept.append(slip)
    assert slept == list(both.row.unseen)


def test_the_report_has_every_model():
    text = (Path(__file__).parents[1] / "reports" / "parity.md").read_text()
    reported = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")][1:]
    assert reported == list(MODELS), "run `make parity`"
