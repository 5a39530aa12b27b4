"""What a call of an attention, a kernel or an FFN is told: who may look at whom, and how strongly.

B batch, T queries, S keys, H query heads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from .cache import Cell, Uncached
from .position import Position

AuxiliaryLoss = Callable[[list[Tensor]], Tensor]
Notes = list[tuple[str | AuxiliaryLoss, Tensor]]


@dataclass(frozen=True)
class Mask:
    """Who may look at whom, as facts. Causality goes by index, the window by distance: |q - k| < window.

    `keep` [B, S] is the padding mask, True for real keys. `prefix` [B] lets every query see the first so many keys.
    """

    causal: bool = False
    window: int | None = None
    keep: Tensor | None = None
    prefix: Tensor | None = None

    @property
    def plain(self) -> bool:
        """True if causality is all that is asked."""
        return self.window is None and self.keep is None and self.prefix is None

    def dense(self, q_at: Tensor, k_at: Tensor) -> Tensor | None:
        """The facts as one [1 or B, 1, T, S] of bools, True = may look; None if nothing is forbidden."""
        T, S = q_at.shape[1], k_at.shape[1]
        allowed = None
        if self.causal and T > 1:
            index = torch.arange(S, device=k_at.device)
            allowed = (index[S - T :, None] >= index)[None, None]
            if self.prefix is not None:
                allowed = allowed | (index < self.prefix[:, None, None, None])
        if self.window is not None:
            near = ((q_at[:, :, None] - k_at[:, None, :]).abs() < self.window)[:, None]
            allowed = near if allowed is None else allowed & near
        if self.keep is not None:
            real = self.keep[:, None, None, :]
            allowed = real if allowed is None else allowed & real
        return allowed if allowed is None else allowed.expand(-1, -1, T, -1)


@dataclass(frozen=True)
class AttentionContext:
    """One per pass, step and kind of position; changed with `dataclasses.replace`, never set on a module.

    `q_at` [1 or B, T] and `k_at` [1 or B, S] are positions that count real tokens; `new_keep` [B, T] is the padding
    mask of the new tokens (True = real, None = all real). `bias` [1 or B, H, T, S] and `ready` were made once for this
    pass from `position`. `scale`, `softcap`, `sink` [H] and `dropout` are set by the attention from its own options.
    `memo` keeps what was made of mask and bias: who replaces `bias` or the mask's `keep` or `prefix` also gives a new
    `memo`.
    """

    position: Position
    q_at: Tensor
    k_at: Tensor
    mask: Mask
    cell: Cell | Uncached
    bias: Tensor | None = None
    ready: tuple = ()
    new_keep: Tensor | None = None
    scale: float | None = None
    softcap: float | None = None
    sink: Tensor | None = None
    dropout: float = 0.0
    notes: Notes | None = None
    memo: dict[Any, tuple[tuple, Tensor | None]] = field(default_factory=dict)
    shared: dict[Any, Any] = field(default_factory=dict)

    def attention_mask(self) -> Tensor | None:
        """The mask as [1 or B, 1, T, S] of bools (None = all may look), made once per pass."""
        return self.make_once("attention mask", (), lambda: self.mask.dense(self.q_at, self.k_at))

    def additive_mask(self) -> Tensor | None:
        """Bias and mask as one float tensor, -inf where looking is forbidden; None where there is no bias."""
        bias = self.bias
        if bias is None or (allowed := self.attention_mask()) is None:
            return bias
        return self.make_once("additive mask", (bias,), lambda: bias.masked_fill(~allowed, float("-inf")))

    def make_once(self, kind: str, sources: tuple, make: Callable[[], Tensor | None]) -> Tensor | None:
        """What was made before for this mask from these very tensors, or else what `make` makes now."""
        key = (kind, self.mask.causal, self.mask.window)
        sources = (*sources, self.mask.keep, self.mask.prefix, self.q_at, self.k_at)
        known = self.memo.get(key)
        if known is None or any(now is not then for now, then in zip(sources, known[0], strict=True)):
            known = self.memo[key] = (sources, make())
        return known[1]

    def note(self, name: str | AuxiliaryLoss, value: Tensor) -> None:
        """Hand a tensor to whoever called the model.

        A name that can be called is an auxiliary loss: after the pass it is called once with all values that were noted
        under names equal to it, and what it returns, a scalar, is added to the training objective.
        """
        if self.notes is not None:
            self.notes.append((name, value))
