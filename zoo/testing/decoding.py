"""Checks of tokens that are read or written one after the other.

B batch, S source tokens, T target tokens, V vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from zoo.parts import Cache

from .model_case import ModelCase


@torch.no_grad()
def decoding(case: ModelCase) -> str | None:
    """Given tokens read from a cache, one by one, in chunks or after a padded prefix, have the whole pass's logits."""
    model, target, inputs = case.model, case.target, case.inputs
    if not model.autoregressive:
        return "it predicts all tokens at once"
    for source, _ in case.passes():
        whole = model(source, target)
        for sizes, room in (([1] * 9, 9), ([3, 5, 1], 21), ([1, 8], 9)):
            cache = model.start(source, room=room)
            steps = []
            for ids in inputs.split(sizes, 1):
                steps.append(model.step(cache, ids))
                fill_unread(cache)
            changed = f"The target was read in steps of {sizes} from a cache with room for {room}"
            case.check_equal(torch.cat(steps, 1), whole, changed, "the logits")
        for side in ("left", "right"):
            check_after_prefix(case, source is not None, inputs, side)
    return None


def fill_unread(cache: Cache) -> None:
    """Fill what a cache has room for and has not read with numbers that would be seen."""
    for cell in cache.cells.values():
        for buffer in cell.buffers:
            buffer[:, :, cell.length :] = 100.0


@torch.no_grad()
def reorder(case: ModelCase) -> str | None:
    """A cache whose rows were reordered goes on as if each row had read what its new one has: beam search."""
    model, inputs = case.model, case.inputs
    if not model.autoregressive:
        return "it predicts all tokens at once"
    order = torch.tensor([2, 0, 0])
    for source, _ in case.passes():
        given: tuple[Tensor | None, Tensor | None] = (None, None)
        if source is not None:
            given = case.pad([row[:n] for row, n in zip(case.source, (3, 5, 1), strict=True)], "left")
        prefix, keep = case.pad([row[:n] for row, n in zip(inputs, (6, 2, 4), strict=True)], "left")
        kept, moved = (model.start(*given, room=9) for _ in range(2))
        for cache in (kept, moved):
            model.step(cache, prefix, keep)
        moved.reorder(order)
        following = inputs[:, 6:8]
        expected, got = model.step(kept, following)[order], model.step(moved, following[order])
        case.check_equal(
            got, expected, f"The rows of a cache were reordered to {order.tolist()}", "the logits of each row"
        )
    return None


def check_after_prefix(case: ModelCase, sourced: bool, inputs: Tensor, side: str) -> None:
    """Rows whose sources and prefixes have different lengths are read on, token by token."""
    model, lengths = case.model, (6, 2, 4)
    source, source_keep = case.pad([row[:n] for row, n in zip(case.source, (3, 5, 1), strict=True)], side)
    given = (source, source_keep) if sourced else (None, None)
    whole = model(given[0], case.target, source_keep=given[1])
    ids, keep = case.pad([row[:n] for row, n in zip(inputs, lengths, strict=True)], side)
    cache = model.start(*given, room=ids.shape[1] + 3)
    steps = [model.step(cache, ids, keep)]
    for t in range(3):
        following = torch.stack([row[n + t] for row, n in zip(inputs, lengths, strict=True)])
        steps.append(model.step(cache, following[:, None]))
    keep = torch.cat([keep, torch.ones(3, 3, dtype=torch.bool)], 1)
    for i, n in enumerate(lengths):
        changed = f"A prefix of {n} tokens was padded on the {side}, as its source was, and read on token by token"
        case.check_equal(torch.cat(steps, 1)[i][keep[i]], whole[i, : n + 3], changed, "the logits of the real tokens")


def generation(case: ModelCase) -> None:
    """A row of a batch is written as if it were alone, and is padded after the token that ends it."""
    if not case.model.autoregressive:
        generate_together(case, "left", {})
        return
    free = generate_together(case, "left", {"stop": ()})
    stop = int(free[0, 1])
    ended = generate_together(case, "right", {"stop": [stop]})
    after = (ended == stop).cumsum(1) - (ended == stop).int() > 0
    if (ended[after] != case.model.shape.pad).any() or not after.any():
        case.fail(f"Rows were written that end at {stop}: only pads should follow it, and they are {ended.tolist()}.")


def generate_together(case: ModelCase, side: str, given: dict[str, Any]) -> Tensor:
    """Five tokens for each of three rows, which are held to the tokens that each gets alone."""
    sources = [case.draw(n, seed=n) for n in (5, 2, 3)]
    source, source_keep = case.pad(sources, side)
    alone = [given] * 3
    if case.model.autoregressive:
        prefixes = [case.draw(n, seed=n) for n in (1, 4, 2)]
        alone = [given | {"prefix": prefix[None]} for prefix in prefixes]
        prefix, prefix_keep = case.pad(prefixes, side)
        given = given | {"prefix": prefix, "prefix_keep": prefix_keep}
    written = case.model.generate(source, 5, source_keep=source_keep, **given)
    own = torch.cat([case.model.generate(s[None], 5, **g) for s, g in zip(sources, alone, strict=True)])
    changed = f"Rows of different lengths were padded on the {side} and written together"
    case.check_equal(written, own, changed, "the tokens of each row", 0.0)
    return written
