"""What a kernel or an attention is told, built by hand."""

from __future__ import annotations

import torch

from zoo.parts import AttentionContext, Mask, Position, Shape, Uncached

NOWHERE = Position(Shape())


def context(T: int, S: int, *, causal=False, window=None, keep=None, prefix=None, position=NOWHERE, **given):
    """The context of the last T of S tokens; positions count real tokens."""
    at = torch.arange(S)[None] if keep is None else (keep.cumsum(1) - 1).clamp_min(0)
    mask = Mask(causal=causal, window=window, keep=keep, prefix=prefix)
    given.setdefault("cell", Uncached())
    return AttentionContext(position, at[:, S - T :] if T <= S else torch.arange(T)[None], at, mask, **given)


def keep(*rows: str) -> torch.Tensor:
    """`keep("11.", ".11")`: which tokens are real."""
    return torch.tensor([[c == "1" for c in row] for row in rows])
