"""Each row's gain over several tasks, with its interval, and its mean gain on each, in one picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..drawing import COLOURS
from ..judging.across import Across, Line
from ..text import one_line
from .canvas import NoPicture, save, sheet


def gain_picture(found: Across, path: Path) -> None:
    """Draw each row's gain with its interval, and its mean gain on each task. Raises `NoPicture`."""
    lines = [line for line in found.lines if line.whole and line.name != found.baseline][::-1]
    if not lines:
        raise NoPicture("no picture: no row has a figure over all tasks")
    figure = sheet(10, 1.8 + 0.45 * len(lines), layout="constrained")
    _draw(figure.add_subplot(), found, lines)
    save(figure, path)


def _draw(axes, found: Across, lines: Sequence[Line]) -> None:
    places = range(len(lines))
    for task, table in enumerate(found.tables):
        means = [100 * (line.cells[task].mean or 0.0) for line in lines]
        colour = COLOURS[task % len(COLOURS)]
        axes.scatter(means, places, s=26, color=colour, alpha=0.8, label=one_line(table.name), zorder=3)
    bars = {"color": "0.25", "linewidth": 5, "alpha": 0.35, "solid_capstyle": "butt"}
    gains = [line.gain for line in lines if line.gain]
    for place, gain in zip(places, gains, strict=True):
        if gain.interval:
            axes.plot([100 * bound for bound in gain.interval], [place, place], **bars)
    values = [100 * gain.value for gain in gains]
    axes.scatter(values, places, marker="|", s=320, linewidth=2.5, color="0.15", zorder=4, label="all, with 95 %")
    axes.axvline(0, color="0.4", linewidth=1)
    axes.set_yticks(places, [one_line(line.name) for line in lines], parse_math=False)
    axes.set_ylim(-0.6, len(lines) - 0.4)
    axes.set_xlabel(f"gain over {one_line(found.baseline)}, % of its score", parse_math=False)
    axes.set_title(one_line(found.title), loc="left", fontsize=13, parse_math=False)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.grid(axis="x", color="0.92")
    axes.set_axisbelow(True)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
