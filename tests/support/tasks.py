"""A task and a model of a few hundred weights, for tests of what goes on around a model."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import nn

from zoo.tasks import Batch, Task
from zoo_plugins.optimizer import adamw
from zoo_plugins.schedule import cosine

VOCAB = 11


class Counting(Task):
    """Rows that count upwards from a random start; a third of them are cut short. Row n is the same in any batch."""

    has_source = False
    target_len = 6
    metrics = ("loss", "accuracy")
    vocab_size = VOCAB
    train_tokens = 60

    def batch(self, size, generator):
        return self.rows(size, generator)

    def rows(self, size, generator):
        drawn = [torch.randint(0, VOCAB, (2,), generator=generator) for _ in range(size)]
        start, length = torch.stack(drawn).T
        at = torch.arange(self.target_len)
        weight = (at < torch.where(length < 4, 1 + length, self.target_len)[:, None]).float()
        return Batch(torch.zeros(size, 0, dtype=torch.long), (start[:, None] + at) % VOCAB, weight)

    def batches(self, split, size):
        rows = self.rows(10, torch.Generator().manual_seed({"train": 1, "dev": 2, "test": 3}[split]))
        for i in range(0, 10, size):
            yield Batch(rows.source[i : i + size], rows.target[i : i + size], rows.weight[i : i + size])


class Tiny(nn.Module):
    """Predicts each target from the one before it. Head and table are one tensor."""

    def __init__(self, dropout=0.0, width=12):
        super().__init__()
        self.table = nn.Embedding(VOCAB + 1, width)
        self.up = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.drop = nn.Dropout(dropout)
        self.head = nn.Linear(width, VOCAB + 1, bias=False)
        self.head.weight = self.table.weight
        nn.init.normal_(self.table.weight, 0.0, 0.3)

    def forward(self, source, target, *, source_keep=None, target_keep=None, aligned=False, notes=None):
        before = torch.cat([torch.full_like(target[:, :1], VOCAB), target[:, :-1]], 1)
        x = self.table(before)
        return self.head(self.norm(x + self.drop(self.up(x).relu())))


def tiny(dropout=0.0, seed=0, width=12):
    torch.manual_seed(seed)
    return Tiny(dropout, width)


def settings(**changes):
    given = {
        "steps": 20, "tokens": None, "batch_size": 4, "accumulate": 1, "lr": 1e-2, "warmup": 3, "schedule": cosine,
        "optimizer": adamw, "clip": 1.0, "precision": "fp32", "device": "cpu", "compile": False, "threads": 1,
        "eval_every": 5, "log_every": 1, "checkpoint_seconds": 1e9,
    }  # fmt: skip
    return SimpleNamespace(**{**given, **changes})
