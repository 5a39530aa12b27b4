"""The table for a paper in LaTeX."""

from __future__ import annotations

import re

from ..judging.gate import Gate
from ..judging.verdict import describe_rows
from ..table import Table
from ..text import one_line, shorten
from . import claims
from .caption import caption, footnotes
from .columns import columns

TEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\textquotedbl{}", "`": r"\textasciigrave{}", "'": r"\textquotesingle{}",
    "[": "{[}", "]": "{]}", "*": "{*}", "±": r"$\pm$", "−": "$-$", "…": r"\ldots{}", "·": r"$\cdot$", "×": r"$\times$",
}  # fmt: skip
"""What TeX reads as a command, or fonts of old lack. After a line's end a star or bracket would be an argument."""


def to_latex(table: Table, gate: Gate | None = None) -> str:
    """A `table` for the package `booktabs`; in names beyond Latin letters it takes LuaLaTeX or XeLaTeX to see them."""
    chosen = columns(table)
    lines = [" & ".join(tex(column.text(row)) for column in chosen) + r" \\" for row in table.rows]
    reasons = [f"{row.name}: {shorten(row.reason)}" for row in table.rows if row.reason]
    verdicts = [*describe_rows(table), *claims.describe_claims(table)]
    notes = [*(gate.lines if gate else []), *verdicts, *caption(table), *reasons, *footnotes(table)]
    return "\n".join([
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{tex(table.title)}}}",
        rf"\begin{{tabular}}{{{''.join('r' if column.right else 'l' for column in chosen)}}}",
        r"\toprule",
        " & ".join(tex(column.head) for column in chosen) + r" \\",
        r"\midrule",
        *lines,
        r"\bottomrule",
        r"\end{tabular}",
        *(["", r"\footnotesize\raggedright", *(rf"{tex(note)}\par" for note in notes)] if notes else []),
        r"\end{table}",
        "",
    ])  # fmt: skip


def tex(text: str) -> str:
    """Text that LaTeX prints as it is; the minus of a number is one."""
    escaped = "".join(TEX.get(character, character) for character in one_line(text)).replace("--", "-{}-")
    return re.sub(r"(?<![\w.$}-])-(?=\d)|(?<=\{\[\})-(?=\d)", "$-$", escaped)
