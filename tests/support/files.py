"""Files as a user writes them, and what the zoo says of them."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from zoo import SpecError
from zoo.declare.library import open_library
from zoo.declare.spec import Node

HYBRID = '''
from typing import Annotated, Any, Literal

import torch
import zoo
from zoo.parts import NoStep, Part, Position
from torch import nn


class Both(nn.Module):
    """An FFN that is the mean of two others."""

    def __init__(self, shape, *, one: Annotated[Any, Part("ffn")] = "relu", other: Annotated[Any, Part("ffn")] | None = None, mix: float = 0.5):
        super().__init__()
        self.one, self.other, self.mix = one(), None if other is None else other(), mix

    def forward(self, x, ctx):
        return self.one(x, ctx)


class Far(Position):
    def __init__(self, shape, *, reach: int, kind: Literal["flat", "steep"] = "flat", marks: list[int] | None = None):
        super().__init__(shape)
        if reach < 1:
            raise ValueError(f"reach is {reach}; it should be at least 1")
        if reach == 13:
            raise KeyError("thirteen")


def crooked(shape, surprise):
    return surprise


@zoo.hookimpl
def zoo_variants():
    return [
        zoo.Variant("ffn", "both", Both, "Two at once."),
        zoo.Variant("ffn", "both-swiglu", Both, "Two at once.", fixed={"other": "swiglu"}),
        zoo.Variant("position", "far", Far, "Far."),
        zoo.Variant("position", "crooked", crooked, "Asks for what nobody has."),
    ]
'''


def write(folder: Path, text: str, name: str = "a.yaml") -> Path:
    path = folder / name
    path.write_text(dedent(text).lstrip("\n"), "utf-8")
    return path


def faults(call) -> list[str]:
    """The lines of the `SpecError` that a call raises, without the folders of the files that they name."""
    with pytest.raises(SpecError) as caught:
        call()
    return [shortened(line) for line in str(caught.value).splitlines()]


def shortened(line: str) -> str:
    place, colon, rest = line.partition(":")
    return Path(place).name + colon + rest if place.startswith("/") else line


def reader(**given):
    return open_library(**given).reader()


def model(value, **given):
    """A model read from plain values."""
    read = reader(**given)
    spec = read.model(Node(value))
    read.finish()
    return spec


def part(value, slot, **given):
    read = reader(**given)
    spec = read.part(Node(value), slot)
    read.finish()
    return spec
