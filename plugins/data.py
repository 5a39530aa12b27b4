"""Where examples come from: what every Python ships, text files, tables."""

from __future__ import annotations

import csv
import glob
import gzip
import hashlib
import io
import json
import os
import re
import sys
import sysconfig
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from zoo.parts import nearest
from zoo.tasks import Data, Example, Splits

Files = str | list[str]
Share = float | str | list[str]
Groups = Mapping[str, list[Example]]


class PythonDocs(Data):
    """The English prose of `pydoc_data.topics`, each paragraph once.

    Topics contain each other, so the smallest come first and the larger lose what was seen. 378 kB on Python 3.11.
    """

    def read(self) -> Splits:
        from pydoc_data.topics import topics

        seen: set[str] = set()
        groups = {}
        for name in sorted(topics, key=lambda name: (len(topics[name]), name)):
            fresh = []
            for paragraph in topics[name].split("\n\n"):
                if (text := paragraph.strip()) and text not in seen:
                    seen.add(text)
                    fresh.append(paragraph)
            if fresh:
                groups[name] = [Example("", "\n\n".join(fresh).strip("\n") + "\n\n")]
        return divide(groups, 0.1, 0.1)


class PythonSource(Data):
    """The standard library's own sources, one document per module file.

    `limit_kb` bounds what is read, in units of 1000 bytes. Tests and the tables in `encodings` are left out.
    """

    def __init__(self, *, limit_kb: int = 1000):
        if limit_kb < 100:
            raise ValueError(f"limit_kb is {limit_kb}; below 100 there are too few modules to split")
        self.limit_kb = limit_kb

    def read(self) -> Splits:
        root = Path(sysconfig.get_paths()["stdlib"])
        sizes = {path.relative_to(root).as_posix(): path.stat().st_size for path in modules(root)}
        sizes = {name: size for name, size in sizes.items() if size}  # an empty __init__.py is no document
        chosen = fill(sizes, self.limit_kb * 1000)
        return divide({name: [Example("", read_text(root / name))] for name in sorted(chosen)}, 0.1, 0.1)


class Text(Data):
    """Text files (UTF-8, `.gz` or not; paths or globs from the working directory).

    `documents` says what one document is: a file, a paragraph that ends in a blank line, or a line; each keeps its
    line ends. `dev` and `test` are files, or shares of `files`, which are split by the hash of the document; a single
    document is cut in order: train, dev, test.
    """

    def __init__(
        self,
        *,
        files: Files,
        documents: Literal["file", "blank-line", "line"] = "file",
        dev: Share = 0.1,
        test: Share = 0.1,
    ):
        check_shares(dev, test)
        self.documents = documents
        self.files, self.dev, self.test = find(files), parse_share(dev), parse_share(test)

    def read(self) -> Splits:
        return assemble(self.files, self.dev, self.test, self.examples)

    def examples(self, paths: list[Path]) -> Iterator[Example]:
        ends = {"file": r"\Z", "blank-line": r"(?<=\n\n)(?!\n)", "line": r"(?<=\n)"}[self.documents]
        for path in paths:
            text = read_text(path)
            yield from (Example("", part) for part in re.split(ends, text) if part.strip())


class Table(Data):
    """Rows with columns: the text to read (`source`, optional) and the text, label or answer to give (`target`).

    `format` follows the suffix unless given: `tsv` (no quoting), `csv`, `jsonl`, each with `.gz` or not. `parallel`
    takes the files of a split as columns, side by side, line by line: `files: [train.en, train.de]`. `pattern` reads
    lines by a regular expression whose named groups are the columns. A column is a name or a number from 0; `header`
    says whether the first line names the columns, by default where a column is given by name. `dev` and `test` are
    files, or shares of `files`; rows with the same source never come into two splits.
    """

    def __init__(
        self,
        *,
        files: Files,
        target: str | int,
        source: str | int | None = None,
        format: Literal["tsv", "csv", "jsonl", "parallel"] | None = None,
        pattern: str | None = None,
        header: bool | None = None,
        dev: Share = 0.1,
        test: Share = 0.1,
    ):
        check_shares(dev, test)
        self.has_source = source is not None
        self.columns = (source, target)
        self.pattern = check_pattern(pattern, self.columns) if pattern else None
        by_name = any(isinstance(column, str) for column in self.columns)
        self.header = by_name if header is None else header
        self.files, self.dev, self.test = find(files), parse_share(dev), parse_share(test)
        self.format = None if pattern else format or suffix(self.files[0])

    def read(self) -> Splits:
        return assemble(self.files, self.dev, self.test, self.examples)

    def examples(self, paths: list[Path]) -> Iterator[Example]:
        source, target = self.columns
        for where, row in self.rows(paths):
            yield Example("" if source is None else cell(row, source, where), cell(row, target, where))

    def rows(self, paths: list[Path]) -> Iterator[tuple[str, Mapping]]:
        """Each row as `file:line` and its columns by number, or by name where they have names."""
        if self.format == "parallel":
            yield from parallel(paths)
            return
        for path in paths:
            text = read_text(path).removeprefix("\ufeff")
            if self.pattern:
                yield from matches(path, text, self.pattern)
            elif self.format == "jsonl":
                yield from objects(path, text)
            else:
                yield from cells(path, text, self.format, self.header)


def parallel(paths: list[Path]) -> Iterator[tuple[str, Mapping]]:
    columns = [lines(read_text(path)) for path in paths]
    if len({len(column) for column in columns}) > 1:
        counts = ", ".join(f"{path} has {len(column)}" for path, column in zip(paths, columns, strict=True))
        raise ValueError(f"parallel files need the same number of lines: {counts}")
    for number, row in enumerate(zip(*columns, strict=True), 1):
        yield f"{paths[0]}:{number}", dict(enumerate(row))


def matches(path: Path, text: str, pattern: re.Pattern) -> Iterator[tuple[str, Mapping]]:
    for number, line in filled(text):
        if not (match := pattern.fullmatch(line)):
            raise ValueError(f"{path}:{number}: the line does not match the pattern: {line[:60]!r}")
        yield f"{path}:{number}", match.groupdict()


def objects(path: Path, text: str) -> Iterator[tuple[str, Mapping]]:
    for number, line in filled(text):
        try:
            row = json.loads(line)
        except ValueError as error:
            raise ValueError(f"{path}:{number}: not JSON: {error}") from None
        if not isinstance(row, dict):
            raise ValueError(f"{path}:{number}: a line should be a JSON object")
        yield f"{path}:{number}", row


def cells(path: Path, text: str, format: str | None, header: bool) -> Iterator[tuple[str, Mapping]]:
    rows = quoted(path, text) if format == "csv" else ((number, line.split("\t")) for number, line in filled(text))
    names = next(rows, (0, []))[1] if header else []
    for number, row in rows:
        yield f"{path}:{number}", dict(enumerate(row)) | dict(zip(names, row, strict=False))


def quoted(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV file with the number of the line on which each ends."""
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
    except csv.Error as error:
        raise ValueError(f"{path}:{reader.line_num}: {error}") from None


def cell(row: Mapping, column: str | int, where: str) -> str:
    value = row.get(column)
    if isinstance(value, str | int | float):
        return str(value)
    if column in row:
        raise ValueError(f"{where}: column {column!r} holds {type(value).__name__}; it should be text or a number")
    known = [str(name) for name in row]
    raise ValueError(f"{where}: no column {column!r}, only {', '.join(known)}{nearest(str(column), known)}")


def lines(text: str) -> list[str]:
    """Lines end at a line feed alone: other separators are text."""
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")] if text else []


def filled(text: str) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, with their numbers."""
    return ((number, line) for number, line in enumerate(lines(text), 1) if line.strip())


def suffix(path: Path) -> str:
    ending = path.name.removesuffix(".gz").rpartition(".")[2].lower()
    if ending not in ("tsv", "csv", "jsonl"):
        raise ValueError(f"{path} does not say what it is; give 'format: tsv', csv, jsonl or parallel, or a pattern")
    return ending


def check_pattern(pattern: str, columns: tuple) -> re.Pattern:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"pattern {pattern!r} is no regular expression: {error}") from None
    for column in columns:
        if column is not None and column not in compiled.groupindex:
            raise ValueError(f"pattern {pattern!r} has no group (?P<{column}>...)")
    return compiled


def check_shares(dev: Share, test: Share) -> None:
    for name, share in (("dev", dev), ("test", test)):
        if isinstance(share, float | int) and not 0 < share < 1:
            raise ValueError(f"{name} is {share}; it should be files, or a share above 0 and below 1")
    if isinstance(dev, float) and isinstance(test, float) and dev + test >= 1:
        raise ValueError(f"dev {dev} and test {test} leave nothing to train on")


def parse_share(share: Share) -> float | list[Path]:
    return share if isinstance(share, float) else find(share)


def find(files: Files) -> list[Path]:
    """The files that paths and globs name, in the order given; `ValueError` says which are missing."""
    found: list[Path] = []
    missing = []
    for pattern in map(os.path.expanduser, [files] if isinstance(files, str) else files):
        paths = [Path(pattern)] if os.path.isfile(pattern) else []
        paths = paths or [Path(path) for path in sorted(glob.glob(pattern, recursive=True)) if os.path.isfile(path)]
        found += [path for path in paths if path not in found]
        if not paths:
            folder, name = os.path.split(pattern)
            near = nearest(name, os.listdir(folder or ".")) if os.path.isdir(folder or ".") else ""
            missing.append(f"no file {pattern!r}{near}")
    if missing or not found:
        raise ValueError(", and ".join(missing) or "no files are named")
    return found


def read_text(path: Path) -> str:
    """The whole file, its line ends untouched."""
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        return data.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: byte {error.start} (0x{data[error.start]:02x}) is not UTF-8") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path}: damaged gzip file: {error}") from None


def modules(root: Path) -> Iterator[Path]:
    """The sources of the standard library, without tests and without modules that are tables."""
    skip = {"test", "tests", "idle_test", "encodings", "pydoc_data"}
    for name in sys.stdlib_module_names - skip:
        if (file := root / f"{name}.py").is_file():
            yield file
        yield from (file for file in (root / name).rglob("*.py") if skip.isdisjoint(file.relative_to(root).parts))


def assemble(files: list[Path], dev: float | list[Path], test: float | list[Path], examples) -> Splits:
    """Read the files that are named for dev and test and split the rest.

    What stands in test is taken out of dev and train, and what stands in dev out of train.
    """
    given_dev, given_test = (list(examples(share)) if isinstance(share, list) else [] for share in (dev, test))
    tested = set(map(key, given_test))
    given_dev = [example for example in given_dev if key(example) not in tested]
    taken = tested.union(map(key, given_dev))
    groups: dict[str, list[Example]] = {}
    for example in examples(files):
        if key(example) not in taken:
            groups.setdefault(key(example), []).append(example)
    cut = divide(groups, *(0.0 if isinstance(share, list) else share for share in (dev, test)))
    splits = Splits(cut.train, given_dev or cut.dev, given_test or cut.test)
    for name, split in vars(splits).items():
        if not split:
            raise ValueError(f"the {name} split is empty: its files hold nothing, or nothing that test or dev lack")
    return splits


def key(example: Example) -> str:
    """What two splits must not share."""
    return example.source or example.target


def divide(groups: Groups, dev: float, test: float) -> Splits:
    """Shares of all text, by the hash of the group's name; a single text is cut in order."""
    if len(groups) == 1 and not (example := next(iter(groups.values()))[0]).source:
        return cut(example.target, dev, test)
    sizes = {name: sum(len(text.encode()) for pair in group for text in pair) for name, group in groups.items()}
    total = sum(sizes.values())
    tested = fill(sizes, test * total)
    chosen = {"test": tested, "dev": fill({n: s for n, s in sizes.items() if n not in tested}, dev * total)}
    chosen["train"] = sizes.keys() - chosen["test"] - chosen["dev"]
    for name, share in (("train", 1.0), ("dev", dev), ("test", test)):
        if share and not chosen[name]:
            raise ValueError(
                f"{len(groups)} documents are too few or too large to split: none fits the {name} share; "
                f"give files for dev and test, or smaller documents"
            )
    return Splits(*([e for n in groups if n in chosen[split] for e in groups[n]] for split in ("train", "dev", "test")))


def fill(sizes: Mapping[str, int], room: float) -> set[str]:
    """Names in the order of their hash, as many as the room holds; what does not fit is passed over."""
    chosen = set()
    for name in sorted(sizes, key=lambda name: hashlib.sha256(name.encode()).digest()):
        if sizes[name] <= room:
            chosen.add(name)
            room -= sizes[name]
    return chosen


def cut(text: str, dev: float, test: float) -> Splits:
    """First the training text, then dev, then test, counted in characters."""
    ends = [int(len(text) * share + 1e-6) for share in (1 - dev - test, 1 - test)]
    parts = text[: ends[0]], text[ends[0] : ends[1]], text[ends[1] :]
    return Splits(*([Example("", part)] if part else [] for part in parts))
