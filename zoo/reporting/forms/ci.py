"""Forms of a table that other programs show: JUnit, a GitHub summary, a badge.

Names are whatever a user wrote, so each form escapes them in its own way.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from ..judging.gate import Change, Gate, is_unfinished
from ..table import Row, Table
from ..text import one_line, shorten
from .markdown import to_markdown

SUMMARY = 1024 * 1024
"""Bytes that GitHub shows of a step's summary."""

COMMENT = 65_536
"""Characters that GitHub takes as a comment."""

CUT = "\n\n**Cut here**, for no more is shown in this place; `report.md` has all of it.\n"
COLOURS = {"regression": "#cb2431", "failed": "#b75c00", "cannot tell": "#8a6d00", "gone": "#8a6d00"}
GREEN, GREY = "#28783d", "#555555"

NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_junit(table: Table, gate: Gate | None = None) -> str:
    """JUnit XML: a case for each row; a regression fails it, a run that failed or is missing is an error."""
    suite = ElementTree.Element("testsuite", name=_xml(table.name))
    cases = [*_cases(table, gate)]
    for name, seconds, kind, text in cases:
        case = ElementTree.SubElement(suite, "testcase", classname=_xml(table.name), name=_xml(name))
        case.set("time", f"{seconds:.3f}")
        if kind == "system-out":
            ElementTree.SubElement(case, kind).text = _xml(text)
        else:
            ElementTree.SubElement(case, kind, message=_xml(text), type=kind).text = _xml(text)
    root = ElementTree.Element("testsuites", name="zoo")
    kinds = Counter(kind for _, _, kind, _ in cases)
    for element in (root, suite):
        element.set("tests", str(len(cases)))
        for name, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            element.set(name, str(kinds[kind]))
        element.set("time", f"{sum(seconds for _, seconds, _, _ in cases):.3f}")
    root.append(suite)
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _cases(table: Table, gate: Gate | None) -> Iterator[tuple[str, float, str, str]]:
    """Name, seconds of training, element and text of each row, in the table's order, then of those that are gone."""
    changes = {change.name: change for change in gate.changes} if gate else {}
    for row in table.rows:
        seconds = (row.train_seconds or 0.0) * row.done
        yield row.name, seconds, *_ended(gate, row, changes.pop(row.name, None))
    for change in changes.values():
        yield change.name, 0.0, "failure" if gate and gate.fails(change) else "skipped", change.text


def _ended(gate: Gate | None, row: Row, change: Change | None) -> tuple[str, str]:
    if gate is None or change is None:
        text = f"{row.progress}: {row.reason}" if row.reason else row.progress
        return ("skipped" if not row.runs else "error" if is_unfinished(row) else "system-out"), text
    if change.kind == "failed":
        return "error", change.text
    if gate.fails(change):
        return "failure", change.text
    return ("skipped" if change.kind == "cannot tell" or not row.runs else "system-out"), change.text


def _xml(text: str) -> str:
    """On one line, and without characters that XML has no place for."""
    return NOT_XML.sub("\ufffd", one_line(text))


def to_github(table: Table, gate: Gate | None = None) -> str:
    """Markdown for `$GITHUB_STEP_SUMMARY`, no longer than GitHub shows."""
    return cut(_quiet(to_markdown(table, gate)), SUMMARY)


def to_comment(table: Table, gate: Gate | None = None) -> str:
    """Markdown for a comment, no longer than GitHub takes, with room for a line of the workflow's own."""
    return cut(_quiet(to_markdown(table, gate)), COMMENT - 256)


def _quiet(text: str) -> str:
    """Markdown in which no name calls a person or links to an issue: a comment that is not shown parts `@` and `#`."""
    return re.sub(r"[@#](?=\w)|(?<=\bGH)-(?=\d)", r"\g<0><!-- -->", text, flags=re.IGNORECASE)


def cut(text: str, limit: int) -> str:
    """At most `limit` bytes of UTF-8, whole lines if there are several, and a sentence that says if that is not all."""
    whole = text.encode("utf-8", "replace")
    if len(whole) <= limit:
        return whole.decode()
    kept = whole[: limit - len(CUT.encode())].decode("utf-8", "ignore")
    return (kept.rpartition("\n")[0] or kept) + CUT


def verdict(table: Table, gate: Gate | None) -> tuple[str, str]:
    """What a badge says, and its colour."""
    if gate:
        kinds = [kind for kind in COLOURS if any(change.kind == kind for change in gate.changes)]
        return gate.summary, COLOURS[kinds[0]] if kinds else GREEN
    runs, done = (sum(count(row) for row in table.rows) for count in (lambda row: len(row.runs), lambda row: row.done))
    colour = COLOURS["failed"] if any(map(is_unfinished, table.rows)) else GREEN if done else GREY
    return f"{done} of {runs} runs done", colour


def to_shields(table: Table, gate: Gate | None = None) -> str:
    """JSON for the endpoint badge of shields.io."""
    message, colour = verdict(table, gate)
    badge = {"schemaVersion": 1, "label": "zoo", "message": message, "color": colour.lstrip("#")}
    return json.dumps(badge | {"isError": colour == COLOURS["regression"]}) + "\n"


def to_badge(table: Table, gate: Gate | None = None) -> str:
    """A small SVG picture: what the comparison is called, and how it stands."""
    message, colour = verdict(table, gate)
    label = shorten(_xml(table.name)) or "zoo"
    left, right = (round(6.6 * len(text)) + 12 for text in (f"zoo {label}", message))
    said, full = (escape(text, {'"': "&quot;"}) for text in (message, f"zoo {label}: {message}"))
    half = left + right / 2
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" aria-label="{full}">'
    return f"""{svg}
<title>{full}</title>
<rect width="{left}" height="20" fill="{GREY}"/>
<rect x="{left}" width="{right}" height="20" fill="{colour}"/>
<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
<text x="{left / 2:g}" y="14" textLength="{left - 12}">zoo {escape(label)}</text>
<text x="{half:g}" y="14" textLength="{right - 12}">{said}</text>
</g>
</svg>
"""
