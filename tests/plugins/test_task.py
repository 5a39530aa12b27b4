import math

import pytest
import torch

from zoo.declare.shape import Shape
from zoo.tasks import SPECIALS, Data, Example, Splits
from zoo.train.metrics import evaluate
from zoo_plugins.generated import AssociativeRecall, Copy, Reverse, Sort
from zoo_plugins.task import Classification, LanguageModeling, MaskedLanguageModeling, SequenceToSequence
from zoo_plugins.tokenizer import Byte, Char

SHAPE = Shape(max_len=16)
LINES = [f"line number {i}, of many\n" for i in range(60)]


class Lines(Data):
    """Texts given to it, in three splits."""

    def __init__(self, train, dev, test):
        self.splits = Splits(*([Example("", text) for text in split] for split in (train, dev, test)))

    def read(self):
        return self.splits


class Pairs(Data):
    has_source = True

    def __init__(self, train, dev, test):
        self.splits = Splits(*([Example(*pair) for pair in split] for split in (train, dev, test)))

    def read(self):
        return self.splits


def lines():
    return Lines(LINES[:40], LINES[40:50], LINES[50:])


def labeled():
    rows = [("x" * (1 + i % 7) + str(i), ("good", "bad", "odd")[i % 3]) for i in range(30)]
    return Pairs(rows[:20], rows[20:25], rows[25:])


def translated():
    rows = [(f"go {i}", f"aller {i} fois") for i in range(30)]
    return Pairs(rows[:20], rows[20:25], rows[25:])


def every_task(shape=SHAPE):
    yield LanguageModeling(shape, lines(), Byte())
    yield LanguageModeling(shape, lines(), Byte(), prefix=5)
    yield MaskedLanguageModeling(shape, lines(), Byte())
    yield Classification(shape, labeled(), Byte())
    yield SequenceToSequence(Shape(max_len=40), translated(), Byte())
    yield from (kind(shape) for kind in (Copy, Reverse, Sort, AssociativeRecall))


TASKS = [pytest.param(task, id=f"{i}-{type(task).__name__}") for i, task in enumerate(every_task())]


@pytest.fixture
def task(request):
    request.param.prepare()
    return request.param


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def ids_of(text):
    return [SPECIALS + byte for byte in text.encode()]


# --- the contract, for every task


def tensors(batch):
    return [value for value in vars(batch).values() if isinstance(value, torch.Tensor)]


@pytest.mark.parametrize("task", TASKS, indirect=True)
def test_batches_keep_the_contract(task):
    for batch in (
        task.batch(7, seeded()),
        *task.batches("train", 7),
        *task.batches("dev", 7),
        *task.batches("test", 7),
    ):
        B, T = batch.target.shape
        assert B <= 7 and task.target_len >= T and batch.source.shape[1] <= task.source_len
        assert batch.source.shape[0] == B and batch.weight.shape == (B, T)
        assert batch.weight.dtype == torch.float32 and batch.weight.sum() > 0
        for ids in (batch.source, batch.target):
            assert ids.dtype == torch.int64 and (ids >= 0).all() and (ids < task.vocab_size).all()
        for keep, ids in ((batch.source_keep, batch.source), (batch.target_keep, batch.target)):
            assert keep is None or (keep.dtype == torch.bool and keep.shape == ids.shape)
            assert ids[keep.logical_not()].eq(SHAPE.pad).all() if keep is not None else (ids != SHAPE.pad).all()
        if batch.target_keep is not None:
            assert not batch.weight[~batch.target_keep].any()
        if task.choices is not None:
            assert torch.isin(batch.target[batch.weight > 0], task.choices).all()
        assert batch.aligned == task.aligned and bool(batch.source.shape[1]) == task.has_source


@pytest.mark.parametrize("task", TASKS, indirect=True)
def test_facts_hold_before_and_after_prepare(task):
    questions = [(b.weight == 0) & (True if b.target_keep is None else b.target_keep) for b in task.batches("dev", 9)]
    if not task.aligned and not isinstance(task, LanguageModeling):
        assert task.asks_in_target == any(q.any() for q in questions)
    assert task.sha256 == "" or len(task.sha256) == 64
    assert (task.bytes is not None) == ("bpb" in task.metrics)


@pytest.mark.parametrize("task", TASKS, indirect=True)
def test_same_generator_same_data_and_a_stream_that_moves_on(task):
    one, two = seeded(3), seeded(3)
    first = task.batch(8, one)
    for a, b in zip(tensors(first), tensors(task.batch(8, two)), strict=True):
        assert torch.equal(a, b)
    second = task.batch(8, one)
    assert any(not a.equal(b) for a, b in zip(tensors(first), tensors(second), strict=False))
    for a, b in zip(tensors(second), tensors(task.batch(8, two)), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("task", TASKS, indirect=True)
def test_the_global_generator_is_neither_read_nor_moved(task):
    runs = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        before = torch.get_rng_state()
        task.prepare()
        runs.append([task.batch(4, seeded()), *task.batches("dev", 4)])
        assert torch.equal(before, torch.get_rng_state())
    for a, b in zip(*runs, strict=True):
        assert all(torch.equal(x, y) for x, y in zip(tensors(a), tensors(b), strict=True))


@pytest.mark.parametrize("task", TASKS, indirect=True)
@pytest.mark.parametrize("split", ["dev", "test"])
def test_rows_of_a_split_do_not_depend_on_the_batch_size(task, split):
    def rows(size):
        for batch in task.batches(split, size):
            kept = torch.ones_like(batch.target) if batch.target_keep is None else batch.target_keep
            real = torch.ones_like(batch.source) if batch.source_keep is None else batch.source_keep
            for i in range(len(batch.target)):
                keep = kept[i].bool()
                yield [
                    x.tolist() for x in (batch.source[i][real[i].bool()], batch.target[i][keep], batch.weight[i][keep])
                ]

    whole = list(rows(1000))
    assert list(rows(3)) == whole == list(rows(1))


@pytest.mark.parametrize("task", [t for t in TASKS if "Copy" not in t.id and "So" not in t.id], indirect=True)
def test_train_tokens_are_the_targets_of_one_pass(task):
    total = sum(batch.weight.sum().item() for batch in task.batches("train", 8))
    if task.train_tokens is not None:
        assert total == pytest.approx(task.train_tokens, rel=0.1 if task.aligned else 0)


# --- language modeling


@pytest.mark.parametrize("length", [2, 7, 16, 64])
@pytest.mark.parametrize("split", ["dev", "test"])
def test_windows_score_every_token_once_with_context(length, split):
    task = LanguageModeling(SHAPE, lines(), Byte(), length=length)
    task.prepare()
    text = "".join(example.target for example in getattr(task.data.splits, split))
    scored, context = [], []
    for batch in task.batches(split, 5):
        for target, weight in zip(batch.target, batch.weight, strict=True):
            scored += target[weight > 0].tolist()
            context += (weight > 0).nonzero().flatten().tolist()
    assert scored == ids_of(text)
    assert min(context[length:]) >= length - length // 2


def test_bytes_scored_are_the_bytes_of_the_text():
    task = LanguageModeling(SHAPE, lines(), Char(unknown=False))
    task.prepare()
    total = sum((batch.weight * task.bytes[batch.target]).sum().item() for batch in task.batches("dev", 4))
    assert total == sum(len(text.encode()) for text in LINES[40:50])


def test_training_windows_come_from_everywhere_and_cross_no_split():
    task = LanguageModeling(SHAPE, lines(), Byte())
    task.prepare()
    text = ids_of("".join(LINES[:40]))
    starts = set()
    windows = {tuple(text[i : i + 16]): i for i in range(len(text) - 15)}
    for row in task.batch(4000, seeded()).target.tolist():
        starts.add(windows[tuple(row)])
    assert min(starts) < 10 and max(starts) > len(windows) - 12 and len(starts) > 0.9 * len(windows)


def test_targets_are_the_text_and_are_not_shifted():
    task = LanguageModeling(SHAPE, Lines(["abcdefgh"] * 9, ["abcdefghijklmnopqrs"], ["x" * 20]), Byte())
    task.prepare()
    first, second = next(task.batches("dev", 2)).target
    assert first.tolist() == ids_of("abcdefghijklmnop")
    assert second.tolist()[:11] == ids_of("ijklmnopqrs")


def test_prefix_is_the_source_and_the_rest_the_target():
    task = LanguageModeling(SHAPE, lines(), Byte(), prefix=6)
    assert (task.has_source, task.source_len, task.target_len) == (True, 6, 10)
    task.prepare()
    text = "".join(LINES[40:50])
    scored = []
    for batch in task.batches("dev", 3):
        for source, target, weight in zip(batch.source, batch.target, batch.weight, strict=True):
            assert source.tolist() == ids_of(text)[len(scored) : len(scored) + 6]
            scored += target[weight > 0].tolist()
    assert scored == ids_of(text)[6:]
    batch = task.batch(5, seeded())
    joined = torch.cat([batch.source, batch.target], 1).tolist()
    assert all("".join(map(chr, (id - SPECIALS for id in row))) in "".join(LINES[:40]) for row in joined)


def test_language_modeling_has_bits_per_byte_where_bytes_are_known():
    assert LanguageModeling(SHAPE, lines(), Byte()).metrics == ("bpb", "loss", "perplexity")
    assert LanguageModeling(SHAPE, lines(), Char()).metrics == ("loss", "perplexity")


def test_too_little_text_is_refused_with_the_numbers():
    with pytest.raises(ValueError, match="train text has 3 tokens and should have at least 16"):
        LanguageModeling(SHAPE, Lines(["abc"], LINES, LINES), Byte()).prepare()
    with pytest.raises(ValueError, match="dev text has 3 tokens and should have at least 6"):
        LanguageModeling(SHAPE, Lines(LINES, ["abc"], LINES), Byte(), prefix=5).prepare()


@pytest.mark.parametrize("prefix, length", [(0, 16), (16, 16), (None, 1), (None, 0), (-1, None)])
def test_windows_that_cannot_be_are_refused(prefix, length):
    with pytest.raises(ValueError, match="prefix|length"):
        LanguageModeling(SHAPE, lines(), Byte(), prefix=prefix, length=length)


# --- longer windows


def stretched(factors=(2, 4), length=6, texts=None):
    texts = LINES[50:] if texts is None else texts
    given = Lines(LINES[:40], LINES[40:50], texts)
    task = LanguageModeling(Shape(max_len=64), given, Byte(), length=length, extrapolate=list(factors))
    task.prepare()
    return task


def scored_by(task, split, size=5):
    """The ids that count, in order, and per row their places in the window and how long that is."""
    ids, places = [], []
    for batch in task.batches(split, size):
        for target, weight in zip(batch.target, batch.weight, strict=True):
            ids += target[weight > 0].tolist()
            places.append(((weight > 0).nonzero().flatten().tolist(), len(target)))
    return ids, places


@pytest.mark.parametrize("length", [2, 5, 6, 16])
@pytest.mark.parametrize("factors", [(2,), (4, 2), (3, 4)])
@pytest.mark.parametrize("end", [0, 1, 2])
def test_the_same_tokens_are_scored_in_windows_of_every_length(length, factors, end):
    texts = ["".join(LINES[50:])[: 200 - end]]
    task = stretched(factors, length, texts)
    assert task.probes == ("x1", *(f"x{factor}" for factor in sorted(factors)))
    first = max(factors) * length - length // 2  # what has the longest window before it, and all that follows
    for probe, factor in zip(task.probes, (1, *sorted(factors)), strict=True):
        ids, places = scored_by(task, probe)
        assert ids == ids_of(texts[0])[first:]
        half = list(range(factor * length - length // 2, factor * length))
        assert max(size for _, size in places) == factor * length
        assert all(at == half for at, _ in places[:-1]) and places[-1][0] == half[: len(places[-1][0])] != []


def test_the_bytes_that_are_scored_are_the_same_too():
    texts = ["äöü€ and more of it, "] * 6
    task = LanguageModeling(SHAPE, Lines(texts, texts, texts), Char(unknown=False), length=4, extrapolate=[2, 4])
    task.prepare()
    scored = "".join(texts)[16 - 2 :]
    for probe in task.probes:
        counted = sum((b.weight * task.bytes[b.target]).sum().item() for b in task.batches(probe, 4))
        assert counted == len(scored.encode()) > len(scored)


class Remembers(torch.nn.Module):
    """Logits of a token from the sum of all ids before it in the window: whatever lies there changes them."""

    def __init__(self, vocabulary):
        super().__init__()
        self.table = torch.randn(13, vocabulary, generator=seeded())

    def forward(self, source, target, **given):
        return self.table[(target.cumsum(1) - target) % 13]


def test_scores_are_those_of_a_plain_walk_over_the_text():
    task = stretched((2, 3), length=6)
    model = Remembers(task.vocab_size)
    stream, first = ids_of("".join(LINES[50:])), 3 * 6 - 3
    for probe, factor in (("x1", 1), ("x2", 2), ("x3", 3)):
        nats = 0.0
        for at in range(first, len(stream)):
            begin = at - (at - first) % 3 - (factor * 6 - 3)  # the window whose last half has the token
            logits = model.table[sum(stream[begin:at]) % 13]
            nats -= torch.log_softmax(logits, 0)[stream[at]].item()
        found = evaluate(model, task, probe, batch_size=4)
        assert found["loss"] == pytest.approx(nats / (len(stream) - first), rel=1e-5)
        assert found["bpb"] == pytest.approx(nats / math.log(2) / (len(stream) - first), rel=1e-5)


def test_without_longer_windows_nothing_is_probed():
    task = LanguageModeling(SHAPE, lines(), Byte())
    assert task.probes == () and task.probe_note == ""


def test_the_note_says_what_is_scored_where():
    note = stretched((2, 4)).probe_note
    assert "the last 3 of each window" in note and "6 (x1), 12 (x2) and 24 (x4) tokens; 6 were trained on" in note


@pytest.mark.parametrize(
    "options, said",
    [
        ({"extrapolate": [2], "prefix": 4}, "prefix"),
        ({"extrapolate": [2, 3]}, "windows of 48 tokens, and max_len is 32; write 'length'"),
        ({"extrapolate": [1, 2], "length": 8}, "different numbers from 2"),
        ({"extrapolate": [0], "length": 8}, "different numbers from 2"),
        ({"extrapolate": [2, 2], "length": 8}, "different numbers from 2"),
    ],
)
def test_longer_windows_that_cannot_be_are_refused(options, said):
    with pytest.raises(ValueError, match=said):
        LanguageModeling(Shape(max_len=32), lines(), Byte(), **{"length": 16, **options})


def test_a_text_shorter_than_the_longest_window_is_refused():
    with pytest.raises(ValueError, match="test text has 20 tokens, and extrapolate asks for windows of 24"):
        stretched((4,), 6, ["x" * 20])
    assert scored_by(stretched((4,), 6, ["x" * 24]), "x4")[1] == [([21, 22, 23], 24)]


# --- masked language modeling


def test_masked_places_follow_their_rates():
    task = MaskedLanguageModeling(Shape(max_len=100), lines(), Byte())
    task.prepare()
    batch = task.batch(1000, seeded())
    n, chosen = batch.target.numel(), batch.weight > 0

    def close(count, of, p):
        assert abs(count - of * p) < 3 * math.sqrt(of * p * (1 - p)), (count / of, p)

    close(chosen.sum().item(), n, 0.15)
    k = chosen.sum().item()
    masked = chosen & (batch.source == SHAPE.mask)
    kept = chosen & (batch.source == batch.target)
    vocabulary = task.vocab_size - SPECIALS
    close(masked.sum().item(), k, 0.8)
    close(kept.sum().item(), k, 0.1 + 0.1 / vocabulary)
    strange = batch.source[chosen & ~masked & ~kept]
    assert (strange >= SPECIALS).all() and len(strange.unique()) > 0.8 * vocabulary
    assert batch.source[~chosen].equal(batch.target[~chosen])
    assert (batch.target != SHAPE.mask).all()


def test_every_masked_row_has_a_target_and_padding_never_is_one():
    task = MaskedLanguageModeling(Shape(max_len=8), Lines(LINES, LINES[:3], LINES[:1]), Byte(), rate=0.01)
    task.prepare()
    for batch in (task.batch(500, seeded()), *task.batches("dev", 4), *task.batches("test", 4)):
        assert (batch.weight.sum(1) >= 1).all()
        if batch.target_keep is not None:
            assert not batch.weight[~batch.target_keep].any()
            assert batch.source_keep.equal(batch.target_keep)


def test_evaluation_masks_are_fixed():
    one, two = (MaskedLanguageModeling(SHAPE, lines(), Byte()) for _ in range(2))
    one.prepare(), two.prepare()
    one.batch(3, seeded())
    for a, b in zip(one.batches("dev", 4), two.batches("dev", 4), strict=True):
        assert a.source.equal(b.source) and a.weight.equal(b.weight)
    dev, test = (next(one.batches(split, 4)) for split in ("dev", "test"))
    assert not dev.weight.equal(test.weight)


# --- classification


def test_labels_are_tokens_after_the_text_and_the_only_choices():
    task = Classification(SHAPE, labeled(), Byte())
    task.prepare()
    assert task.labels == ["bad", "good", "odd"]
    assert task.vocab_size == 260 + 3 and task.choices.tolist() == [260, 261, 262]
    assert task.decode([261]) == "good" and task.decode([*ids_of("hi"), 262]) == "h i odd"
    rows = [row for batch in task.batches("test", 2) for row in zip(batch.source, batch.target, strict=True)]
    for (source, target), example in zip(rows, task.data.splits.test, strict=True):
        assert Byte().decode(source) == example.source and task.decode(target) == example.target


def test_labels_are_no_text_to_the_tokenizer():
    task = Classification(SHAPE, Pairs([("ab", "XY"), ("ba", "Z")], [("a", "Z")], [("b", "Z")]), Char(unknown=False))
    task.prepare()
    assert task.vocab_size == SPECIALS + 2 + 2


def test_long_texts_are_cut_and_it_is_noted():
    rows = [("a" * 30, "x"), ("b", "y")]
    task = Classification(SHAPE, Pairs(rows * 5, rows, rows), Byte())
    task.prepare()
    assert next(task.batches("dev", 2)).source.shape == (2, 15)
    assert task.notes[0] == "train: 5 of 10 sources are cut at 15 tokens"


def test_labels_that_cannot_be_learnt_are_refused():
    rows = [("a", "x"), ("b", "y")]
    with pytest.raises(ValueError, match="no training example has the label 'z'"):
        Classification(SHAPE, Pairs(rows, [("c", "z")], rows), Byte()).prepare()
    with pytest.raises(ValueError, match="at least two labels"):
        Classification(SHAPE, Pairs(rows[:1], rows[:1], rows[:1]), Byte()).prepare()
    with pytest.raises(ValueError, match="needs a source"):
        Classification(SHAPE, lines(), Byte())
    with pytest.raises(ValueError, match="drop the data's 'source'"):
        LanguageModeling(SHAPE, labeled(), Byte())


# --- sequence to sequence


def test_targets_end_in_one_end_token_that_counts():
    task = SequenceToSequence(Shape(max_len=40), translated(), Byte())
    task.prepare()
    for batch in task.batches("train", 6):
        for target, weight in zip(batch.target, batch.weight, strict=True):
            n = int(weight.sum())
            assert weight[:n].all() and target[n - 1] == SHAPE.eos and SHAPE.eos not in target[: n - 1]
            assert "aller" in task.decode(target) and task.decode(target).endswith("fois")


def test_end_and_padding_may_share_an_id():
    task = SequenceToSequence(Shape(max_len=40, eos=0), translated(), Byte())
    task.prepare()
    lengths = [len(example.target.encode()) + 1 for example in task.data.splits.train]
    assert [int(n) for batch in task.batches("train", 7) for n in batch.weight.sum(1)] == lengths


def test_long_answers_are_cut_and_it_is_noted():
    task = SequenceToSequence(SHAPE, translated(), Byte(), source_length=4, target_length=5)
    task.prepare()
    assert next(task.batches("dev", 2)).target.shape == (2, 5)
    assert "dev: 5 of 5 targets are cut at 5 tokens" in task.notes


# --- generated tasks


def real(ids, keep):
    return [row[: int(n)].tolist() for row, n in zip(ids, keep.sum(1), strict=True)]


@pytest.mark.parametrize("kind, answer", [(Copy, list), (Reverse, lambda x: x[::-1]), (Sort, sorted)])
@pytest.mark.parametrize("eos", [True, False])
def test_answers_are_right(kind, answer, eos):
    task = kind(SHAPE, symbols=6, min_length=2, max_length=5, eos=eos)
    batch = task.batch(300, seeded())
    sources, targets = real(batch.source, batch.source_keep), real(batch.target, batch.target_keep)
    assert targets == [answer(row) + [SHAPE.eos] * eos for row in sources]
    assert {len(row) for row in sources} == {2, 3, 4, 5}
    assert {id for row in sources for id in row} == set(range(SPECIALS, SPECIALS + 6))
    assert batch.weight.equal(batch.target_keep.float())


def test_rows_of_one_length_need_no_padding():
    batch = Copy(SHAPE, min_length=8, max_length=8, eos=False).batch(5, seeded())
    assert batch.source_keep is None and batch.target_keep is None and batch.target.equal(batch.source)


def test_recall_answers_with_the_value_of_the_key():
    task = AssociativeRecall(SHAPE, pairs=3, keys=6, values=5, queries=4)
    batch = task.batch(200, seeded())
    for source, target, weight in zip(batch.source.tolist(), batch.target.tolist(), batch.weight, strict=True):
        known = dict(zip(source[::2], source[1::2], strict=True))
        assert len(known) == 3
        assert [known[key] for key in target[::2]] == target[1::2]
        assert weight.tolist() == [0, 1] * 4
    assert set(batch.source[:, ::2].unique().tolist()) == set(range(4, 10))
    assert set(batch.target[:, 1::2].unique().tolist()) == set(task.choices.tolist()) == set(range(10, 15))
    assert task.vocab_size == 15


@pytest.mark.parametrize(
    "make",
    [
        lambda: Copy(SHAPE, min_length=4, max_length=3),
        lambda: Sort(SHAPE, min_length=0),
        lambda: Reverse(SHAPE, symbols=0),
        lambda: AssociativeRecall(SHAPE, pairs=9, keys=8),
        lambda: AssociativeRecall(SHAPE, values=1),
        lambda: MaskedLanguageModeling(SHAPE, lines(), Byte(), rate=0.0),
        lambda: SequenceToSequence(SHAPE, translated(), Byte(), target_length=1),
    ],
)
def test_options_that_cannot_be_are_refused(make):
    with pytest.raises(ValueError, match="should be|need"):
        make()
