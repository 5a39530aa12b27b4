"""Run folders of several machines gathered into one. Needs no torch.

A finished run is never written over, and where two machines finished the same run, they must agree.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from zoo.faults import Fault, SpecError
from zoo.runs import FINISHED, SPEEDS, Run, replace, write_json

RESULT = ("spec", "seed", "status", "best", "metrics")
"""What two machines must agree on; times and memory are their own."""


def merge(out: Path, sources: Sequence[Path]) -> dict[str, dict[str, Any]]:
    """Bring the runs of `sources` into `out`, and return the records of their comparisons by name.

    Of a run that none has finished, the one that came farthest is taken, so that it can go on. Raises `SpecError`,
    before anything is written, for a folder without a comparison, for two comparisons of one name that differ, and for
    two results of one run.
    """
    sources = [source for source in sources if source.resolve() != out.resolve()]
    faults: list[Fault] = []
    documents = agreed(sources, faults)
    best: dict[str, Run] = {}
    for place in (out, *sources):
        for run in runs(place, faults):
            known = best.setdefault(run.id, run)
            if (differs := disagreement(known, run)) is not None:
                faults.append(Fault(f"{known.folder} and {run.folder} are the same run and differ in {differs}"))
            best[run.id] = max(known, run, key=progress)  # the first of equals: what lies in `out` stays
    if faults:
        raise SpecError(faults)
    for run in best.values():
        if run.folder.parent != out:
            take(run, Run(out / run.id))
    for name, document in documents.items():
        (out / name).mkdir(parents=True, exist_ok=True)
        write_json(out / name / "comparison.json", document)
        carry_speeds(out / name, [source / name for source in sources])
    return documents


def carry_speeds(target: Path, sources: Sequence[Path]) -> None:
    """Keep the times of steps by which the shards were planned, as those of any machine, so that runs stay what they
    are when they are taken up from here.
    """
    if path := next((path for source in sources if (path := source / SPEEDS).exists()), None):
        first, *_ = json.loads(path.read_text("utf-8"))["sets"]
        write_json(target / SPEEDS, {"format": 1, "sets": [{**first, "machine": None, "workers": None}]})


def agreed(places: Sequence[Path], faults: list[Fault]) -> dict[str, dict[str, Any]]:
    """The comparisons of all folders by name."""
    found: dict[str, tuple[Path, dict[str, Any]]] = {}
    for place in places:
        paths = sorted(place.glob("*/comparison.json"))
        if not paths:
            faults.append(Fault(f"{place} holds no comparison; it should be a folder that 'zoo run --out' has filled"))
        for path in paths:
            if (document := read(path, faults)) is not None:
                first, known = found.setdefault(path.parent.name, (path, document))
                if asked(known) != asked(document):
                    faults.append(Fault(f"{first} and {path} are of one name, and not the same comparison"))
    return {name: document for name, (_, document) in found.items()}


def asked(document: dict[str, Any]) -> dict[str, Any]:
    """A comparison without its file's path, the `--set`s that led to it, and what a machine knows of its trials and
    rounds.
    """
    rows = [{**row, "tuning": None, "halving": None} for row in document.get("rows", [])]
    return {**document, "file": None, "sets": None, "rows": rows}


def runs(place: Path, faults: list[Fault]) -> Iterator[Run]:
    """The runs of a folder whose record can be read."""
    for path in sorted(place.glob("*/run.json")):
        if read(path, faults) is not None:
            yield Run(path.parent)


def read(path: Path, faults: list[Fault]) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text("utf-8"))
        if isinstance(found, dict):
            return found
        error = f"it holds no object, but {type(found).__name__}"
    except (ValueError, OSError) as caught:
        error = caught
    faults.append(Fault(f"{path} cannot be read: {error}"))
    return None


def disagreement(one: Run, other: Run) -> str | None:
    """In what two finished runs differ: a part of their records, or None."""
    if not (one.finished and other.finished):
        return None
    records = one.read(), other.read()
    return next((f"'{part}'" for part in RESULT if records[0].get(part) != records[1].get(part)), None)


def progress(run: Run) -> tuple[bool, int, bool]:
    """A greater one for a run that is farther: finished, then by its step, then tried rather than not."""
    step = max((line.get("step", 0) for line in run.lines()), default=0)
    return run.finished, step if run.resume.exists() else 0, run.read().get("status") != "not run"


def take(source: Run, target: Run) -> None:
    """Copy a run, its record last: until then the target is what it was, but must begin anew.

    Raises `SpecError` if the target is in training.
    """
    with target.lock() as mine:
        if not mine:
            raise SpecError(f"{target.folder} is in training; merge when it has ended")
        if target.finished:
            return  # since we looked
        target.resume.unlink(missing_ok=True)
        files = [path for path in source.folder.glob("[!.]*") if path.is_file() and path.name != "lock"]
        for path in sorted(files, key=lambda path: path == source.record):
            replace(target.folder / path.name, lambda temporary, path=path: shutil.copyfile(path, temporary))


def missing(out: Path, documents: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The runs that a comparison asks for and that nobody has finished, as `NAME: ROW · SEED is failed`."""
    found = []
    for name, document in documents.items():
        for row in document["rows"]:
            before = [*(row.get("tuning") or {}).get("trials", ()), *(row.get("halving") or {}).get("rounds", ())]
            runs = (*row["runs"], *(run for tried in before for run in tried["runs"]))
            status = {run["id"]: Run(out / run["id"]).read().get("status", "not run") for run in runs}
            lacking = [run for run in runs if status[run["id"]] not in FINISHED]
            found += [f"{name}: {row['name']} · {run['seed']} is {status[run['id']]}" for run in lacking]
            if before and not lacking and any(tried.get("status") is None for tried in before):
                found.append(f"{name}: what {row['name']} becomes, 'zoo run' with --out {out} finds out")
    return found
