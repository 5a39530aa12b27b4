"""Tasks whose rows are drawn, not read.

B rows, S source tokens, T target tokens; L symbols in a row, P pairs, Q queries.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from zoo.parts import Shape
from zoo.tasks import SPECIALS, Batch, Task, fixed, pieces

ROWS = 512
"""Rows of each split that is scored."""


class Copy(Task):
    """The source's symbols once more; each row has `min_length` to `max_length` of them.

    With `eos` the target ends in an end token, which is scored like any other.
    """

    has_source = True
    metrics = ("accuracy", "exact", "loss")

    def __init__(self, shape: Shape, *, symbols: int = 20, min_length: int = 5, max_length: int = 10, eos: bool = True):
        if symbols < 1:
            raise ValueError(f"symbols is {symbols}; it should be at least 1")
        if not 1 <= min_length <= max_length:
            raise ValueError(
                f"min_length {min_length} and max_length {max_length} should be at least 1 and in this order"
            )
        self.shape, self.symbols, self.eos = shape, symbols, eos
        self.lengths = min_length, max_length
        self.source_len, self.target_len = max_length, max_length + eos
        self.vocab_size = SPECIALS + symbols

    def batch(self, size: int, generator: torch.Generator) -> Batch:
        least, most = self.lengths
        length = torch.randint(least, most + 1, (size, 1), generator=generator)
        source = torch.randint(SPECIALS, self.vocab_size, (size, most), generator=generator)
        keep = torch.arange(most) < length
        answer = self.answer(source, length, keep)
        target = answer.masked_fill(~keep, self.shape.pad)
        target_keep = keep
        if self.eos:
            target = torch.nn.functional.pad(target, (0, 1), value=self.shape.pad).scatter(1, length, self.shape.eos)
            target_keep = torch.arange(most + 1) <= length
        full = least == most
        return Batch(
            source.masked_fill(~keep, self.shape.pad),
            target,
            target_keep.float(),
            None if full else keep,
            None if full else target_keep,
        )

    def answer(self, source: Tensor, length: Tensor, keep: Tensor) -> Tensor:
        """What to write [B, L] for the source [B, L], of which `length` [B, 1] symbols are real."""
        return source

    def batches(self, split: str, size: int) -> Iterator[Batch]:
        yield from pieces(self.batch(ROWS, fixed(split)), size)


class Reverse(Copy):
    """The source's symbols from the last to the first."""

    def answer(self, source: Tensor, length: Tensor, keep: Tensor) -> Tensor:
        at = torch.arange(source.shape[1])
        return source.gather(1, (length - 1 - at).clamp_min(0))


class Sort(Copy):
    """The source's symbols in ascending order."""

    def answer(self, source: Tensor, length: Tensor, keep: Tensor) -> Tensor:
        return source.masked_fill(~keep, self.vocab_size).sort(1).values


class AssociativeRecall(Task):
    """The value that goes with a key: the source holds `pairs` of different keys and a value each, `k v k v ...`, and
    the target asks for keys seen, `q a q a ...`. Only the answers count, and only values may be answers.

    Graves et al. 2014, section 4.3, as in Arora et al. 2023.
    """

    has_source = True
    asks_in_target = True
    metrics = ("accuracy", "exact", "loss")

    def __init__(self, shape: Shape, *, pairs: int = 4, keys: int = 8, values: int = 8, queries: int = 8):
        for name, value, least in (("pairs", pairs, 1), ("values", values, 2), ("queries", queries, 1)):
            if value < least:
                raise ValueError(f"{name} is {value}; it should be at least {least}")
        if keys < pairs:
            raise ValueError(f"{pairs} pairs need as many different keys, and keys is {keys}")
        self.shape, self.pairs, self.keys, self.values, self.queries = shape, pairs, keys, values, queries
        self.source_len, self.target_len = 2 * pairs, 2 * queries
        self.vocab_size = SPECIALS + keys + values
        self.choices = torch.arange(SPECIALS + keys, self.vocab_size)

    def batch(self, size: int, generator: torch.Generator) -> Batch:
        keys = SPECIALS + torch.rand(size, self.keys, generator=generator).argsort(1)[:, : self.pairs]  # [B, P]
        values = torch.randint(SPECIALS + self.keys, self.vocab_size, (size, self.pairs), generator=generator)
        asked = torch.randint(self.pairs, (size, self.queries), generator=generator)  # [B, Q]
        questions, answers = keys.gather(1, asked), values.gather(1, asked)
        weight = torch.tensor([0.0, 1.0]).repeat(size, self.queries)
        return Batch(torch.stack((keys, values), 2).flatten(1), torch.stack((questions, answers), 2).flatten(1), weight)

    def batches(self, split: str, size: int) -> Iterator[Batch]:
        yield from pieces(self.batch(ROWS, fixed(split)), size)
