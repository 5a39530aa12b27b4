"""Every form that a report leaves in; a new one is a module here and a line in `FORMATS`."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..judging.gate import Gate
from ..table import Table
from .ci import to_badge, to_comment, to_github, to_junit, to_shields
from .csv import to_csv
from .html import to_html
from .json import to_json
from .latex import to_latex
from .markdown import to_markdown, to_plain
from .terminal import Terminal


class Form(NamedTuple):
    """How a table, and its gate if there is one, is put: a text, or what rich prints.

    `suffix` is there for a form that every report is written in. One that is `single` holds one comparison alone.
    """

    render: Callable[[Table, Gate | None], object]
    suffix: str = ""
    single: bool = False


FORMATS = {
    "terminal": Form(Terminal),
    "markdown": Form(to_markdown, "md"),
    "plain": Form(to_plain, "txt"),
    "csv": Form(to_csv, "csv"),
    "json": Form(to_json, "json"),
    "html": Form(to_html, "html"),
    "junit": Form(to_junit, single=True),
    "github": Form(to_github),
    "comment": Form(to_comment),
    "latex": Form(to_latex),
    "badge": Form(to_badge, single=True),
    "shields": Form(to_shields, single=True),
}
