"""A variant under test, what is held of the variants of its slot, and how each property is found to hold or not."""

from __future__ import annotations

import functools
import json
import shlex
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from zoo.declare.library import Library, open_library
from zoo.faults import SpecError

PARTNERS = 6
"""Partners that a variant is tried among unless another number is asked for."""
TORCH = Path(torch.__file__).parent
PASSED, FAILED, SKIPPED = "passed", "failed", "does not apply"


@dataclass(frozen=True)
class Subject:
    """A variant under test, and the options that it is to have. `partners` is how many cases it should stand in,
    `backend` what compiles it.

    What makes its cases adds to `refusals` what could not be tried, and why.
    """

    slot: str
    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    library: Library = field(default_factory=open_library, repr=False)
    partners: int = PARTNERS
    backend: str = "eager"
    refusals: list[str] = field(default_factory=list, compare=False)

    @property
    def label(self) -> str:
        return f"{self.slot}:{self.name}"

    @property
    def part(self) -> Any:
        """The variant as a user would write it."""
        return {"name": self.name, **self.options} if self.options else self.name

    @property
    def command(self) -> str:
        """What to type to check it again."""
        source = self.library.registry.find(self.slot, self.name).source
        file, _, digest = source.rpartition(" sha256:")
        sets = [shlex.quote(f"{name}={json.dumps(value)}") for name, value in self.options.items()]
        more = [f"--partners {self.partners}"] if self.partners != PARTNERS else []
        return " ".join(["zoo check", file or self.label, *(f"--set {text}" for text in sets), *more])


@dataclass(frozen=True)
class Suite:
    """What is held of the variants of a slot.

    `cases(subject)` puts the variant among partners: objects of any type whose `label` says which. Each of `checks`
    looks at one case: it raises `AssertionError` with a paragraph (what was changed, what should have stayed equal, by
    how much it differs, with which partners), or returns why it does not apply, or None. Those named in `once` are
    costly, and look at the first case alone.
    """

    cases: Callable[[Subject], Sequence[Any]]
    checks: Mapping[str, Callable[[Any], str | None]]
    once: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Result:
    """One property of one variant. `reason` is why it does not apply, or the paragraph of the failure."""

    variant: str
    check: str
    status: str
    reason: str = ""
    partners: tuple[str, ...] = ()
    seconds: float = 0.0

    def line(self, width: int = 0) -> str:
        """`padding  passed  (6 partners, 0.3 s)`."""
        reason = f": {self.reason}" if self.status == SKIPPED else ""
        many = f"{len(self.partners)} partner{'s' * (len(self.partners) != 1)}"
        return f"{self.check:{width}}  {self.status}{reason}  ({many}, {self.seconds:.1f} s)"


class Trial:
    """A subject in its cases, which are made when the first property is looked at."""

    def __init__(self, subject: Subject, suite: Suite):
        self.subject = subject
        self.suite = suite

    @functools.cached_property
    def cases(self) -> Sequence[Any]:
        try:
            with use_one_thread():
                return self.suite.cases(self.subject)
        except SpecError as error:
            self.subject.refusals.append(str(error))
            return ()

    def run(self, name: str) -> Result:
        """What is found of one property."""
        if not self.cases:
            reason = "\n".join([f"No partner takes {self.subject.label}.", *self.subject.refusals])
            return Result(self.subject.label, name, FAILED, f"{reason}\nTo repeat it: {self.subject.command}")
        chosen = self.cases[:1] if name in self.suite.once else self.cases
        with use_one_thread():
            return judge(self.subject, name, self.suite.checks[name], chosen)


def examine(subject: Subject, suite: Suite, only: Collection[str] = ()) -> Iterator[Result]:
    """The result of each check (of those named in `only`, if any), as soon as it is there."""
    trial = Trial(subject, suite)
    for name in suite.checks:
        if not only or name in only:
            yield trial.run(name)
            if not trial.cases:
                return


@contextmanager
def use_one_thread() -> Iterator[None]:
    """Several threads take longer over tensors this small, and much longer where cores are shared."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def judge(subject: Subject, name: str, check: Callable[[Any], str | None], cases: Sequence[Any]) -> Result:
    """What a check finds in all cases: it fails if it does in one, and does not apply if it does to none."""
    began, skips, failures = perf_counter(), [], []
    for case in cases:
        try:
            if skip := check(case):
                skips.append(skip)
        except AssertionError as error:
            failures.append(str(error))
        except Exception as error:
            failures.append(describe_crash(error, case))
    status, reason = PASSED, ""
    if failures:
        many = f" So it is with {len(failures)} of {len(cases)} partners." if len(failures) > 1 else ""
        status, reason = FAILED, f"{failures[0]}{many} To repeat it: {subject.command} --only {name}"
    elif len(skips) == len(cases):
        status, reason = SKIPPED, "; ".join(dict.fromkeys(skips))
    partners = tuple(case.label for case in cases)
    return Result(subject.label, name, status, reason, partners, perf_counter() - began)


def describe_crash(error: Exception, case: Any) -> str:
    """An exception that is no finding, in words, with the line that raised it, or that called what did in torch."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not Path(frame.filename).is_relative_to(TORCH)]
    place = f"{Path(own[-1].filename).name}:{own[-1].lineno}"
    text = str(error).partition("\n")[0]
    return f"It should run and raised {type(error).__name__} at {place}: {text} Model: {case.label}."
