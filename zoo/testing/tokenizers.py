"""What any tokenizer must do."""

from __future__ import annotations

import json

from zoo.tasks import Tokenizer

from .harness import Suite
from .part_case import PartCase, collect_checks, isolate

TRAINING = ["the cat sat on the mat, the cat sat on the hat\n" * 20, "naïve café, 日本語 and 👩‍👩‍👧 smile\n" * 20]
SEEN = [*TRAINING, "", "the mat", " cat  sat ", "é語👩‍👧\n\n"]
"""Texts of characters that stand in the training text."""
STRANGE = ["\ttab\r\n", "\ufeffmark", "Ωmega ☃", "e\u0301", "<pad> <bos> </s> [MASK] <unk>", "a\0b\x7f\u2028", "\ufffd"]
"""Texts of characters that do not."""


def train_tokenizer(case: PartCase) -> Tokenizer:
    tokenizer = case.make()
    tokenizer.train(iter(TRAINING))
    return tokenizer


def select_texts(tokenizer: Tokenizer) -> list[str]:
    """All texts that the tokenizer takes. One that it cannot write it refuses with a `ValueError`."""
    out = list(SEEN)
    for text in STRANGE:
        try:
            tokenizer.encode(text)
        except ValueError:
            continue
        out.append(text)
    return out


def is_real(tokenizer: Tokenizer, id: int) -> bool:
    return 0 <= id < tokenizer.vocab_size and id not in tokenizer.reserved


def ids(case: PartCase) -> None:
    """Ids are integers of the vocabulary, and no text, whatever stands in it, gives a reserved one."""
    tokenizer = train_tokenizer(case)
    for text in select_texts(tokenizer):
        found = tokenizer.encode(text)
        if wrong := [id for id in found if type(id) is not int or not is_real(tokenizer, id)]:
            told = f"below {tokenizer.vocab_size}, none of the reserved {sorted(tokenizer.reserved)}"
            case.fail(f"{text!r:.60} was encoded: every id should be an integer {told}, and {wrong[:5]} are not.")
    for id in tokenizer.reserved:
        case.check_equal(tokenizer.piece(id), b"", f"The reserved id {id} was written", "its bytes")


def round_trip(case: PartCase) -> None:
    """A text comes back as it was; where the tokenizer is lossless, so does every text that it does not refuse."""
    tokenizer = train_tokenizer(case)
    for text in select_texts(tokenizer) if tokenizer.lossless else SEEN:
        case.check_equal(tokenizer.decode(tokenizer.encode(text)), text, "It was encoded and decoded", "a text")
    case.check_equal(tokenizer.decode([]), "", "Nothing was decoded", "the text")


def streaming(case: PartCase) -> None:
    """Id by id, the text is the same, and no character comes before all its bytes are there."""
    tokenizer = train_tokenizer(case)
    for text in SEEN:
        found = list(tokenizer.stream(tokenizer.encode(text)))
        case.check_equal("".join(found), tokenizer.decode(tokenizer.encode(text)), "It was decoded id by id", "a text")
        if any("\N{REPLACEMENT CHARACTER}" in part for part in found):
            case.fail(f"{text!r:.60} was decoded id by id: no part of a character should have come alone, and one did.")


def byte_counts(case: PartCase) -> str | None:
    """`bytes` tells how many bytes each id stands for: over a text they add up to its UTF-8."""
    tokenizer = train_tokenizer(case)
    if not tokenizer.lossless:
        return "it is not lossless, so nothing is counted per byte"
    if tokenizer.bytes is None or len(tokenizer.bytes) != tokenizer.vocab_size:
        found = None if tokenizer.bytes is None else len(tokenizer.bytes)
        case.fail(f"It was trained: bytes should have {tokenizer.vocab_size} entries, and has {found}.")
    for id, count in enumerate(tokenizer.bytes):
        case.check_equal(
            count, len(tokenizer.piece(id)), f"The bytes of id {id} were counted", "they and the length of its piece"
        )
    for text in select_texts(tokenizer):
        total = sum(tokenizer.bytes[id] for id in tokenizer.encode(text))
        case.check_equal(total, len(text.encode()), f"{text!r:.60} was encoded", "the bytes of its ids")
    return None


def saving(case: PartCase) -> None:
    """What `save` writes is JSON, and `restore` gives the same tokenizer."""
    one, two = train_tokenizer(case), case.make()
    saved = one.save()
    try:
        json.loads(saved)
    except (TypeError, ValueError) as error:
        case.fail(f"It was saved: that should be JSON text, and is not: {error}.")
    two.restore(saved)
    changed = "It was saved and restored"
    for name in ("vocab_size", "lossless", "bytes"):
        case.check_equal(getattr(two, name), getattr(one, name), changed, name)
    for text in select_texts(one):
        case.check_equal(two.encode(text), one.encode(text), changed, f"the ids of {text!r:.60}")
    case.check_equal(two.save(), saved, changed, "what it saves")


def training(case: PartCase) -> None:
    """The same text trains the same tokenizer, whether it is new or was trained before."""
    one, two = train_tokenizer(case), train_tokenizer(case)
    case.check_equal(two.save(), one.save(), "Another was trained on the same text", "what it saves")
    other = case.make()
    other.train(iter(["other words"]))
    other.train(iter(TRAINING))
    case.check_equal(other.save(), one.save(), "It was trained on other text before", "what it saves")


SUITE = Suite(isolate, collect_checks(ids, round_trip, streaming, byte_counts, saving, training))
