"""Run folders of several machines gathered into one. Needs no torch.

A finished run is never written over, and where two machines finished the same run, they must agree.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from zoo import files
from zoo.faults import Fault, SpecError
from zoo.record import (
    COMPARISON,
    RUN,
    SPEEDS,
    ComparisonRecord,
    RowRecord,
    RunRecord,
    Seeded,
    SpeedsRecord,
    Unreadable,
    read,
    read_comparison,
    write,
)  # fmt: skip
from zoo.record.folder import Run

RESULT = ("spec", "seed", "status", "best", "metrics")
"""What two machines must agree on; times and memory are their own."""


def merge(out: Path, sources: Sequence[Path]) -> dict[str, ComparisonRecord]:
    """Bring the runs of `sources` into `out`, and return the records of their comparisons by name.

    Of a run that none has finished, the one that came farthest is taken, so that it can go on. Raises `SpecError`,
    before anything is written, for a folder without a comparison, for two comparisons of one name that differ, and for
    two results of one run.
    """
    sources = [source for source in sources if source.resolve() != out.resolve()]
    faults: list[Fault] = []
    documents = collect_comparisons(sources, faults)
    speeds = {name: find_speeds([source / name for source in sources], faults) for name in documents}
    best: dict[str, tuple[Run, RunRecord]] = {}
    for place in (out, *sources):
        for run, record in collect_runs(place, faults):
            other, held = best.setdefault(run.id, (run, record))
            if (differs := find_disagreement(held, record)) is not None:
                faults.append(Fault(f"{other.folder} and {run.folder} are the same run and differ in {differs}"))
            if measure_progress(run, record) > measure_progress(other, held):  # of equals, what lies in `out` stays
                best[run.id] = run, record
    if faults:
        raise SpecError(faults)
    for run, _ in best.values():
        if run.folder.parent != out:
            copy_run(run, Run(out / run.id))
    for name, (_, document) in documents.items():
        (out / name).mkdir(parents=True, exist_ok=True)
        write(out / name / COMPARISON, document)
        if found := speeds[name]:
            write(out / name / SPEEDS, found)
    return {name: document for name, (_, document) in documents.items()}


def find_speeds(folders: Sequence[Path], faults: list[Fault]) -> SpeedsRecord | None:
    """The times of steps by which the shards were planned, as those of any machine, so that runs stay what they are
    when they are taken up from here.
    """
    path = next((path for folder in folders if (path := folder / SPEEDS).exists()), None)
    try:
        found = read(path, SpeedsRecord) if path else None
    except Unreadable as error:
        faults += error.faults
        return None
    return found and replace(found, sets=tuple(replace(held, machine=None, workers=None) for held in found.sets[:1]))


def collect_comparisons(places: Sequence[Path], faults: list[Fault]) -> dict[str, tuple[Path, ComparisonRecord]]:
    """The comparisons of all folders by name, and where the first of each lies."""
    found: dict[str, tuple[Path, ComparisonRecord]] = {}
    for place in places:
        paths = sorted(place.glob(f"*/{COMPARISON}"))
        if not paths:
            faults.append(Fault(f"{place} holds no comparison; it should be a folder that 'zoo run --out' has filled"))
        for path in paths:
            try:
                document = read_comparison(path.parent)
            except Unreadable as error:
                faults += error.faults
                continue
            first, known = found.setdefault(document.name, (path, document))
            if strip_machine(known) != strip_machine(document):
                faults.append(Fault(f"{first} and {path} are of one name, and not the same comparison"))
    return found


def strip_machine(document: ComparisonRecord) -> ComparisonRecord:
    """A comparison without its file's path, the `--set`s that led to it, and what a machine knows of its trials and
    rounds.
    """
    rows = tuple(replace(row, tuning=None, halving=None) for row in document.rows)
    return replace(document, file=None, sets=None, rows=rows)


def collect_runs(place: Path, faults: list[Fault]) -> Iterator[tuple[Run, RunRecord]]:
    """The runs of a folder whose record can be read, with the record."""
    for path in sorted(place.glob(f"*/{RUN}")):
        run = Run(path.parent)
        try:
            yield run, run.read()
        except Unreadable as error:
            faults += error.faults


def find_disagreement(one: RunRecord, other: RunRecord) -> str | None:
    """In what two finished runs differ: a part of their records, or None."""
    if not (one.finished and other.finished):
        return None
    return next((f"'{part}'" for part in RESULT if getattr(one, part) != getattr(other, part)), None)


def measure_progress(run: Run, record: RunRecord) -> tuple[bool, int, bool]:
    """A greater one for a run that is farther: finished, then by its step, then started rather than not."""
    step = max((line["step"] for line in run.lines()), default=0)
    return record.finished, step if run.resume.exists() else 0, record.status != "not run"


def copy_run(source: Run, target: Run) -> None:
    """Copy a run, its record last: until then the target is what it was, but must begin anew.

    Raises `SpecError` if the target is in training.
    """
    with target.lock() as mine:
        if not mine:
            raise SpecError(f"{target.folder} is in training; merge when it has ended")
        if target.finished:
            return  # since we looked
        target.resume.unlink(missing_ok=True)
        paths = [path for path in source.folder.glob("[!.]*") if path.is_file() and path.name != "lock"]
        for path in sorted(paths, key=lambda path: path == source.record):
            files.replace(target.folder / path.name, partial(shutil.copyfile, path))


def find_missing(out: Path, documents: Mapping[str, ComparisonRecord]) -> list[str]:
    """The runs that a comparison asks for and that nobody has finished, as `NAME: ROW · SEED is failed`."""
    found = []
    for name, document in documents.items():
        for row in document.rows:
            before = list_rounds(row)
            runs: tuple[Seeded, ...] = (*row.runs, *(run for each in before for run in each[1]))
            records = {run.id: Run(out / run.id).read() for run in runs}
            lacking = [run for run in runs if not records[run.id].finished]
            found += [f"{name}: {row.name} · {run.seed} is {records[run.id].status}" for run in lacking]
            if before and not lacking and any(status is None for status, _ in before):
                found.append(f"{name}: what {row.name} becomes, 'zoo run' with --out {out} finds out")
    return found


def list_rounds(row: RowRecord) -> list[tuple[str | None, tuple[Seeded, ...]]]:
    """The trials and the rounds of halving that come before the runs of a row: how each ended, and its runs."""
    trials = [(each.status, each.runs) for each in (row.tuning.trials if row.tuning else ())]
    return trials + [(each.status, each.runs) for each in (row.halving.rounds if row.halving else ())]
