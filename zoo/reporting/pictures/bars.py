"""Differences with their intervals in one picture: rows against the baseline, then slots."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from zoo import numbers

from ..drawing import COLOURS, Scale
from ..judging.bars import Bar, fit_scale, group_bars
from ..judging.verdict import findings, rule
from ..table import Table
from ..text import one_line
from .canvas import GREY, LETTER, save, set_scale, sheet

WORDS = {
    "better": ("^", COLOURS[0], True),
    "worse": ("v", COLOURS[1], True),
    "no difference": ("s", COLOURS[4], True),
    "cannot tell": ("o", GREY, False),
}
"""The mark of a verdict, its colour, and whether it is filled: no two share mark and filling."""

MIDDLE, RIGHT = 4.6, 3.5  # inches of what is drawn, and of what is said of it
FOLD = 46  # letters on a line
LINE, HEAD, ABOVE, BELOW = 0.42, 0.5, 0.8, 1.1  # of a row, of a group's title, of the margins
ENDS = {-1: "<", 1: ">"}
PLAIN = {"facecolor": "white", "edgecolor": "none", "pad": 2}
SAID = "line: 95 % interval; small dot: a seed; grey: counts as no difference"
MOST = 110  # letters of a line below


def bar_picture(table: Table, path: Path) -> None:
    """Draw every difference with a verdict, its interval and its seeds."""
    found = group_bars(table)
    drawn = [bar for bars in found.values() for bar in bars]
    scale = fit_scale(drawn, rule(table).margin)
    depth = sum(HEAD + LINE * len(bars) for bars in found.values())
    left = 0.4 + LETTER * max(len(line) for bar in drawn for line in fold(bar.name))
    width, height = left + MIDDLE + RIGHT, ABOVE + depth + BELOW
    figure = sheet(width, height)
    axes = figure.add_axes((left / width, BELOW / height, MIDDLE / width, depth / height))
    set_scale(axes, "x", scale)
    axes.set_ylim(depth, 0)
    _draw_ground(axes, table)
    place = 0.0
    for name, bars in found.items():
        _write_beside(axes, place + 0.62 * HEAD, name, (0.15 - left) / MIDDLE, weight="bold", bbox=PLAIN)
        for number, bar in enumerate(bars):
            _draw_row(axes, bar, place + HEAD + LINE * (number + 0.5), scale)
        place += HEAD + LINE * len(bars)
    _add_titles(figure, axes, table, drawn, height)
    save(figure, path)


def _draw_ground(axes, table: Table) -> None:
    margin = rule(table).margin
    axes.axvspan(-margin, margin, color="0.93", linewidth=0)
    axes.axvline(0, color=GREY, linewidth=1)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.set_yticks([])
    left, right = ("better", "worse") if table.metric.better == "lower" else ("worse", "better")
    axes.set_xlabel(f"← {left}        {table.metric.name} less the baseline's        {right} →", parse_math=False)


def _draw_row(axes, bar: Bar, at: float, scale: Scale) -> None:
    verdict = bar.verdict
    colour = WORDS[verdict.word][1]
    if verdict.interval:
        low, high = verdict.interval
        ends = [max(low, scale.low), min(high, scale.high)]
        axes.plot(ends, [at, at], color=colour, linewidth=2, solid_capstyle="butt")
        for end, bound, side in zip(ends, (low, high), (-1, 1), strict=True):
            axes.plot([end], [at], marker="|" if end == bound else ENDS[side], color=colour, markersize=9)
    seeds = list(bar.seeds.values())
    axes.plot(seeds, [at] * len(seeds), ".", color=colour, markersize=5, alpha=0.55, linewidth=0)
    axes.plot([verdict.mean], [at], **_choose_mark(verdict.word))
    _write_beside(axes, at, "\n".join(fold(bar.name)), -0.03, ha="right")
    _write_beside(axes, at, f"{bar.phrase}\n{numbers.between(verdict)}", 1.04)


def fold(name: str) -> list[str]:
    """At most two lines, the second cut where there is more."""
    return textwrap.wrap(one_line(name), FOLD, max_lines=2, placeholder=" …") or [""]


def _write_beside(axes, at: float, text: str, x: float, **style: Any) -> None:
    axes.text(x, at, text, transform=axes.get_yaxis_transform(), va="center", fontsize=9.5, parse_math=False, **style)


def _add_titles(figure, axes, table: Table, drawn: Sequence[Bar], height: float) -> None:
    """The title, and what the marks mean that are there."""
    figure.text(0.15 / figure.get_figwidth(), 1 - 0.32 / height, one_line(table.title), fontsize=13, parse_math=False)
    said = "\n".join(describe_marks(table))
    figure.text(0.15 / figure.get_figwidth(), 0.12 / height, said, fontsize=9.5, color=GREY, parse_math=False)
    words = [word for word in WORDS if any(bar.verdict.word == word for bar in drawn)]
    for word in words:
        axes.plot([], [], label=word, **_choose_mark(word))
    axes.legend(
        loc="upper left", bbox_to_anchor=(0.05 / figure.get_figwidth(), 1 - 0.4 / height), frameon=False,
        bbox_transform=figure.transFigure, ncols=len(words), fontsize=9.5, handletextpad=0.2, columnspacing=1.4,
    )  # fmt: skip


def describe_marks(table: Table) -> list[str]:
    """What the lines and dots are, and who has none: rows without a verdict."""
    without = [finding.row.name for finding in findings(table).values() if not finding.phrase and finding.row.runs]
    named = textwrap.shorten(one_line(f"no verdict: {', '.join(without)}"), MOST, placeholder=" …")
    return [SAID, *([named] if without else [])]


def _choose_mark(word: str) -> dict[str, Any]:
    mark, colour, filled = WORDS[word]
    fill = colour if filled else "white"
    return {"marker": mark, "color": colour, "markerfacecolor": fill, "markeredgewidth": 1.6, "markersize": 9,
            "linewidth": 0}  # fmt: skip
