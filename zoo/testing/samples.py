"""A few texts and a tokenizer, for what cannot be checked without them."""

from __future__ import annotations

import builtins
from collections.abc import Iterable

from zoo.tasks import SPECIALS, Data, Example, Splits, Tokenizer

WORDS = ("alder birch cedar elder hazel maple", "apple mango olive peach lemon guava", "basil cumin thyme fennel anise")
"""The words of each split, so that what stands in the wrong one shows."""


class Lines(Data):
    """Texts of their own words in each split."""

    def read(self) -> Splits:
        return Splits(*([Example("", f"{w} after {v}\n") for w, v in pair_words(words)] for words in WORDS))


class Pairs(Data):
    """Texts of their own words in each split, and one of two labels, by which word comes first."""

    has_source = True

    def read(self) -> Splits:
        return Splits(
            *([Example(f"{w} {v}", "rise" if w < v else "fall") for w, v in pair_words(words)] for words in WORDS)
        )


def pair_words(words: str) -> list[tuple[str, str]]:
    return [(w, v) for w in words.split() for v in words.split() if w != v]


class Bytes(Tokenizer):
    """Every UTF-8 byte is a token."""

    lossless = True
    vocab_size = SPECIALS + 256
    bytes = [0] * SPECIALS + [1] * 256

    def train(self, texts: Iterable[str]) -> None:
        pass

    def encode(self, text: str) -> list[int]:
        return [SPECIALS + byte for byte in text.encode()]

    def piece(self, id: int) -> builtins.bytes:
        return bytes([id - SPECIALS]) if id >= SPECIALS else b""
