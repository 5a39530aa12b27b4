"""A model that writes what it was told to."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from zoo.parts import Shape


class Scripted(nn.Module):
    """Says what it was told to, row by row, and counts its steps."""

    shape = Shape(vocab_size=12)

    def __init__(self, *rows: list[int]):
        super().__init__()
        self.rows, self.at = torch.tensor(rows), 0
        self.weight = nn.Parameter(torch.zeros(()))

    def start(self, source, source_keep=None, *, room):
        return None

    def step(self, cache, read, keep=None):
        said = F.one_hot(self.rows[:, self.at], 12).float()[:, None]
        self.at += 1
        return said.expand(-1, read.shape[1], -1)
