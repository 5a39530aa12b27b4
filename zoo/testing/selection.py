"""Which variants a text stands for, and the checks of them as a test of pytest."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

from zoo.declare.library import open_library
from zoo.faults import SpecError, nearest
from zoo.hooks import SLOTS
from zoo.registry import Entry, PluginError, Registry, discover

from .harness import FAILED, PARTNERS, SKIPPED, Result, Subject, Trial
from .suites import SUITES, load_suite


def select_variants(what: str | None = None, **discovery: Any) -> tuple[Registry, list[Entry]]:
    """The variants that `SLOT:NAME`, `SLOT`, a plugin or a `FILE.py` stands for, all there are where nothing is named,
    and the registry that they are in. Raises `SpecError`, and `PluginError` for a plugin that cannot be loaded.
    """
    file = Path(what) if what and what.endswith(".py") else None
    registry = discover(**discovery, files=[file] if file else [])
    if file:
        entries = find_owned(registry, file.stem, file.name)
    elif what and (what in SLOTS or ":" in what):
        slot, _, name = what.partition(":")
        entries = [registry.find(slot, name)] if name else registry.variants(slot)
    elif what:
        entries = find_owned(registry, what, what)
    else:
        return registry, [entry for entry in registry.variants() if entry.variant.slot in SUITES]
    for entry in entries:
        registry.load(entry)
    return registry, entries


def find_owned(registry: Registry, plugin: str, distribution: str) -> list[Entry]:
    """The variants of one plugin. Raises `SpecError` if there is none of that name, `PluginError` if it is broken."""
    found = [p for p in registry.plugins if plugin == p.plugin or distribution == p.distribution]
    if not found:
        names = [entry.variant.name for entry in registry.entries]
        slots = sorted({entry.variant.slot for entry in registry.entries if entry.variant.name == plugin})
        if slots:
            near = f"; did you mean '{slots[0]}:{plugin}'?"
        else:
            near = nearest(plugin, [*SLOTS, *(p.plugin for p in registry.plugins), *names])
        raise SpecError(f"there is no plugin '{plugin}'{near}")
    if broken := [p for p in found if p.status != "ok"]:
        raise PluginError(str(broken[0]))
    return [e for e in registry.entries if (e.plugin, e.distribution) in {(p.plugin, p.distribution) for p in found}]


def list_trials(what: str, partners: int = PARTNERS, **options: Any) -> Iterator[tuple[Trial, str]]:
    """Every variant that `what` stands for, with these options, and each property of it."""
    registry, entries = select_variants(what)
    library = open_library(registry=registry)
    for entry in entries:
        slot = entry.variant.slot
        trial = Trial(Subject(slot, registry.spelling(entry), options, library, partners), load_suite(slot))
        yield from ((trial, name) for name in trial.suite.checks)


def conformance(what: str, *, partners: int = PARTNERS, without: Collection[str] = (), **options: Any) -> Callable:
    """A test for pytest with an item per variant and property, those named in `without` left out.

    `test_log_bias = conformance("position:log-bias", strength=0.5)` is a whole test suite; `what` may also be a plugin
    or a `FILE.py`. Raises `SpecError` for what there is not.
    """
    import pytest

    every = [(trial, name) for trial, name in list_trials(what, partners, **options) if name not in without]
    ids = [f"{trial.subject.label}-{name}" for trial, name in every]

    @pytest.mark.parametrize(("trial", "check"), every, ids=ids)
    def test(trial: Trial, check: str) -> None:
        report_outcome(trial.run(check))

    return test


def report_outcome(result: Result) -> None:
    """Give a result to pytest."""
    import pytest

    if result.status == FAILED:
        pytest.fail(result.reason, pytrace=False)
    if result.status == SKIPPED:
        pytest.skip(result.reason)
