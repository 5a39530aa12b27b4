"""What a model remembers of the tokens it has read: one cell per layer and step.

B batch, N tokens remembered so far, T new tokens.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


class Uncached:
    """The cell of a pass that remembers nothing: it hands back what it is given."""

    def grow(self, *new: Tensor) -> tuple[Tensor, ...]:
        return new

    def make_once(self, make: Callable[[], tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
        return make()

    def recall(self) -> tuple[Tensor, ...] | None:
        return None

    def store(self, *state: Tensor) -> None:
        pass

    def inner(self, key: str) -> Uncached:
        return self


class Cell:
    """The memory of one step of one layer. Every tensor in it is batch-first."""

    def __init__(self, room: int):
        self.room = room
        self.length = 0
        self.buffers: tuple[Tensor, ...] = ()
        self.fixed: tuple[Tensor, ...] | None = None
        self.state: tuple[Tensor, ...] | None = None
        self.inside: dict[str, Cell] = {}

    def grow(self, *new: Tensor) -> tuple[Tensor, ...]:
        """Append `new`, each [B, *, T, *], and return all so far, each [B, *, N, *]."""
        start, self.length = self.length, self.length + new[0].shape[2]
        if not self.buffers:
            self.buffers = tuple(x.new_empty(*x.shape[:2], self.room, *x.shape[3:]) for x in new)
        for buffer, x in zip(self.buffers, new, strict=True):
            buffer[:, :, start : self.length] = x
        return tuple(buffer[:, :, : self.length] for buffer in self.buffers)

    def make_once(self, make: Callable[[], tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
        """The tensors of `make()`, made at the first call and kept: keys and values of a source."""
        if self.fixed is None:
            self.fixed = make()
        return self.fixed

    def recall(self) -> tuple[Tensor, ...] | None:
        """The state stored by the pass before, or None at the first."""
        return self.state

    def store(self, *state: Tensor) -> None:
        self.state = state

    def inner(self, key: str) -> Cell:
        """A cell of its own for a part inside this step."""
        return self.inside.setdefault(key, Cell(self.room))

    def tensors(self) -> list[Tensor]:
        own = [*self.buffers, *(self.fixed or ()), *(self.state or ())]
        return own + [x for cell in self.inside.values() for x in cell.tensors()]

    def bytes_per_token(self) -> int:
        """Bytes that each further token takes."""
        own = sum(x.nbytes // self.room for x in self.buffers)
        return own + sum(cell.bytes_per_token() for cell in self.inside.values())

    def reorder(self, rows: Tensor) -> None:
        self.buffers = tuple(x[rows] for x in self.buffers)
        self.fixed = self.fixed and tuple(x[rows] for x in self.fixed)
        self.state = self.state and tuple(x[rows] for x in self.state)
        for cell in self.inside.values():
            cell.reorder(rows)


class Cache:
    """Room for `room` tokens per row. Rows append at the same index; a pad is an entry with `keep` False.

    `at` [1 or B, N], their positions, and `keep` [B, N], their padding mask (None = all real), describe the tokens read
    so far; `memory` [B, S, D] and
    `memory_keep` [B, S] are an encoder's states where there is an encoder.
    """

    def __init__(self, room: int, memory: Tensor | None = None, memory_keep: Tensor | None = None):
        self.room = room
        self.length = 0
        self.at: Tensor | None = None
        self.keep: Tensor | None = None
        self.memory = memory
        self.memory_keep = memory_keep
        self.cells: dict[tuple[int, str], Cell] = {}

    def cell(self, layer: int, step: str) -> Cell:
        """The cell of a step, keyed by the layer's number: layers that share weights do not share memory."""
        return self.cells.setdefault((layer, step), Cell(self.room))

    def count_real(self) -> Tensor | int:
        """Real tokens read so far: [B, 1], or one number where no row has a pad."""
        return self.length if self.keep is None else self.keep.sum(1, keepdim=True)

    def admit(self, at: Tensor, keep: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Take in new tokens at positions `at` [1 or B, T]; return positions and keep of all, [.., N]."""
        if self.length + at.shape[1] > self.room:
            raise ValueError(f"the cache has room for {self.room} tokens and was given {self.length + at.shape[1]}")
        known = keep if keep is not None else self.keep
        if known is not None:
            rows = known.shape[0]
            old = self.keep if self.keep is not None else at.new_ones(rows, self.length, dtype=torch.bool)
            new = keep if keep is not None else at.new_ones(rows, at.shape[1], dtype=torch.bool)
            self.keep = torch.cat([old, new], 1)
        if self.at is None:
            self.at = at
        else:
            rows = max(self.at.shape[0], at.shape[0])
            self.at = torch.cat([self.at.expand(rows, -1), at.expand(rows, -1)], 1)
        self.length += at.shape[1]
        return self.at, self.keep

    def reorder(self, rows: Tensor) -> None:
        """Let row i continue what row `rows[i]` has read: what beam search needs."""
        self.at = self.at if self.at is None or self.at.shape[0] == 1 else self.at[rows]
        self.keep = None if self.keep is None else self.keep[rows]
        self.memory = None if self.memory is None else self.memory[rows]
        self.memory_keep = None if self.memory_keep is None else self.memory_keep[rows]
        for cell in self.cells.values():
            cell.reorder(rows)

    def bytes_per_token(self) -> int:
        """Bytes that each further token takes."""
        return sum(cell.bytes_per_token() for cell in self.cells.values())

    def nbytes(self) -> int:
        return sum(x.nbytes for cell in self.cells.values() for x in cell.tensors())
