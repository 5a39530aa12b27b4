"""Variants as tests of pytest: `pytest --zoo-check SLOT:NAME` has an item per property. Unasked it costs nothing."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("zoo", "Transformer Zoo")
    told = "Hold variants to what every variant must do: SLOT:NAME, a plugin or a FILE.py; repeatable."
    group.addoption("--zoo-check", action="append", default=[], metavar="WHAT", help=told)


def pytest_collection_modifyitems(session: pytest.Session, items: list[pytest.Item]) -> None:
    for what in session.config.getoption("--zoo-check"):
        from zoo.faults import SpecError
        from zoo.testing.selection import list_trials

        try:
            found = list(list_trials(what))
        except SpecError as error:
            raise pytest.UsageError(f"--zoo-check {what}: {error}") from error
        items += [
            Property.from_parent(session, name=f"{trial.subject.label}-{check}", trial=trial, check=check)
            for trial, check in found
        ]


class Property(pytest.Item):
    """One property of one variant."""

    def __init__(self, *, trial, check: str, **rest):
        super().__init__(**rest)
        self.trial = trial
        self.check = check

    def runtest(self) -> None:
        from zoo.testing.selection import report_outcome

        report_outcome(self.trial.run(self.check))

    def reportinfo(self):
        return self.path, None, f"{self.trial.subject.label} {self.check}"
