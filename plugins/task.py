"""What is learned from text: the text itself, masked tokens, labels, answers.

B rows of a batch, N rows of a split, S source tokens, T target tokens, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from zoo.parts import Shape
from zoo.tasks import SPECIALS, SPLITS, Batch, Data, Splits, Task, Tokenizer, fixed, pieces, sample


class TextTask(Task):
    """A task whose rows are read from text."""

    shape: Shape
    data: Data
    tokenizer: Tokenizer


class LanguageModeling(TextTask):
    """Every token of a text from those before it (the documents of a split in one stream).

    Training draws windows of `length` tokens (`max_len` unless given) from anywhere. Evaluation scores every token
    once, in windows that overlap by half so that each has context. With `prefix`, the first so many tokens of a window
    are the source, and the rest is the target.

    `extrapolate: [2, 4]` scores test also in windows of so many times the length, as the splits "x2" and "x4", beside
    "x1": the same tokens in each, the last half length of every window, and only what lies before them grows.
    """

    def __init__(
        self,
        shape: Shape,
        data: Data,
        tokenizer: Tokenizer,
        *,
        prefix: int | None = None,
        length: int | None = None,
        extrapolate: list[int] | None = None,
    ):
        refuse_source(data)
        self.shape, self.data, self.tokenizer = shape, data, tokenizer
        self.length = check_length("length", length, shape.max_len, least=2)
        if prefix is not None and not 0 < prefix < self.length:
            raise ValueError(f"prefix is {prefix}; it should be at least 1 and below the window's {self.length} tokens")
        self.has_source = prefix is not None
        self.source_hint = f"give it 'prefix: {self.length // 2}'"
        self.source_len = prefix or 0
        self.target_len = self.length - self.source_len
        self.stride = self.target_len if prefix else self.length // 2
        self.factors = check_factors(extrapolate or [], self.length, prefix, shape.max_len)
        self.probes = tuple(self.factors)
        self.probe_note = self.stretches()
        self.metrics = ("bpb", "loss", "perplexity") if tokenizer.lossless else ("loss", "perplexity")

    def prepare(self) -> None:
        self.streams = streams(self, self.length)
        self.vocab_size = self.tokenizer.vocab_size
        self.bytes = torch.tensor(self.tokenizer.bytes) if self.tokenizer.lossless else None
        reach = max(self.factors.values(), default=0) * self.length
        if len(self.streams["test"]) < reach:
            raise ValueError(
                f"the test text has {len(self.streams['test'])} tokens, and extrapolate asks for windows of {reach}"
            )
        self.train_tokens = len(self.streams["train"]) - self.source_len

    def batch(self, size: int, generator: torch.Generator) -> Batch:
        ids = draw(self.streams["train"], self.length, size, generator)
        source, target = ids[:, : self.source_len], ids[:, self.source_len :]
        return Batch(source, target, torch.ones(target.shape))

    def batches(self, split: str, size: int) -> Iterator[Batch]:
        if split in self.factors:
            yield from self.stretched(self.factors[split], size)
            return
        ids, keep = windows(self.streams[split], self.length, self.stride, self.shape.pad)
        weight = keep.float()
        weight[1:, : self.length - self.stride] = 0.0
        cut = self.source_len
        rows = Batch(ids[:, :cut], ids[:, cut:], weight[:, cut:], target_keep=keep[:, cut:])
        yield from pieces(rows, size)

    def stretched(self, factor: int, size: int) -> Iterator[Batch]:
        """Test in windows of `factor` lengths, whose ends are those of the longest ones."""
        length, longest = factor * self.length, max(self.factors.values()) * self.length
        stream = self.streams["test"][longest - length :]
        ids, keep = windows(stream, length, self.stride, self.shape.pad)
        weight = keep.float()
        weight[:, : length - self.stride] = 0.0
        yield from pieces(Batch(ids[:, :0], ids, weight, target_keep=keep), max(1, size // factor))

    def stretches(self) -> str:
        """What the probes are, in words."""
        if not self.factors:
            return ""
        *sizes, longest = (f"{factor * self.length} ({name})" for name, factor in self.factors.items())
        return (
            f"The same tokens of test, the last {self.stride} of each window, are scored in windows of "
            f"{', '.join(sizes)} and {longest} tokens; {self.length} were trained on"
        )

    def decode(self, ids: Iterable[int]) -> str:
        return self.tokenizer.decode(ids)


class MaskedLanguageModeling(TextTask):
    """The tokens at `rate` of the places, from a text in which 80 % of them are masked, 10 % random, 10 % untouched.

    The source is the corrupted window, the target the whole one. At least one place of each window is chosen.
    Evaluation masks do not change from one evaluation to the next.
    """

    has_source = True
    aligned = True
    metrics = ("loss", "perplexity", "accuracy")

    def __init__(
        self, shape: Shape, data: Data, tokenizer: Tokenizer, *, rate: float = 0.15, length: int | None = None
    ):
        refuse_source(data)
        if not 0 < rate <= 1:
            raise ValueError(f"rate is {rate}; it should be above 0 and at most 1")
        self.shape, self.data, self.tokenizer, self.rate = shape, data, tokenizer, rate
        self.source_len = self.target_len = check_length("length", length, shape.max_len, least=1)

    def prepare(self) -> None:
        self.streams = streams(self, self.target_len)
        self.vocab_size = self.tokenizer.vocab_size
        self.train_tokens = round(self.rate * len(self.streams["train"]))

    def batch(self, size: int, generator: torch.Generator) -> Batch:
        return self.corrupt(draw(self.streams["train"], self.target_len, size, generator), None, generator)

    def batches(self, split: str, size: int) -> Iterator[Batch]:
        ids, keep = windows(self.streams[split], self.target_len, self.target_len, self.shape.pad)
        yield from pieces(self.corrupt(ids, keep, fixed(split)), size)

    def corrupt(self, ids: Tensor, keep: Tensor | None, generator: torch.Generator) -> Batch:
        lot, fate = (torch.rand(ids.shape, generator=generator) for _ in range(2))
        strange = torch.randint(SPECIALS, self.vocab_size, ids.shape, generator=generator)
        if keep is not None:
            lot = lot.masked_fill(~keep, 2.0)
        chosen = (lot < self.rate) | (lot == lot.amin(1, keepdim=True))
        source = ids.masked_fill(chosen & (fate < 0.8), self.shape.mask)
        source = torch.where(chosen & (fate >= 0.9), strange, source)
        return Batch(source, ids, chosen.float(), keep, keep, aligned=True)

    def decode(self, ids: Iterable[int]) -> str:
        return self.tokenizer.decode(ids)


class Classification(TextTask):
    """One label per text: the text is the source, its first `length` tokens, and the label is one target token.

    Labels are ids after the tokenizer's own, in the order of their names, and only they may be an answer. `length` is
    `max_len - 1` unless given.
    """

    has_source = True
    target_len = 1
    metrics = ("accuracy", "loss")

    def __init__(self, shape: Shape, data: Data, tokenizer: Tokenizer, *, length: int | None = None):
        need_source(data, "classification", "the text", "the label")
        self.shape, self.data, self.tokenizer = shape, data, tokenizer
        self.source_len = check_length("length", length, shape.max_len - 1, least=1)

    def prepare(self) -> None:
        splits = learn(self, lambda examples: (example.source for example in examples))
        self.labels = sorted({example.target for example in splits.train})
        if len(self.labels) < 2:
            raise ValueError(f"classification needs at least two labels; the training split has {self.labels}")
        if strange := {e.target for e in splits.dev + splits.test} - set(self.labels):
            raise ValueError(f"no training example has the label {', '.join(map(repr, sorted(strange)))}")
        first = self.tokenizer.vocab_size
        self.vocab_size = first + len(self.labels)
        self.choices = torch.arange(first, self.vocab_size)
        self.train_tokens = len(splits.train)
        ids = {label: [first + i] for i, label in enumerate(self.labels)}
        self.rows = tables(self, splits, lambda example: ids[example.target])

    def batch(self, size: int, generator: torch.Generator) -> Batch:
        return sample(self.rows["train"], size, generator)

    def batches(self, split: str, size: int) -> Iterator[Batch]:
        yield from pieces(self.rows[split], size)

    def decode(self, ids: Iterable[int]) -> str:
        first = self.tokenizer.vocab_size
        return " ".join(self.labels[id - first] if id >= first else self.tokenizer.decode([id]) for id in map(int, ids))


class SequenceToSequence(TextTask):
    """The target text from the source text, with an end token after it.

    Longer texts are cut at `source_length` and `target_length` tokens (half of `max_len` each unless given), the end
    token included; how many were is noted.
    """

    has_source = True
    metrics = ("loss", "perplexity", "accuracy", "exact")

    def __init__(
        self,
        shape: Shape,
        data: Data,
        tokenizer: Tokenizer,
        *,
        source_length: int | None = None,
        target_length: int | None = None,
    ):
        need_source(data, "sequence-to-sequence", "the text to read", "the text to write")
        self.shape, self.data, self.tokenizer = shape, data, tokenizer
        half = shape.max_len // 2
        self.source_len = check_length("source_length", source_length, half, least=1)
        self.target_len = check_length("target_length", target_length, shape.max_len - half, least=2)

    def prepare(self) -> None:
        splits = learn(self, lambda examples: (text for example in examples for text in example))
        self.vocab_size = self.tokenizer.vocab_size
        self.rows = tables(self, splits, lambda example: [*self.tokenizer.encode(example.target), self.shape.eos])
        self.train_tokens = int(self.rows["train"].weight.sum())

    def batch(self, size: int, generator: torch.Generator) -> Batch:
        return sample(self.rows["train"], size, generator)

    def batches(self, split: str, size: int) -> Iterator[Batch]:
        yield from pieces(self.rows[split], size)

    def decode(self, ids: Iterable[int]) -> str:
        return self.tokenizer.decode(ids)


def refuse_source(data: Data) -> None:
    if data.has_source:
        raise ValueError("the task learns a text by itself, and the data gives pairs; drop the data's 'source'")


def need_source(data: Data, task: str, source: str, target: str) -> None:
    if not data.has_source:
        raise ValueError(
            f"{task} needs a source ({source}) and a target ({target}), and the data has no source; "
            f"use a table with 'source' and 'target'"
        )


def check_length(name: str, given: int | None, default: int, least: int) -> int:
    length = default if given is None else given
    if length < least:
        origin = " (from max_len)" if given is None else ""
        raise ValueError(f"{name} is {length}{origin}; it should be at least {least}")
    return length


def check_factors(given: list[int], length: int, prefix: int | None, most: int) -> dict[str, int]:
    """The factors by the names of their splits, 1 before them."""
    if given and prefix:
        raise ValueError("extrapolate asks for longer windows of one text, and prefix makes two of it; drop one")
    if any(factor < 2 for factor in given) or len(set(given)) < len(given):
        raise ValueError(f"extrapolate is {given}; it should be different numbers from 2")
    if given and max(given) * length > most:
        raise ValueError(
            f"extrapolate {max(given)} makes windows of {max(given) * length} tokens, and max_len is {most}; "
            f"write 'length' for what is trained on, or a larger max_len"
        )
    return {f"x{factor}": factor for factor in ([1, *sorted(given)] if given else [])}


def learn(task: TextTask, texts) -> Splits:
    """Read the task's data and train its tokenizer on the texts of the training split."""
    splits = task.data.read()
    task.sha256, task.notes = splits.sha256(), ()
    task.tokenizer.train(texts(splits.train))
    return splits


def streams(task: TextTask, length: int) -> dict[str, Tensor]:
    """The ids of each split's documents, encoded one by one and joined."""
    splits = learn(task, lambda examples: (example.target for example in examples))
    made = {
        split: torch.tensor([id for example in getattr(splits, split) for id in task.tokenizer.encode(example.target)])
        for split in SPLITS
    }
    for split, least in zip(SPLITS, (length, task.source_len + 1, task.source_len + 1), strict=True):
        if len(made[split]) < least:
            raise ValueError(
                f"the {split} text has {len(made[split])} tokens and should have at least {least}; "
                f"give more text, or a smaller length"
            )
    return made


def draw(stream: Tensor, length: int, size: int, generator: torch.Generator) -> Tensor:
    """`size` windows of the stream from anywhere: [size, length]."""
    every = stream.unfold(0, length, 1)
    return every[torch.randint(len(every), (size,), generator=generator)]


def windows(stream: Tensor, length: int, stride: int, pad: int) -> tuple[Tensor, Tensor]:
    """The stream in windows that begin every `stride` tokens, and which of their tokens are real: [N, length] each."""
    count = 1 + max(0, math.ceil((len(stream) - length) / stride))
    size = (count - 1) * stride + length
    ids = torch.nn.functional.pad(stream, (0, size - len(stream)), value=pad)
    keep = torch.arange(size) < len(stream)
    return ids.unfold(0, length, stride), keep.unfold(0, length, stride)


def tables(task: TextTask, splits: Splits, answer) -> dict[str, Batch]:
    """All rows of each split, cut at the task's lengths; notes how many were cut."""
    made = {}
    for split in SPLITS:
        examples = getattr(splits, split)
        sources = [task.tokenizer.encode(example.source) for example in examples]
        targets = [answer(example) for example in examples]
        for name, rows, most in (("sources", sources, task.source_len), ("targets", targets, task.target_len)):
            if cut := sum(len(row) > most for row in rows):
                task.notes += (f"{split}: {cut} of {len(rows)} {name} are cut at {most} tokens",)
        source, source_keep = padded([row[: task.source_len] for row in sources], task.shape.pad)
        target, target_keep = padded([row[: task.target_len] for row in targets], task.shape.pad)
        made[split] = Batch(source, target, target_keep.float(), source_keep, target_keep)
    return made


def padded(rows: list[list[int]], pad: int) -> tuple[Tensor, Tensor]:
    ids = pad_sequence([torch.tensor(row, dtype=torch.long) for row in rows], batch_first=True, padding_value=pad)
    lengths = torch.tensor([len(row) for row in rows])
    return ids, torch.arange(ids.shape[1]) < lengths[:, None]
