"""The wiring: layers of steps, and a stack of layers over an embedding.

B batch, T new tokens, S tokens of the memory, D d_model, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from zoo.parts import AttentionContext, Cache, Cell, Embedding, Mask, Notes, Position, Residual, Shape, Uncached

NO_CELL = Uncached()


def count_positions(ids: Tensor, keep: Tensor | None, seen: Tensor | int = 0) -> Tensor:
    """Positions [1 or B, T] of `ids` [B, T, ...]: the number of real tokens before each."""
    if keep is None:
        return torch.arange(ids.shape[1], device=ids.device)[None] + seen
    return (keep.cumsum(1) - 1).clamp_min(0) + seen


class Layer(nn.Module):
    """At most self-attention, cross-attention and an FFN, joined by a residual. A step that is absent is left out."""

    attention: nn.Module
    cross: nn.Module
    ffn: nn.Module
    residual: Residual

    def __init__(self, residual: Residual, dropout: float, steps: Mapping[str, nn.Module]):
        super().__init__()
        for name, step in steps.items():
            self.add_module(name, step)
        self.steps = tuple(steps)
        self.residual = residual
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor, memory: Tensor | None, contexts: Mapping[str, AttentionContext]) -> Tensor:
        calls = {
            "attention": lambda y: self.attention(y, y, contexts["attention"]),
            "cross": lambda y: self.cross(y, memory, contexts["cross"]),
            "ffn": lambda y: self.ffn(y, contexts["ffn"]),
        }
        return self.residual(x, *(self.dropped(calls[name]) for name in self.steps))

    def dropped(self, call: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        return lambda y: self.drop(call(y))


class Stack(nn.Module):
    """Embedding, positions, `depth` layers (the distinct ones repeat when there are fewer) and a final norm.

    `position_of` gives for each layer the index of its position module.
    """

    positions: Sequence[Position]
    layers: Sequence[Layer]

    def __init__(
        self,
        embedding: Embedding,
        positions: Sequence[Position],
        position_of: Sequence[int],
        layers: Sequence[Layer],
        final: nn.Module,
        shape: Shape,
        causal: bool,
    ):
        super().__init__()
        self.embedding = embedding
        self.positions = nn.ModuleList(positions)  # type: ignore[assignment]  # a sequence of what it holds
        self.position_of = tuple(position_of)
        self.layers = nn.ModuleList(layers)  # type: ignore[assignment]  # a sequence of what it holds
        self.final = final
        self.nowhere = Position(shape)
        self.drop = nn.Dropout(shape.dropout)
        self.causal = causal

    @property
    def depth(self) -> int:
        return len(self.position_of)

    @property
    def limit(self) -> int | None:
        """The most tokens that the positions can tell apart, None for any."""
        return min((p.limit for p in self.positions if p.limit is not None), default=None)

    def check(self, length: int) -> None:
        """Raise `ValueError` if `length` tokens are more than the positions can tell apart."""
        if self.limit is not None and length > self.limit:
            raise ValueError(f"{length} tokens are more than the {self.limit} positions that this model has")

    def forward(
        self,
        ids: Tensor,
        keep: Tensor | None = None,
        *,
        cache: Cache | None = None,
        memory: Tensor | None = None,
        memory_keep: Tensor | None = None,
        segments: Tensor | None = None,
        notes: Notes | None = None,
    ) -> Tensor:
        """ids [B, T] (keep [B, T] True = real), memory [B, S, D] -> states [B, T, D]."""
        x, keep = self.embedding.look_up(ids, keep, segments)
        at = count_positions(x, keep, cache.count_real() if cache else 0)
        k_at, k_keep = cache.admit(at, keep) if cache else (at, keep)
        for position in self.positions:
            x = position.embed(x, at)
        x = self.layers[0].residual.enter(self.drop(self.embedding.finish(x)))

        shared: dict = {}
        mask = Mask(causal=self.causal, keep=k_keep)
        own = [
            AttentionContext(
                position=p, q_at=at, k_at=k_at, mask=mask, cell=NO_CELL, bias=p.bias(at, k_at, self.causal),
                ready=p.prepare(at), new_keep=keep, memo={}, shared=shared,
            )
            for p in self.positions
        ]  # fmt: skip
        cross = self.across(at, memory, memory_keep, keep, shared)
        for number, index in enumerate(self.position_of):
            layer = self.layers[number % len(self.layers)]
            base = {"attention": own[index], "ffn": own[index]} | ({} if cross is None else {"cross": cross})
            noted: Notes | None = (
                None if notes is None else []
            )  # its own, or compiled layers would differ by what was noted before
            contexts = {s: replace(base[s], cell=get_cell(cache, number, s), notes=noted) for s in layer.steps}
            x = layer(x, memory, contexts)
            if noted and notes is not None:
                notes += noted
        return self.final(x)

    def across(self, at, memory, memory_keep, keep, shared) -> AttentionContext | None:
        """The context of cross-attention: no positions, no causality."""
        if memory is None:
            return None
        return AttentionContext(
            position=self.nowhere, q_at=at, k_at=count_positions(memory, memory_keep), mask=Mask(keep=memory_keep),
            cell=NO_CELL, new_keep=keep, memo={}, shared=shared,
        )  # fmt: skip


def get_cell(cache: Cache | None, number: int, step: str) -> Cell | Uncached:
    return cache.cell(number, step) if cache else NO_CELL
