"""What was found of each variant, as text, JSON, JUnit's XML and Markdown."""

from __future__ import annotations

import json as json_file
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from time import perf_counter
from xml.etree import ElementTree

from tabulate import tabulate

from .harness import FAILED, PASSED, SKIPPED, Result, Subject, examine
from .suites import load_suite

FORMAT = 1
"""Version of the JSON."""
MARKS = {PASSED: "✓", SKIPPED: "–", FAILED: "✗"}


@dataclass(frozen=True)
class Findings:
    """All results of one variant, what it was refused by, and how long it took."""

    variant: str
    results: tuple[Result, ...]
    refusals: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def failures(self) -> list[Result]:
        return [result for result in self.results if result.status == FAILED]

    def line(self) -> str:
        return f"{self.variant}  {count_results(self.results)}  {self.seconds:.1f} s"


Show = Callable[[Findings, bool], None]
"""Is told what was found so far of a variant after each property, and whether that is all."""


def gather(subject: Subject, only: Collection[str] = (), show: Show = lambda found, over: None) -> Findings:
    """All that `examine` finds of a variant."""
    began = perf_counter()
    results: list[Result] = []

    def so_far() -> Findings:
        return Findings(subject.label, tuple(results), tuple(subject.refusals), perf_counter() - began)

    for result in examine(subject, load_suite(subject.slot), only):
        results.append(result)
        show(so_far(), False)
    show(so_far(), True)
    return so_far()


def count_results(results: Sequence[Result]) -> str:
    """`20 passed, 2 do not apply, 1 failed`."""
    found = Counter(result.status for result in results)
    words = {PASSED: "passed", SKIPPED: "do not apply" if found[SKIPPED] != 1 else "does not apply", FAILED: "failed"}
    return ", ".join(f"{found[status]} {word}" for status, word in words.items() if found[status])


def text(every: Sequence[Findings]) -> str:
    """A row per property of one variant; of several, a row per variant and what failed."""
    if len(every) == 1:
        return format_rows(every[0])
    parts = [found.line() for found in every]
    for found in every:
        parts += [format_failure(result) for result in found.failures]
    results = [result for found in every for result in found.results]
    return "\n".join([*parts, f"{len(every)} variants: {count_results(results)}"]) + "\n"


def format_rows(found: Findings) -> str:
    parts = [found.variant]
    width = max(len(result.check) for result in found.results)
    parts += [f"  {result.line(width)}" for result in found.results]
    parts += [format_failure(result) for result in found.failures]
    partners = max((result.partners for result in found.results), key=len)
    parts += ["partners:", *(f"  {partner}" for partner in partners)] if partners else []
    parts += ["refused:", *(f"  {refusal}" for refusal in found.refusals)] if found.refusals else []
    return "\n".join([*parts, found.line()]) + "\n"


def format_failure(result: Result) -> str:
    head = f"{result.variant} fails '{result.check}':"
    lines = [textwrap.fill(line, 118, break_on_hyphens=False) for line in result.reason.splitlines()]
    return "\n" + head + "\n" + textwrap.indent("\n".join(lines), "  ") + "\n"


def json(every: Sequence[Findings]) -> str:
    """Strict JSON."""
    document = {
        "format": FORMAT,
        "failed": sum(len(found.failures) for found in every),
        "variants": [asdict(found) for found in every],
    }
    return json_file.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def junit(every: Sequence[Findings]) -> str:
    """A test suite per variant with a test case per property, as the readers of JUnit's XML expect it."""
    top = ElementTree.Element("testsuites", name="zoo check")
    for found in every:
        status = Counter(result.status for result in found.results)
        suite = ElementTree.SubElement(
            top, "testsuite", name=found.variant, tests=str(len(found.results)), failures=str(status[FAILED]),
            errors="0", skipped=str(status[SKIPPED]), time=f"{found.seconds:.3f}",
        )  # fmt: skip
        for result in found.results:
            case = ElementTree.SubElement(
                suite, "testcase", classname=found.variant, name=result.check, time=f"{result.seconds:.3f}"
            )
            if result.status == FAILED:
                told = ElementTree.SubElement(
                    case, "failure", message=strip_unprintable(result.reason.partition("\n")[0])
                )
                told.text = strip_unprintable(result.reason)
            elif result.status == SKIPPED:
                ElementTree.SubElement(case, "skipped", message=strip_unprintable(result.reason))
    ElementTree.indent(top)
    return ElementTree.tostring(top, encoding="unicode", xml_declaration=True) + "\n"


def strip_unprintable(said: str) -> str:
    """The text without the characters that no XML may hold."""
    return re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "", said)


def markdown(every: Sequence[Findings]) -> str:
    """A table per group of variants that the same is held of, variant by property, and the reasons below."""
    groups: dict[tuple[str, ...], list[Findings]] = {}
    for found in every:
        groups.setdefault(tuple(result.check for result in found.results), []).append(found)
    results = [result for found in every for result in found.results]
    notes: dict[str, int] = {}
    parts = [
        "# Conformance",
        f"What `zoo check` finds of {len(every)} variants: {count_results(results)}. "
        "✓ holds with every partner, – does not apply, ✗ fails; a number is that of a note. docs/plugins.md says what "
        "each property is; `zoo check SLOT:NAME` shows one variant with its partners.",
    ]
    for checks, group in groups.items():
        body = [[found.variant, *(format_mark(result, notes) for result in found.results)] for found in group]
        parts.append(tabulate(body, ["", *checks], "pipe", disable_numparse=True))
    parts.append("\n".join(f"{number}. {escape(reason)}" for reason, number in notes.items()))
    return "\n\n".join(filter(None, parts)) + "\n"


def format_mark(result: Result, notes: dict[str, int]) -> str:
    """A sign, with the number of the note that gives its reason."""
    if not result.reason:
        return MARKS[result.status]
    return f"{MARKS[result.status]} {notes.setdefault(result.reason, len(notes) + 1)}"


def escape(said: str) -> str:
    return re.sub(r"[\\|*`<_]", r"\\\g<0>", " ".join(said.split()))


FORMATS: dict[str, Callable[[Sequence[Findings]], str]] = {
    form.__name__: form for form in (text, json, junit, markdown)
}
