"""Comparisons from Python and for the command line: a file or a mapping is checked, planned and run."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zoo.compare import comparison as compare
from zoo.compare.comparison import Comparison, attempt, read_comparison
from zoo.compare.prepared import Prepared
from zoo.declare.library import Library, open_library
from zoo.declare.override import SECTIONS
from zoo.declare.reader import Reader
from zoo.declare.shape import Shape
from zoo.declare.spec import MODEL_SLOTS, Node
from zoo.faults import Fault, SpecError

from .results import Result, report

if TYPE_CHECKING:
    from zoo.execute.estimate import Plan

Source = str | os.PathLike[str] | Mapping[str, Any]
"""The path of a YAML file, a mapping that holds what such a file does, or a mapping that is one comparison."""
UNNAMED = "comparison"
"""What a comparison is called that is given alone and without a name."""
Say = Callable[[str], None]


def validate(what: Source, *, overrides: Mapping[str, Any] | None = None) -> list[Fault]:
    """All faults of a file or of a mapping as in YAML; an empty list if it is fine.

    `overrides` change values before it is read, as `{"train.steps": 100}`. Nothing is trained and no data is read. What
    is allowed and known to go wrong is a Python warning.
    """
    try:
        library = open_source(what, None, spell_overrides(overrides))
        check_document(library, warn)
    except SpecError as error:
        return error.faults
    return []


def plan(
    what: Source,
    name: str | None = None,
    *,
    overrides: Mapping[str, Any] | None = None,
    out: str | Path = "runs",
    workers: int | None = None,
    time: bool = True,
    quiet: bool = False,
) -> Plan:
    """What a comparison would run and what that would cost; the record prints as a table.

    `what`, `name` and `overrides` are as for `run`. Rows hold parameters, FLOPs per token of a forward pass, bytes of
    the cache per token and of memory in training; the totals hold the number of runs, their FLOPs, and the seconds that
    those not finished in `out` would take with so many `workers` at once. The time is known from finished runs, or, if
    `time` is true, from a training step timed now. Reads the data. Raises `SpecError` with every fault.
    """
    from zoo.execute.comparison import plan_comparison

    comparison, prepared = open_comparison(what, name, overrides)
    say = ignore if quiet else warn
    return plan_comparison(comparison, prepared, Path(out), workers=workers, time=time, say=say)


def run(
    what: Source,
    name: str | None = None,
    *,
    overrides: Mapping[str, Any] | None = None,
    out: str | Path = "runs",
    workers: int | None = None,
    quiet: bool = False,
) -> Result:
    """Train what is missing of a comparison, write its report into `out`/`name`, and return the result.

    `what` is the path of a YAML file, a mapping that holds the same, or one comparison as a mapping, such as
    `{"model": "gpt2-like", "vary": {"norm": ["layernorm", "rmsnorm"]}, "task": "copy", "train": {"steps": 100}}`.
    `name` says which comparison of a file is meant; it may be left out where there is one, and is what a comparison
    given alone is called.
    `overrides` change values before it is read, as `{"train.steps": 100}`. `workers` runs go at once, by default one
    per core, or one on a GPU. Progress is shown in a notebook and on stderr, unless `quiet`.

    Every run is a process of its own; one that fails is a row of the result with its reason. What `out` holds already
    is not trained again. Raises `SpecError` with every fault before anything runs, and `KeyboardInterrupt` after
    Ctrl-C, once the runs have saved: the same call continues them.
    """
    from zoo import reporting
    from zoo.execute.comparison import run_comparison
    from zoo.execute.pool import STOPPED, choose_exit_code
    from zoo.execute.progress import display, silent

    comparison, prepared = open_comparison(what, name, overrides)
    states = run_comparison(
        comparison, prepared, Path(out), file=file_of(what), workers=workers,
        show=silent if quiet else display, say=ignore if quiet else warn,
    )  # fmt: skip
    result = report(comparison.name, out)
    reporting.write(result.table, Path(out) / comparison.name, ignore if quiet else warn)
    if choose_exit_code(states) == STOPPED:
        raise KeyboardInterrupt("stopped; the same call continues")
    return result


def open_comparison(
    what: Source, name: str | None, overrides: Mapping[str, Any] | None = None
) -> tuple[Comparison, Prepared]:
    """The comparison that is meant, and what its runs share. Raises `SpecError`."""
    return choose_comparison(open_source(what, name, spell_overrides(overrides)), name, warn)


def open_source(what: Source, name: str | None = None, overrides: Iterable[str] = (), **discovery: Any) -> Library:
    """The library of a file or of a mapping; a comparison given alone becomes the only one of its document."""
    if not isinstance(what, Mapping):
        return open_library(Path(what), name=name, overrides=overrides, **discovery)
    alone = "comparisons" not in what and (set(what) - set(SECTIONS) or not isinstance(what.get("models", {}), Mapping))
    document = {"comparisons": {name or UNNAMED: what}} if alone else what
    return open_library(to_plain(document), name=name, overrides=overrides, **discovery)


def to_plain(value: Any) -> Any:
    """The value as YAML would hold it: lists for tuples, texts for paths."""
    if isinstance(value, Mapping):
        return {key: to_plain(inside) for key, inside in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(inside) for inside in value]
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def file_of(what: Source) -> str:
    """The path that the report names; nothing for a mapping."""
    return "" if isinstance(what, Mapping) else os.fspath(what)


def spell_overrides(overrides: Mapping[str, Any] | None) -> list[str]:
    """The overrides as `--set` takes them."""
    return [f"{path}={json.dumps(to_plain(value))}" for path, value in (overrides or {}).items()]


def choose_comparison(library: Library, name: str | None, say: Say) -> tuple[Comparison, Prepared]:
    """The comparison of that name, or the document's only one, and what its runs share. Raises `SpecError`."""
    own = library.documents[0]
    names = list(own.value.get("comparisons", {}))
    if name is None and len(names) != 1:
        found = f"it holds {', '.join(names)}; name one" if names else "it holds no comparison"
        raise SpecError(f"{own.name}: {found}")
    return read_with_warnings(library, name or names[0], say)


def read_with_warnings(library: Library, name: str, say: Say) -> tuple[Comparison, Prepared]:
    """The same of a name; `say` gets a line for what is allowed and known to go wrong."""
    prepared = Prepared(library)
    comparison = read_comparison(library, name, prepared)
    for line in compare.warnings(comparison):
        say(line)
    return comparison, prepared


def check_document(library: Library, say: Say) -> dict[str, int]:
    """How many shapes, models and comparisons the library's own document holds. Raises `SpecError` with every fault."""
    own = Library(library.documents[:1], library.registry)
    reader = library.reader()
    for slot, node in own.section("defaults").items():
        if slot in MODEL_SLOTS:
            reader.slot(node, slot)
        else:
            reader.part(node, slot)
    for node in own.section("shapes").values():
        attempt(reader, partial(check_shape, library, reader, node))
    for node in own.section("models").values():
        attempt(reader, partial(check_model, library, reader, node))
    for name in own.section("comparisons"):
        attempt(reader, partial(read_with_warnings, library, name, say))
    reader.finish()
    return {kind: len(own.section(kind)) for kind in ("shapes", "models", "comparisons")}


def check_shape(library: Library, reader: Reader, node: Node) -> None:
    reader.shape(library.expand("shape", node, reader), Shape())


def check_model(library: Library, reader: Reader, node: Node) -> None:
    """Read a model and, where it says at which sizes, put as many of its layers together as differ."""
    from zoo.model.builder import build_on_meta

    model = reader.model(library.expand("model", node, reader))
    if model and model.shape:
        build_on_meta(model, replace(model.shape, n_layers=min(model.shape.n_layers, model.period)), reader.registry)


def warn(line: str) -> None:
    warnings.warn(line, stacklevel=3)


def ignore(line: str) -> None:
    """Say nothing."""
