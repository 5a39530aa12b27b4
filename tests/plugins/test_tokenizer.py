import json
import os
import subprocess
import sys

import pytest
from tokenizers import Tokenizer as Tokenizers
from tokenizers import decoders, models, pre_tokenizers, processors, trainers

from zoo.tasks import SPECIALS
from zoo.testing import check_variant
from zoo_plugins.tokenizer import Bpe, Byte, Char, Pretrained

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


SAID = "the naïve <end> of 日本 \n\t the naïve"


def others(path, **changed):
    """A byte-level tokenizer as others save it, with a reserved token in front of its ids; changed, and its file."""
    made = Tokenizers(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<end>"], initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )  # fmt: skip
    made.train_from_iterator([SAID] * 3, trainer)
    made.post_processor = processors.TemplateProcessing(single="<end> $A", special_tokens=[("<end>", 0)])
    made.enable_truncation(4)
    saved = json.loads(made.to_str()) | changed
    path.write_text(json.dumps(saved))
    return str(path)


def test_a_tokenizer_of_others_gives_their_ids(tmp_path):
    file = others(tmp_path / "t.json")
    ours = Pretrained(file=file, vocab_size=400)
    theirs = Tokenizers.from_file(file)
    theirs.no_truncation()
    theirs.encode_special_tokens = True
    ids = ours.encode(SAID)
    assert ids == theirs.encode(SAID, add_special_tokens=False).ids and 0 not in ids
    assert ours.lossless and ours.decode(ids) == SAID
    assert sum(ours.bytes[i] for i in ids) == len(SAID.encode())
    assert (ours.vocab_size, len(ours.bytes), ours.piece(0), ours.piece(399)) == (400, 400, b"", b"")
    again = Pretrained(file=others(tmp_path / "other.json"))
    again.restore(ours.save())
    assert again.encode(SAID) == ids and again.vocab_size == 400
    assert Tokenizers.from_str(ours.shared()).encode("the naïve").ids[1:] == ours.encode("the naïve")


@pytest.mark.parametrize(
    "changed",
    [
        {"normalizer": {"type": "NFC"}},
        {"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}},
        {"decoder": None},
    ],
)
def test_one_that_changes_the_text_has_no_bits_per_byte(tmp_path, changed):
    ours = Pretrained(file=others(tmp_path / "t.json", **changed))
    assert not ours.lossless and ours.bytes is None


def test_words_of_other_tokenizers_are_text(tmp_path):
    word = Tokenizers(models.WordPiece({"[UNK]": 0, "play": 1, "##ing": 2}, unk_token="[UNK]"))
    word.decoder = decoders.WordPiece()
    word.save(str(tmp_path / "word.json"))
    assert Pretrained(file=str(tmp_path / "word.json")).decode([1, 2]) == " playing"
    unigram = Tokenizers(models.BPE({"\u2581a": 0, "<0xE6>": 1, "<0x97>": 2, "<0xA5>": 3}, []))
    unigram.save(str(tmp_path / "unigram.json"))
    assert Pretrained(file=str(tmp_path / "unigram.json")).decode([0, 1, 2, 3]) == " a日"


def test_a_file_that_holds_no_tokenizer(tmp_path):
    (tmp_path / "t.json").write_text("{}")
    with pytest.raises(ValueError, match="holds no tokenizer"):
        Pretrained(file=str(tmp_path / "t.json"))
    with pytest.raises(ValueError, match="cannot be read"):
        Pretrained(file=str(tmp_path / "none.json"))
    with pytest.raises(ValueError, match="vocab_size is 200; .* has ids up to 2"):
        Pretrained(file=others(tmp_path / "t.json"), vocab_size=200)


def test_what_bpe_shares_gives_the_same_ids():
    ours = Bpe(vocab_size=300)
    ours.train([SAID] * 3)
    theirs = Tokenizers.from_str(ours.shared())
    assert theirs.encode(SAID).ids == ours.encode(SAID)
    assert [theirs.token_to_id(f"<{name}>") for name in ("pad", "bos", "eos", "mask")] == [0, 1, 2, 3]
    assert theirs.decode(ours.encode(SAID)) == SAID


def test_a_tokenizer_of_others_does_what_every_tokenizer_must(tmp_path):
    results = check_variant("tokenizer", "pretrained", file=others(tmp_path / "t.json"))
    assert "passed" in {result.status for result in results}
