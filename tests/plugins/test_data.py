import gzip
import json
import sys
from pathlib import Path

import pytest

from zoo_plugins.data import PythonDocs, PythonSource, Table, Text

REAL = Path(__file__).parents[2] / "shared" / "data"
real = pytest.mark.skipif(not REAL.is_dir(), reason="the real data sets are not beside this checkout")
LABELED = r"(?P<label>\S+) (?P<text>.*)"


def texts(split):
    return [example.target for example in split]


def size(split):
    return sum(len(text.encode()) for example in split for text in example)


def leak(held_out, train):
    """Share of the 60-character pieces of one text that stand in the other."""
    text, known = ("".join(texts(split)) for split in (held_out, train))
    pieces = [text[i : i + 60] for i in range(0, len(text) - 60, 60)]
    return sum(piece in known for piece in pieces) / len(pieces)


def write(path, content):
    path.write_bytes(gzip.compress(content.encode()) if path.suffix == ".gz" else content.encode())
    return str(path)


def disjoint(splits):
    train, dev, test = ({example.source or example.target for example in split} for split in vars(splits).values())
    return not (train & dev or train & test or dev & test)


# --- what every Python ships


def test_python_docs_topics_do_not_leak():
    splits = PythonDocs().read()
    assert leak(splits.test, splits.train) < 0.03
    assert leak(splits.dev, splits.train) < 0.03
    assert disjoint(splits)


def test_python_docs_keep_each_paragraph_once():
    splits = PythonDocs().read()
    paragraphs = [p.strip() for split in vars(splits).values() for text in texts(split) for p in text.split("\n\n")]
    paragraphs = [p for p in paragraphs if p]
    assert len(paragraphs) == len(set(paragraphs))


def test_python_docs_keep_a_paragraph_in_its_smallest_topic():
    from pydoc_data.topics import topics

    splits = PythonDocs().read()
    kept = {text.strip() for split in vars(splits).values() for text in texts(split)}
    whole = [topic for topic in topics.values() if topic.strip() in kept]
    assert min(topics.values(), key=len) in whole and len(whole) >= 0.6 * len(topics)


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the topics differ by Python version")
def test_python_docs_sizes_on_3_11():
    splits = PythonDocs().read()
    assert sum(len(split) for split in vars(splits).values()) == 78
    assert size(splits.train) == pytest.approx(299_000, rel=0.02)
    assert size(splits.dev) == pytest.approx(38_000, rel=0.06)
    assert size(splits.test) == pytest.approx(38_000, rel=0.06)


def test_shipped_text_is_the_same_each_time():
    assert PythonDocs().read().sha256() == PythonDocs().read().sha256()
    assert PythonSource(limit_kb=200).read().sha256() == PythonSource(limit_kb=200).read().sha256()


def test_python_source_holds_modules_up_to_its_limit():
    splits = PythonSource(limit_kb=300).read()
    total = sum(size(split) for split in vars(splits).values())
    assert 270_000 < total <= 300_000
    assert 0.08 * total < size(splits.test) <= 0.1 * total
    assert disjoint(splits)
    for text in texts(splits.test):
        compile(text, "module", "exec")


# --- text


def test_text_documents_are_files_paragraphs_or_lines_and_keep_their_ends(tmp_path):
    whole = "".join(f"head {i}\nbody {i}\n\n" for i in range(40))
    path = write(tmp_path / "a.txt", whole)
    for documents, count in (("blank-line", 40), ("line", 80)):
        splits = Text(files=path, documents=documents).read()
        kept = texts(splits.train) + texts(splits.dev) + texts(splits.test)
        assert len(kept) == count
        assert all(document in whole and document.endswith("\n") for document in kept)
        assert disjoint(splits)
    for i in range(20):
        write(tmp_path / f"part{i}.txt", f"file {i:02}\n")
    splits = Text(files=str(tmp_path / "part*.txt")).read()
    assert sorted(texts(splits.train) + texts(splits.dev) + texts(splits.test)) == [f"file {i:02}\n" for i in range(20)]
    assert [len(split) for split in vars(splits).values()] == [16, 2, 2]


def test_one_document_is_cut_in_order(tmp_path):
    whole = "".join(chr(97 + i % 26) for i in range(1000))
    splits = Text(files=write(tmp_path / "a.txt.gz", whole), dev=0.05, test=0.15).read()
    assert [len(text) for split in vars(splits).values() for text in texts(split)] == [800, 50, 150]
    assert "".join(texts(splits.train) + texts(splits.dev) + texts(splits.test)) == whole


def test_equal_documents_never_straddle_splits(tmp_path):
    lines = [f"line {i % 25}\n" for i in range(100)]
    splits = Text(files=write(tmp_path / "a.txt", "".join(lines)), documents="line", dev=0.2, test=0.2).read()
    assert sum(len(split) for split in vars(splits).values()) == 100
    assert disjoint(splits)


def test_named_test_files_leave_train(tmp_path):
    train = write(tmp_path / "train.txt", "".join(f"line {i}\n" for i in range(50)))
    test = write(tmp_path / "test.txt", "line 3\nline 7\nnew\n")
    splits = Text(files=train, documents="line", dev=0.1, test=[test]).read()
    assert texts(splits.test) == ["line 3\n", "line 7\n", "new\n"]
    assert len(splits.train) + len(splits.dev) == 48
    assert disjoint(splits)


def test_the_split_follows_the_document_and_not_its_place(tmp_path):
    lines = [f"line {i}\n" for i in range(100)]
    one = Text(files=write(tmp_path / "a.txt", "".join(lines)), documents="line").read()
    two = Text(files=write(tmp_path / "b.txt", "".join(reversed(lines))), documents="line").read()
    assert set(texts(one.test)) == set(texts(two.test)) and len(one.test) > 5


def test_line_ends_are_read_as_they_are(tmp_path):
    content = "a\r\nb\u0085c\u2028d\re\n" * 50
    for name in ("a.txt", "a.txt.gz"):
        splits = Text(files=write(tmp_path / name, content)).read()
        assert "".join(texts(splits.train) + texts(splits.dev) + texts(splits.test)) == content


def test_missing_files_are_named_with_what_is_near(tmp_path):
    write(tmp_path / "train.txt", "x")
    with pytest.raises(ValueError, match=r"trian\.txt'; did you mean 'train\.txt'\?.*and no file .*none\*"):
        Text(files=[str(tmp_path / "trian.txt"), str(tmp_path / "none*")])
    with pytest.raises(ValueError, match=r"no file .*dev\.txt"):
        Text(files=str(tmp_path / "train.txt"), dev=str(tmp_path / "dev.txt"))
    with pytest.raises(ValueError, match="no files"):
        Text(files=[])


def test_bytes_that_are_no_text_are_named(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"fine \xe9 not")
    with pytest.raises(ValueError, match=r"a\.txt: byte 5 \(0xe9\) is not UTF-8"):
        Text(files=str(tmp_path / "a.txt")).read()
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"some text" * 100)[:-12])
    with pytest.raises(ValueError, match=r"b\.txt\.gz: damaged gzip"):
        Text(files=str(tmp_path / "b.txt.gz")).read()


@pytest.mark.parametrize("dev, test", [(0.0, 0.1), (0.1, 1.0), (0.5, 0.5), (-0.1, 0.1)])
def test_shares_leave_something_for_each_split(tmp_path, dev, test):
    with pytest.raises(ValueError, match="dev|test"):
        Text(files=write(tmp_path / "a.txt", "x"), dev=dev, test=test)


def test_too_few_documents_are_refused(tmp_path):
    files = [write(tmp_path / f"{i}.txt", f"text {i}") for i in range(3)]
    with pytest.raises(ValueError, match="3 documents are too few"):
        Text(files=files).read()


# --- tables


ROWS = [(f"text {i}", "good" if i % 2 else "bad") for i in range(60)]


def tables(folder):
    yield Table(
        files=write(folder / "a.tsv", "text\tlabel\n" + "".join(f"{s}\t{t}\n" for s, t in ROWS)),
        source="text",
        target="label",
    )
    yield Table(files=write(folder / "b.csv.gz", "".join(f'"{s}",{t}\r\n' for s, t in ROWS)), source=0, target=1)
    yield Table(
        files=write(folder / "c.jsonl", "".join(json.dumps({"x": s, "y": t}) + "\n" for s, t in ROWS)),
        source="x",
        target="y",
    )
    yield Table(
        files=write(folder / "d.txt", "".join(f"{t} {s}\n" for s, t in ROWS)),
        source="text",
        target="label",
        pattern=LABELED,
    )
    yield Table(
        files=[write(folder / "s", "\n".join(s for s, _ in ROWS)), write(folder / "t", "\n".join(t for _, t in ROWS))],
        source=0,
        target=1,
        format="parallel",
    )


def test_every_form_of_a_table_holds_the_same_rows(tmp_path):
    for table in tables(tmp_path):
        assert table.has_source
        splits = table.read()
        assert sorted(e for split in vars(splits).values() for e in split) == sorted(ROWS)
        assert disjoint(splits)


def test_rows_with_one_source_stay_together(tmp_path):
    path = write(tmp_path / "a.tsv", "".join(f"text {i % 20}\tlabel {i}\n" for i in range(200)))
    splits = Table(files=path, source=0, target=1, dev=0.2, test=0.2).read()
    assert sum(len(split) for split in vars(splits).values()) == 200
    assert disjoint(splits)


def test_a_table_without_source_is_text(tmp_path):
    table = Table(files=write(tmp_path / "a.tsv", "".join(f"{s}\t{t}\n" for s, t in ROWS)), target=0)
    assert not table.has_source
    assert all(example.source == "" and example.target.startswith("text") for example in table.read().train)


def test_tsv_has_no_quoting_and_csv_has(tmp_path):
    tsv = "".join(f'"odd {i}\tx\n' for i in range(30))
    assert Table(files=write(tmp_path / "a.tsv", tsv), source=0, target=1).read().train[0].source.startswith('"odd')
    quoted = "".join(f'"two\nlines, {i}",x\n' for i in range(30))
    assert "two\nlines, " in Table(files=write(tmp_path / "a.csv", quoted), source=0, target=1).read().train[0].source


def test_rows_end_at_line_feeds_alone(tmp_path):
    path = write(tmp_path / "a.tsv", "".join(f"a\u2028b\u0085c {i}\tx\r\n" for i in range(30)))
    rows = Table(files=path, source=0, target=1).read().train
    assert all(row.source.startswith("a\u2028b\u0085c ") and row.target == "x" for row in rows)


def test_a_table_says_where_it_is_wrong(tmp_path):
    tsv = write(tmp_path / "a.tsv", "text\tlabel\nhello\tx\n")
    with pytest.raises(ValueError, match=r"a\.tsv:2: no column 'lable'.*did you mean 'label'"):
        Table(files=tsv, source="text", target="lable").read()
    jsonl = write(tmp_path / "a.jsonl", '{"x": "a"}\n{"x": \n')
    with pytest.raises(ValueError, match=r"a\.jsonl:2: not JSON"):
        Table(files=jsonl, target="x").read()
    nested = write(tmp_path / "b.jsonl", '{"x": ["a"]}\n')
    with pytest.raises(ValueError, match=r"b\.jsonl:1: column 'x' holds list"):
        Table(files=nested, target="x").read()
    with pytest.raises(ValueError, match="does not say what it is"):
        Table(files=write(tmp_path / "a.txt", "x"), target=0)
    with pytest.raises(ValueError, match="no group"):
        Table(files=tsv, source="text", target="label", pattern="(?P<text>.*)")
    with pytest.raises(ValueError, match="no regular expression"):
        Table(files=tsv, target="label", pattern="(?P<label>")
    with pytest.raises(ValueError, match=r"one has 2, .*two has 1"):
        files = [write(tmp_path / "one", "a\nb\n"), write(tmp_path / "two", "a\n")]
        Table(files=files, source=0, target=1, format="parallel").read()


# --- real sets


@real
def test_tinyshakespeare_cuts_where_others_cut_it():
    splits = Text(files=str(REAL / "tinyshakespeare" / "input.txt.gz"), dev=0.05, test=0.05).read()
    assert len(splits.train[0].target) == 1_003_854
    assert sum(len(texts(split)[0]) for split in (splits.dev, splits.test)) == 111_540


@real
def test_names_are_documents():
    splits = Text(files=str(REAL / "names" / "names.txt.gz"), documents="line").read()
    assert sum(len(split) for split in vars(splits).values()) == 32_033
    assert disjoint(splits)


@real
@pytest.mark.parametrize(
    "options, counts, labels",
    [
        (dict(files="trec/train.txt.gz", test="trec/test.txt.gz", pattern=LABELED), (5452, 500), 6),
        (dict(files="sst2/train.txt.gz", dev="sst2/dev.txt.gz", test="sst2/test.txt.gz", pattern=LABELED), None, 2),
        (
            dict(
                files="cola/in_domain_train.tsv.gz",
                dev="cola/in_domain_dev.tsv.gz",
                test="cola/out_of_domain_dev.tsv.gz",
                source=3,
                target=1,
            ),
            None,
            2,
        ),
        (dict(files="ag_news/test.csv.gz", source=2, target=0), None, 4),
        (dict(files="movie_reviews/reviews.jsonl.gz", source="text", target="label"), None, 2),
        (dict(files="listops/test_d8.tsv.gz", source=1, target=0), None, 10),
    ],
    ids=["trec", "sst2", "cola", "ag_news", "movie_reviews", "listops"],
)
def test_labeled_sets_read(options, counts, labels):
    places = {name: str(REAL / options[name]) for name in ("files", "dev", "test") if name in options}
    columns = {"source": "text", "target": "label"} if "pattern" in options else {}
    splits = Table(**{**columns, **options, **places}).read()
    assert len({example.target for example in splits.train}) == labels
    assert disjoint(splits)
    if counts:
        assert len(splits.test) == counts[1]
        assert 0.95 * counts[0] < len(splits.train) + len(splits.dev) <= counts[0]


@real
def test_multi30k_pairs_lines_of_two_files():
    def files(split):
        return [str(REAL / "multi30k" / "raw" / f"{split}.{language}.gz") for language in ("en", "de")]

    splits = Table(
        files=files("train"), dev=files("val"), test=files("test_2016_flickr"), format="parallel", source=0, target=1
    ).read()
    assert len(splits.test) == 1000 and 28_900 < len(splits.train) <= 29_000
    first = splits.train[0]
    assert first.source.startswith("Two young, White males") and first.target.startswith("Zwei junge weiße Männer")


@real
def test_scan_reads_by_pattern():
    splits = Table(
        files=str(REAL / "scan" / "simple_train.txt.gz"),
        test=str(REAL / "scan" / "simple_test.txt.gz"),
        pattern="IN: (?P<command>.*) OUT: (?P<actions>.*)",
        source="command",
        target="actions",
    ).read()
    assert len(splits.test) == 4182
    assert all("I_" in example.target and "I_" not in example.source for example in splits.test)
