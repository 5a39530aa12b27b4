"""The contracts of data, tokenizers, tasks and reference rows.

B batch, S source tokens, T target tokens, V vocabulary.
"""

from __future__ import annotations

import builtins
import codecs
import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

__all__ = [
    "Batch", "Data", "Example", "Metric", "Reference", "SPECIALS", "SPLITS", "Scored", "Splits", "Task", "Tokenizer",
    "fixed", "pick", "pieces", "sample",
]  # fmt: skip

SPECIALS = 4
"""Every vocabulary begins with pad, bos, eos and mask, in this order (`Shape` holds their ids)."""


SPLITS = ("train", "dev", "test")


class Example(NamedTuple):
    """One document or one pair. Text that stands alone is a target with an empty source."""

    source: str
    target: str


@dataclass(frozen=True)
class Splits:
    """Three lists of examples that share no document."""

    train: list[Example]
    dev: list[Example]
    test: list[Example]

    def sha256(self) -> str:
        """Hash of all text in all splits, in order."""
        digest = hashlib.sha256()
        for split in (self.train, self.dev, self.test):
            for example in split:
                for text in example:
                    digest.update(text.encode() + b"\0")
            digest.update(b"\1")
        return digest.hexdigest()


@dataclass(frozen=True)
class Batch:
    """Rows of one task, whatever the architecture. `weight` is what each target token counts in loss and metrics."""

    source: Tensor  # [B, S] ids; S may be 0
    target: Tensor  # [B, T] ids
    weight: Tensor  # [B, T] float32
    source_keep: Tensor | None = None  # [B, S] bool, True = real token; None = all
    target_keep: Tensor | None = None  # [B, T] bool; not the same as weight > 0
    aligned: bool = False  # target[:, t] belongs to source[:, t]

    def to(self, device: torch.device | str) -> Batch:
        moved: dict[str, Any] = {k: v.to(device) for k, v in vars(self).items() if isinstance(v, Tensor)}
        return replace(self, **moved)


class Data:
    """Where examples come from. The constructor is cheap and raises `ValueError` for files that are not there."""

    has_source: bool = False

    def read(self) -> Splits:
        raise NotImplementedError


class Tokenizer:
    """Text to ids and back. No text gives a `reserved` id: the first `SPECIALS`, unless others trained the tokenizer.
    `vocab_size` counts them and is known after `train`.

    `lossless`, known from construction: every text comes back exactly. `bytes` [V] then gives the UTF-8 bytes that
    each id stands for; without it there are no bits per byte.
    """

    lossless: bool = False
    reserved: Collection[int] = range(SPECIALS)
    vocab_size: int
    bytes: list[int] | None = None

    def train(self, texts: Iterable[str]) -> None:
        raise NotImplementedError

    def encode(self, text: str) -> list[int]:
        raise NotImplementedError

    def piece(self, id: int) -> builtins.bytes:  # `bytes` is a fact of the class
        """The UTF-8 that one id stands for, perhaps a part of a character; nothing for a reserved id."""
        raise NotImplementedError

    def decode(self, ids: Iterable[int]) -> str:
        return "".join(self.stream(ids))

    def stream(self, ids: Iterable[int]) -> Iterator[str]:
        """The text of each id as it comes; a character is held back until all its bytes are there."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        for id in ids:
            yield decoder.decode(self.piece(int(id)))
        yield decoder.decode(b"", final=True)

    def save(self) -> str:
        """What was trained, as JSON text; `restore` reads it back."""
        raise NotImplementedError

    def restore(self, text: str) -> None:
        raise NotImplementedError

    def shared(self) -> str | None:
        """The same as a `tokenizer.json` of the library tokenizers; None where that has no such form."""
        return None


@dataclass(frozen=True)
class Scored:
    """One batch, and what a model or a reference makes of it. Sums are over the batch and weighted.

    A reference has no logits, and neither `answers` nor `texts`: only a metric that says that it `needs` them may ask.
    """

    batch: Batch
    nats: Tensor  # [B, T] of every target
    nll: float
    weight: float
    bytes: float = 0.0  # of the targets' text, where the task has bytes per id
    logits: Tensor | None = None  # [B, T, V]
    answers: Tensor | None = None  # [B, T] the likeliest ids, of those that may be an answer
    decode: Callable[[Iterable[int]], str] = str

    @property
    def counted(self) -> Tensor:
        """Which targets count [B, T]."""
        return self.batch.weight > 0

    @property
    def right(self) -> Tensor:
        """Which of them are the likeliest token [B, T]."""
        assert self.answers is not None, "a metric that asks for answers says so: needs = 'logits'"
        return (self.answers == self.batch.target) & self.counted

    @property
    def texts(self) -> list[tuple[str, str]]:
        """The answers of every row as text, and its targets."""
        assert self.answers is not None, "a metric that asks for texts says so: needs = 'text'"
        rows = zip(self.answers, self.batch.target, self.counted, strict=True)
        return [(self.decode(said[kept].tolist()), self.decode(meant[kept].tolist())) for said, meant, kept in rows]


class Metric:
    """A number for a split: sums over all of its batches, and what they make together; never a mean of batches."""

    better: Literal["lower", "higher"] = "lower"
    unit: str = ""
    needs: Literal["nll", "logits", "text"] = "nll"  # what `count` asks for; a reference gives the first alone

    def count(self, scored: Scored) -> dict[str, float]:
        """The sums of one batch, which are added up over the split."""
        raise NotImplementedError

    def score(self, sums: Mapping[str, float]) -> float:
        raise NotImplementedError


class Task:
    """What is learned. Requests: `shape` (`max_len` and the reserved ids; its other sizes are
    defaults), `data`, `tokenizer`.

    The facts in the first block hold from construction, before any file is read; those in the second after
    `prepare`. A batch never draws from the global generator.
    """

    has_source: bool = False
    source_hint: str = ""  # what would give the task a source, where it has none: "give it '…'"
    asks_in_target: bool = False  # real target tokens of weight 0 are questions
    aligned: bool = False
    source_len: int = 0  # longest source and target, in tokens
    target_len: int = 0
    metrics: tuple[str, ...] = ("loss",)  # names from the slot metric; the first one ranks
    scorers: Mapping[str, Metric] | None = None  # what these names stand for, set by who makes the task
    probes: tuple[str, ...] = ()  # splits beside dev and test that the best weights are scored on
    probe_note: str = ""  # and what these are: a sentence without its full stop

    data: Data | None = None  # None for generated tasks, and so is the tokenizer
    tokenizer: Tokenizer | None = None
    vocab_size: int
    labels: Sequence[str] = ()  # names of the last ids of the vocabulary, where these are labels and no tokens
    choices: Tensor | None = None  # ids that may be an answer; None = all
    bytes: Tensor | None = None  # [V] bytes per id, where the metrics ask for them
    sha256: str = ""  # of the text that was read; "" for generated tasks
    train_tokens: int | None = None  # weighted targets in one pass over the training split; None = endless
    notes: tuple[str, ...] = ()  # what `prepare` had to do that a reader of the results should know

    def prepare(self) -> None:
        """Read the data and train the tokenizer. Raises `ValueError` where they cannot serve."""

    def batch(self, size: int, generator: torch.Generator) -> Batch:
        """`size` training rows, drawn with `generator` alone."""
        raise NotImplementedError

    def batches(self, split: str, size: int) -> Iterator[Batch]:
        """Every row of "train", "dev", "test" or a probe once, in a fixed order."""
        raise NotImplementedError

    def decode(self, ids: Iterable[int]) -> str:
        """Ids as text that a person can read."""
        return " ".join(map(str, ids))


class Reference:
    """A row of the table that no gradient trained, scored by the same metrics as every model."""

    def fit(self, task: Task) -> None:
        """Learn from the training split and choose on dev. Raises `ValueError` for a task that it cannot serve."""
        raise NotImplementedError

    def nll(self, batch: Batch) -> Tensor:
        """Nats [B, T] of every target token."""
        raise NotImplementedError


def sample(rows: Batch, size: int, generator: torch.Generator) -> Batch:
    """`size` of the rows, each drawn from all of them."""
    return pick(rows, torch.randint(len(rows.target), (size,), generator=generator))


def pieces(rows: Batch, size: int) -> Iterator[Batch]:
    """All rows in order, `size` at a time."""
    for start in range(0, len(rows.target), size):
        yield pick(rows, slice(start, start + size))


def pick(rows: Batch, index: Tensor | slice) -> Batch:
    """Some rows, padded on the right, without the columns in which none of them has a token."""
    source, source_keep = narrow(rows.source[index], rows.source_keep, index)
    target, target_keep = narrow(rows.target[index], rows.target_keep, index)
    weight = rows.weight[index][:, : target.shape[1]]
    return replace(rows, source=source, target=target, weight=weight, source_keep=source_keep, target_keep=target_keep)


def narrow(ids: Tensor, keep: Tensor | None, index: Tensor | slice) -> tuple[Tensor, Tensor | None]:
    if keep is None:
        return ids, None
    keep = keep[index]
    longest = int(keep.sum(1).max())
    keep = keep[:, :longest]
    return ids[:, :longest], None if keep.all() else keep


def fixed(split: str) -> torch.Generator:
    """The generator of a split's evaluation rows: always the same, and none that a run's seed gives."""
    return torch.Generator().manual_seed(2**40 + SPLITS.index(split))
