import os
import subprocess
import sys

import pytest

from zoo.tasks import SPECIALS
from zoo_plugins.tokenizer import Bpe, Byte, Char

TEXT = ["the cat sat on the mat, the cat sat on the hat\n" * 20, "naïve café — 日本語 and 👩‍👩‍👧 smile\n" * 20]
ODD = [
    "",
    " leading",
    "two  spaces ",
    "\ttab\n\nnewlines\r\n",
    "👩‍👩‍👧 joined",
    "\ufeffmark",
    "日本語 naïve e\u0301",
    "<pad> <bos> [MASK] </s>",
    "a\0b\x7f\u2028",
    "\ufffd",
]


def trained(tokenizer):
    tokenizer.train(TEXT)
    return tokenizer


@pytest.fixture(scope="module", params=["byte", "bpe"])
def lossless(request):
    return trained({"byte": Byte, "bpe": lambda: Bpe(vocab_size=320)}[request.param]())


@pytest.mark.parametrize("text", ODD + TEXT)
def test_round_trip_is_exact(lossless, text):
    ids = lossless.encode(text)
    assert lossless.decode(ids) == text
    assert all(SPECIALS <= id < lossless.vocab_size for id in ids)


@pytest.mark.parametrize("text", ODD + TEXT)
def test_bytes_of_ids_are_the_bytes_of_the_text(lossless, text):
    assert lossless.lossless and len(lossless.bytes) == lossless.vocab_size
    assert sum(lossless.bytes[id] for id in lossless.encode(text)) == len(text.encode())
    assert lossless.bytes[:SPECIALS] == [0] * SPECIALS


@pytest.mark.parametrize("text", [text for text in ODD + TEXT if "\ufffd" not in text])
def test_streaming_never_shows_half_a_character(lossless, text):
    parts = list(lossless.stream(lossless.encode(text)))
    assert "".join(parts) == text
    assert not any("\ufffd" in part for part in parts)


def test_streaming_cut_short_says_so_at_the_end_only():
    parts = list(Byte().stream(Byte().encode("👩")[:3]))
    assert parts == ["", "", "", "\ufffd"]


def test_reserved_ids_are_silent(lossless):
    ids = lossless.encode("cat")
    assert lossless.decode([1, *ids, 2, 0, 0, 3]) == "cat"


def test_bpe_joins_what_is_frequent():
    bpe = trained(Bpe(vocab_size=320))
    assert len(bpe.encode(TEXT[0])) < 0.5 * len(TEXT[0].encode())
    assert bpe.encode("ab") != bpe.encode(" ab")


@pytest.mark.parametrize("asked, least, most", [(300, 300, 300), (5000, 261, 600), (100, 260, 260)])
def test_vocabulary_is_what_was_trained(asked, least, most):
    bpe = trained(Bpe(vocab_size=asked))
    assert least <= bpe.vocab_size <= most
    assert bpe.vocab_size == len(bpe.bytes) == SPECIALS + bpe.model.get_vocab_size()


def test_bpe_agrees_with_the_library_on_bytes():
    bpe = trained(Bpe(vocab_size=320))
    for text in ODD + TEXT:
        assert bpe.model.decode(bpe.model.encode(text).ids) == bpe.decode(bpe.encode(text))


OTHER_PROCESS = """
import os, sys
from zoo_plugins.tokenizer import Bpe
bpe = Bpe(vocab_size=400)
bpe.train(sys.argv[1:])
sys.stdout.write(bpe.save())
sys.stdout.flush()
assert "TOKENIZERS_PARALLELISM" not in os.environ
if not (child := os.fork()):
    os._exit(0 if bpe.decode(bpe.encode("a b")) == "a b" else 1)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_another_process_trains_the_same_and_forks_quietly():
    texts = ["ab ba ab ba cd dc cd dc", "xy yx"] * 3 + TEXT
    env = {name: value for name, value in os.environ.items() if name != "TOKENIZERS_PARALLELISM"}
    command = [sys.executable, "-c", OTHER_PROCESS, *texts]
    other = subprocess.run(command, capture_output=True, text=True, timeout=60, env=env)
    assert (other.returncode, other.stderr) == (0, "")
    bpe = Bpe(vocab_size=400)
    bpe.train(texts)
    assert other.stdout == bpe.save()


@pytest.mark.parametrize(
    "make", [Byte, lambda: Bpe(vocab_size=300), Char, lambda: Char(unknown=False)], ids=["byte", "bpe", "char", "exact"]
)
def test_saved_and_restored_is_the_same(make):
    one, two = trained(make()), make()
    two.restore(one.save())
    for text in TEXT:
        assert two.encode(text) == one.encode(text)
    assert (two.vocab_size, two.bytes, two.lossless) == (one.vocab_size, one.bytes, one.lossless)
    assert two.save() == one.save()


def test_another_kind_is_not_restored():
    with pytest.raises(ValueError, match="saved 'byte' tokenizer cannot be restored as 'bpe'"):
        Bpe().restore(Byte().save())


def test_char_has_a_token_for_the_unknown_and_then_no_bytes():
    char = trained(Char())
    assert not char.lossless and char.bytes is None
    assert char.vocab_size == SPECIALS + len(set("".join(TEXT))) + 1
    assert char.decode(char.encode("the ☃")) == "the \ufffd"
    assert char.decode(char.encode(TEXT[1])) == TEXT[1]


def test_char_without_unknown_names_the_character():
    char = trained(Char(unknown=False))
    assert char.lossless and char.decode(char.encode(TEXT[1])) == TEXT[1]
    assert sum(char.bytes[id] for id in char.encode(TEXT[1])) == len(TEXT[1].encode())
    with pytest.raises(ValueError, match="'☃', '♥'"):
        char.encode("the ☃ ♥")
