"""Writing with a trained model: one loop for every model that factorises left to right.

B rows, P tokens of the prefix, n new tokens, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

Choose = Callable[[Tensor], Tensor]  # logits [B, V] -> ids [B]


def greedy(logits: Tensor) -> Tensor:
    return logits.argmax(-1)


def sample(
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    generator: torch.Generator | None = None,
) -> Choose:
    """A choice by chance: the `top_k` likeliest tokens (None = all), of these the fewest whose probabilities reach
    `top_p` (Holtzman et al. 2020), drawn at `temperature`; 0 is greedy. At least one token always stays.
    """
    if temperature < 0 or not 0 <= top_p <= 1 or (top_k is not None and top_k < 1):
        raise ValueError(
            f"temperature is {temperature}, top_k {top_k}, top_p {top_p}; "
            "they should be at least 0, at least 1 (or None), and between 0 and 1"
        )
    if temperature == 0:
        return greedy

    def choose(logits: Tensor) -> Tensor:
        logits = logits.float() - logits.float().amax(-1, keepdim=True)
        ordered, ids = (logits / temperature).sort(-1, descending=True)
        if top_k is not None:
            ordered[:, top_k:] = float("-inf")
        p = ordered.softmax(-1)
        before = p.cumsum(-1) - p
        if top_p < 1:
            p = p.masked_fill(before >= top_p, 0.0)
            p[:, 0] = p[:, 0].clamp_min(torch.finfo(p.dtype).tiny)
        return ids.gather(1, torch.multinomial(p, 1, generator=generator))[:, 0]

    return choose


@torch.no_grad()
def generate(
    model,
    source: Tensor | None,
    n: int,
    *,
    source_keep: Tensor | None = None,
    prefix: Tensor | None = None,
    prefix_keep: Tensor | None = None,
    stop: Collection[int] | None = None,
    choose: Choose = greedy,
) -> Tensor:
    """Up to `n` tokens [B, n] that follow `prefix` [B, P], each row as if it were alone.

    A row ends with the first id in `stop` (None = the end of sequence, () = never) and is filled with pads. The
    keeps are True for real tokens; a prompt is a prefix, not a source. Raises `ValueError` where source, prefix and
    `n` are more than the model's positions can hold, and for a negative `n`.
    """
    if n < 0:
        raise ValueError(f"n is {n}; it should be at least 0")
    shape, device = model.shape, next(model.parameters()).device
    stop = torch.tensor(list([shape.eos] if stop is None else stop), device=device)
    rows = next((x.shape[0] for x in (source, prefix) if x is not None), 1)
    first = torch.full((rows, 1), shape.bos, device=device)
    keep = None
    if prefix is not None:
        first = torch.cat([first, prefix], 1)
    if prefix_keep is not None:
        keep = torch.cat([torch.ones_like(prefix_keep[:, :1]), prefix_keep], 1)

    with eval_mode(model):
        cache = model.start(source, source_keep, room=first.shape[1] + n)
        logits = model.step(cache, first, keep)
        last = logits.shape[1] - 1 if keep is None else (keep * torch.arange(keep.shape[1], device=device)).argmax(1)
        logits = logits[torch.arange(rows, device=device), last]
        out = torch.full((rows, n), shape.pad, device=device)
        alive = torch.ones(rows, dtype=torch.bool, device=device)
        for t in range(n):
            ids = torch.where(alive, choose(logits), shape.pad)
            out[:, t] = ids
            alive = alive & ~torch.isin(ids, stop)
            if t + 1 == n or not alive.any():
                break
            logits = model.step(cache, ids[:, None])[:, -1]
    return out


@contextmanager
def eval_mode(model: nn.Module | None) -> Iterator[None]:
    """Eval mode for the time being; each module then returns to the mode that it had."""
    training = [] if model is None else [module for module in model.modules() if module.training]
    for module in training:
        module.training = False
    try:
        yield
    finally:
        for module in training:
            module.training = True
