"""What fewer key and value heads save while writing: the cache is read whole for every token."""

from __future__ import annotations

from functools import cache, partial

import pytest
import torch
from race import in_turns, race, show

from zoo import build

pytestmark = in_turns

ROUNDS = 15
ROWS, N_NEW = 8, 16
WIDE = {"d_model": 512, "n_heads": 8, "n_layers": 1, "vocab_size": 512}
SMALL = {"d_model": 64, "n_heads": 4, "n_layers": 2, "vocab_size": 512}
ATTENTIONS = {"mha": "mha", "gqa, 2 heads": {"name": "gqa", "kv_heads": 2}, "mqa": "mqa"}
BASE = "mha"
CASES = [("small", 64), ("small", 512), ("wide", 64), ("wide", 1024), ("wide", 2048)]
SHAPES = {"small": SMALL, "wide": WIDE}


@torch.no_grad()
def filled(model, context: int):
    """A cache that has read so many random tokens in each row, and room for the new ones."""
    held = model.start(None, room=context + N_NEW)
    model.step(held, torch.randint(4, 512, (ROWS, context), generator=torch.Generator().manual_seed(0)))
    return held


@torch.no_grad()
def write(model, held):
    ids = torch.full((ROWS, 1), 4)
    for _ in range(N_NEW):
        ids = model.step(held, ids)[:, -1].argmax(-1)[:, None]


def rewound(model, held, context: int):
    """The writing of the next tokens, with what was written before forgotten."""
    held.length, held.at = context, held.at[:, :context]
    for cell in held.cells.values():
        cell.length = context
    return partial(write, model, held)


@cache
def decoded(size: str, context: int) -> tuple[dict[str, list[float]], dict[str, int]]:
    """The times, and the bytes of cache per token and row."""
    shape = SHAPES[size] | {"max_len": context + N_NEW}
    models = {name: build({"attention": how}, shape=shape).eval() for name, how in ATTENTIONS.items()}
    caches = {name: filled(model, context) for name, model in models.items()}
    times = race({name: partial(rewound, models[name], caches[name], context) for name in models}, ROUNDS)
    return times, {name: held.bytes_per_token() // ROWS for name, held in caches.items()}


@pytest.mark.parametrize("size, context", CASES)
@pytest.mark.parametrize("name", ATTENTIONS)
def test_decoding_over_a_cache(benchmark, name, size, context):
    times, held = decoded(size, context)
    label = f"{name}, {held[name]} bytes per token"
    named = {f"{each}, {held[each]} bytes per token": seconds for each, seconds in times.items()}
    group = f"{ROWS} rows write {N_NEW} tokens after {context}, width {SHAPES[size]['d_model']}"
    show(benchmark, group, label, named, f"{BASE}, {held[BASE]} bytes per token")
