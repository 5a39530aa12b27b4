"""A trained model with what turns text into ids and ids into text and labels."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import torch

from zoo.execute.trained import load_trained
from zoo.parts import Architecture
from zoo.parts.generate import sample
from zoo.record import RunRecord
from zoo.record.folder import Run
from zoo.tasks import Tokenizer


@dataclass(frozen=True)
class LoadedModel:
    """A trained model in evaluation mode, and what its ids stand for.

    `tokenizer` is None where the task makes its own ids. `labels` name the last ids of the vocabulary where the task
    has labels. `task` is as in YAML, and `record` what run.json holds; both are None for a model that was imported.
    """

    folder: Path
    model: Architecture
    tokenizer: Tokenizer | None
    labels: tuple[str, ...]
    task: Mapping[str, Any] | None
    record: RunRecord | None

    def encode(self, text: str) -> list[int]:
        """The ids of a text. Raises `ValueError` for a model without a tokenizer."""
        if self.tokenizer is None:
            raise ValueError(f"the model of {self.folder} has no tokenizer: its task makes its own ids")
        return self.tokenizer.encode(text)

    def decode(self, ids: Iterable[int]) -> str:
        """Ids as text; one of a label is its name, and without a tokenizer an id is its number."""
        words = []
        for is_label, run in groupby(map(int, ids), lambda id: id >= self.first_label):
            group = list(run)
            if is_label:
                words += [self.labels[id - self.first_label] for id in group]
            else:
                words.append(self.tokenizer.decode(group) if self.tokenizer else " ".join(map(str, group)))
        return " ".join(words)

    @property
    def first_label(self) -> int:
        """The id of the first label."""
        return self.model.shape.vocab_size - len(self.labels)

    def generate(
        self, text: str, n: int = 64, *, temperature: float = 1.0, top_k: int | None = None, top_p: float = 1.0,
        seed: int = 0,
    ) -> str:  # fmt: skip
        """Up to `n` tokens, as text: what follows `text`, or, of a model trained on pairs, its answer to it.

        Tokens are sampled at `temperature` (0 takes the likeliest) from the `top_k` likeliest and the fewest whose
        probabilities reach `top_p`. Raises `ValueError` for a model that does not write left to right, and for more
        tokens than its positions hold.
        """
        if not self.model.autoregressive:
            raise ValueError("the model does not write from left to right")
        ids = torch.tensor([self.encode(text)], dtype=torch.long)
        choose = sample(temperature, top_k, top_p, torch.Generator().manual_seed(seed))
        if self.reads_source:
            (out,) = self.model.generate(ids, n, choose=choose)
        else:
            (out,) = self.model.generate(None, n, prefix=ids, choose=choose)
        return self.decode(out)

    @property
    def reads_source(self) -> bool:
        """Whether a text is a source, which is answered, and not the beginning of a target, which is continued."""
        known = self.record.data.has_source if self.record and self.record.data else None
        return self.model.needs_source if known is None else known

    def classify(self, text: str) -> dict[str, float]:
        """The probability of every label, the likeliest first. Raises `ValueError` for a model without labels."""
        if not self.labels:
            raise ValueError(f"the model of {self.folder} was not trained on labels")
        longest = (self.record.data.source_len if self.record and self.record.data else None) or None
        source = torch.tensor([self.encode(text)[:longest]], dtype=torch.long)  # [1, S]
        target = torch.full((1, 1), self.first_label)  # what a model answers does not depend on it
        with torch.no_grad():
            logits = self.model(source, target)[0, 0, self.first_label :]  # [labels]
        found = dict(zip(self.labels, logits.softmax(-1).tolist(), strict=True))
        return dict(sorted(found.items(), key=lambda pair: -pair[1]))


def load(folder: str | os.PathLike[str]) -> LoadedModel:
    """The model of a run folder, at its best weights on dev, or of a folder that `zoo import` wrote.

    The data is not read: what turns ids into text and labels stands in the folder. Raises `SpecError` if the folder
    holds no trained model.
    """
    found, run = load_trained(folder), Run(Path(folder))
    record = run.read() if run.record.exists() else None
    labels = record.data.labels if record and record.data else ()
    task = record.spec["task"] if record else None
    return LoadedModel(run.folder, found.model, found.tokenizer, labels, task, record)
