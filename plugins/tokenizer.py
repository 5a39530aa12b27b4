"""Text to ids and back. Ids 0 to 3 are reserved: pad, bos, eos, mask."""

from __future__ import annotations

import builtins
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from zoo.parts import IDS, FilePath
from zoo.tasks import SPECIALS, Tokenizer


class Byte(Tokenizer):
    """Every UTF-8 byte is a token."""

    lossless = True
    vocab_size = SPECIALS + 256
    bytes = [0] * SPECIALS + [1] * 256

    def train(self, texts: Iterable[str]) -> None:
        pass

    def encode(self, text: str) -> list[int]:
        return [SPECIALS + byte for byte in text.encode()]

    def piece(self, id: int) -> builtins.bytes:  # the class has an attribute `bytes`
        return builtins.bytes([id - SPECIALS]) if id >= SPECIALS else b""

    def save(self) -> str:
        return json.dumps({"tokenizer": "byte"})

    def restore(self, text: str) -> None:
        expect(text, "byte")


class Char(Tokenizer):
    """Every character of the training text is a token.

    `unknown`: one more token stands for characters that training did not see, and bits per byte cannot be told;
    without it such a character is an error.
    """

    def __init__(self, *, unknown: bool = True):
        self.unknown = unknown
        self.lossless = not unknown

    def train(self, texts: Iterable[str]) -> None:
        self.fill(sorted({char for text in texts for char in text}))

    def fill(self, chars: list[str]) -> None:
        self.chars = chars
        self.pieces = [b""] * SPECIALS + [char.encode() for char in chars]
        self.ids = {char: SPECIALS + i for i, char in enumerate(chars)}
        if self.unknown:
            self.pieces.append("\N{REPLACEMENT CHARACTER}".encode())
        else:
            self.bytes = [len(piece) for piece in self.pieces]
        self.vocab_size = len(self.pieces)

    def encode(self, text: str) -> list[int]:
        if self.unknown:
            unknown = self.vocab_size - 1
            return [self.ids.get(char, unknown) for char in text]
        if strange := sorted(set(text) - self.ids.keys()):
            raise ValueError(f"the training text has no {', '.join(map(repr, strange))}; use 'unknown: true'")
        return [self.ids[char] for char in text]

    def piece(self, id: int) -> bytes:
        return self.pieces[id]

    def save(self) -> str:
        return json.dumps({"tokenizer": "char", "unknown": self.unknown, "chars": self.chars})

    def restore(self, text: str) -> None:
        saved = expect(text, "char")
        self.unknown, self.lossless = saved["unknown"], not saved["unknown"]
        self.fill(saved["chars"])


class Bpe(Tokenizer):
    """Byte-level byte-pair encoding (Sennrich et al. 2016; Radford et al. 2019), trained on the training text.

    `vocab_size` is what is asked for, the reserved ids included; a small text yields fewer, the bytes alone are 260.
    """

    lossless = True

    def __init__(self, *, vocab_size: int = 1024):
        if vocab_size < 1:
            raise ValueError(f"vocab_size is {vocab_size}; it should be at least 1")
        self.asked = vocab_size

    def train(self, texts: Iterable[str]) -> None:
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

        # Reserved tokens are not given to the library: it would find their names in the text.
        trainer = trainers.BpeTrainer(
            vocab_size=max(self.asked - SPECIALS, 0),
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        )
        model = Tokenizer(models.BPE())
        model.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        model.decoder = decoders.ByteLevel()
        with one_thread():
            model.train_from_iterator(texts, trainer)
        self.settle(model)

    def settle(self, model) -> None:
        self.model = model
        byte = byte_of_char()
        pieces = [bytes(byte[char] for char in model.id_to_token(i)) for i in range(model.get_vocab_size())]
        self.pieces = [b""] * SPECIALS + pieces
        self.bytes = [len(piece) for piece in self.pieces]
        self.vocab_size = len(self.pieces)

    def encode(self, text: str) -> list[int]:
        return [SPECIALS + i for i in self.model.encode(text).ids]

    def piece(self, id: int) -> bytes:
        return self.pieces[id]

    def save(self) -> str:
        return json.dumps({"tokenizer": "bpe", "model": json.loads(self.model.to_str())})

    def restore(self, text: str) -> None:
        from tokenizers import Tokenizer

        self.settle(Tokenizer.from_str(json.dumps(expect(text, "bpe")["model"])))

    def shared(self) -> str:
        saved = json.loads(self.model.to_str())
        words = {word: SPECIALS + id for word, id in saved["model"]["vocab"].items()}
        reserved = {f"<{name}>": id for id, name in enumerate(IDS)}
        plain = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        saved["model"]["vocab"] = reserved | words
        saved["added_tokens"] = [{"id": i, "content": w, **plain, "special": True} for w, i in reserved.items()]
        return json.dumps(saved)


class Pretrained(Tokenizer):
    """A tokenizer that others trained, from a `tokenizer.json` of the library tokenizers, which a `file` holds.

    Its ids are its own; nothing is put around a text, and the names of its reserved tokens are text like any other.
    `vocab_size` is the number of rows of a model's table, where that has more than the tokenizer has ids. Every text
    comes back exactly where it works on bytes and changes nothing before. Raises `ValueError` for a file that it
    cannot read, and for a vocabulary that is too small.
    """

    def __init__(self, *, file: FilePath, vocab_size: int | None = None):
        try:
            text = Path(file).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"{file} cannot be read: {error}") from error
        self.settle(text, vocab_size, file)

    def settle(self, text: str, vocab_size: int | None, name: str) -> None:
        from tokenizers import Tokenizer

        try:
            self.model = Tokenizer.from_str(text)
        except Exception as error:  # the library raises nothing narrower
            raise ValueError(f"{name} holds no tokenizer: {error}") from error
        self.model.no_truncation()
        self.model.no_padding()
        self.model.encode_special_tokens = True
        saved = json.loads(text)
        vocabulary = self.model.get_vocab()
        self.reserved = {token["id"] for token in saved.get("added_tokens", ()) if token["special"]}
        words = {id: word for word, id in vocabulary.items() if id not in self.reserved}
        own = max(vocabulary.values()) + 1
        if vocab_size is not None and vocab_size < own:
            raise ValueError(f"vocab_size is {vocab_size}; {name} has ids up to {own - 1}")
        self.vocab_size = vocab_size or own
        spell = spelling((saved.get("decoder") or {}).get("type"))
        self.pieces = [spell(words[id]) if id in words else b"" for id in range(self.vocab_size)]
        self.lossless = works_on_bytes(saved)
        self.bytes = [len(piece) for piece in self.pieces] if self.lossless else None

    def train(self, texts: Iterable[str]) -> None:
        pass

    def encode(self, text: str) -> list[int]:
        with one_thread():
            return self.model.encode(text, add_special_tokens=False).ids

    def piece(self, id: int) -> bytes:
        return self.pieces[id]

    def save(self) -> str:
        return json.dumps(
            {"tokenizer": "pretrained", "vocab_size": self.vocab_size, "model": json.loads(self.model.to_str())}
        )

    def shared(self) -> str:
        return self.model.to_str()

    def restore(self, text: str) -> None:
        saved = expect(text, "pretrained")
        self.settle(json.dumps(saved["model"]), saved["vocab_size"], "the saved tokenizer")


def works_on_bytes(saved: dict) -> bool:
    """Whether a saved tokenizer cuts the bytes of a text and adds or changes none."""
    before = saved.get("pre_tokenizer") or {}
    steps = before.get("pretokenizers", [before])
    bytewise = [step for step in steps if step.get("type") == "ByteLevel"]
    kept = all(step.get("type") in ("ByteLevel", "Split", "Digits") for step in steps)
    plain = kept and bool(bytewise) and not any(step.get("add_prefix_space") for step in bytewise)
    return plain and saved.get("normalizer") is None and (saved.get("decoder") or {}).get("type") == "ByteLevel"


def spelling(decoder: str | None) -> Callable[[str], bytes]:
    """What a word of a vocabulary stands for in a text, by the way in which its tokenizer decodes."""
    byte = byte_of_char()
    if decoder == "ByteLevel":
        return lambda word: b"".join(bytes([byte[c]]) if c in byte else c.encode() for c in word)
    if decoder == "WordPiece":
        return lambda word: (word[2:] if word.startswith("##") else f" {word}").encode()
    single = re.compile(r"<0x([0-9A-F]{2})>")
    return lambda word: (
        bytes.fromhex(found[1]) if (found := single.fullmatch(word)) else word.replace("\u2581", " ").encode()
    )


def expect(text: str, kind: str) -> dict:
    """The saved tokenizer in `text`, which should be of this kind."""
    saved = json.loads(text)
    if saved.get("tokenizer") != kind:
        raise ValueError(f"a saved '{saved.get('tokenizer')}' tokenizer cannot be restored as '{kind}'")
    return saved


def byte_of_char() -> dict[str, int]:
    """The printable character by which GPT-2 writes each byte: itself, or one from U+0100 on."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + i): byte for i, byte in enumerate(rest)}


@contextmanager
def one_thread() -> Iterator[None]:
    """Train in this thread alone: after threads were used, tokenizers before 0.23 warns at every fork."""
    name = "TOKENIZERS_PARALLELISM"
    if name in os.environ:
        yield
        return
    os.environ[name] = "false"
    try:
        yield
    finally:
        del os.environ[name]
