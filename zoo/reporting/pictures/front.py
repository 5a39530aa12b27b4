"""Quality against every cost that rows differ in, side by side, in one picture."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..drawing import COLOURS, Scale
from ..judging.pareto import Front, find_fronts
from ..table import Row, Table
from ..text import one_line
from .canvas import GREY, LETTER, cut_name, hide_frame, save, set_scale, sheet

NEAR = (0.09, 0.045)  # the shares of a panel within which points get one label
PANEL = (4.6, 3.7)  # inches
ABOVE, LINE = 0.95, 0.2  # of the title, and of a line in the list of names
SAID = "filled, on the steps: no other row is as good for less"


def front_picture(table: Table, path: Path) -> None:
    """Draw a panel for every cost; points have the rows' numbers, whose names stand on the right."""
    found = list(find_fronts(table).values())
    across = min(2, len(found))
    down = math.ceil(len(found) / across)
    rows = {point.number: point.row for front in found for point in front.points}
    height = max(PANEL[1] * down, LINE * len(rows) + 0.4) + ABOVE
    width = PANEL[0] * across + 0.6 + LETTER * max(len(cut_name(row.name)) for row in rows.values())
    figure = sheet(width, height)
    figure.text(0.15 / width, 1 - 0.35 / height, one_line(table.title), fontsize=13, parse_math=False)
    figure.text(0.15 / width, 1 - 0.62 / height, SAID, fontsize=10, color=GREY)
    for number, front in enumerate(found):
        left, top = PANEL[0] * (number % across) + 0.85, ABOVE + PANEL[1] * (number // across) + 0.15
        bottom, wide, high = height - top - PANEL[1] + 0.85, PANEL[0] - 1.05, PANEL[1] - 0.85
        axes = figure.add_axes((left / width, bottom / height, wide / width, high / height))
        _draw_panel(axes, table, front)
    _write_names(figure, sorted(rows.items()), (PANEL[0] * across + 0.1) / width, (width, height))
    save(figure, path)


def _draw_panel(axes, table: Table, front: Front) -> None:
    x = Scale.around((point.cost for point in front.points), 0.1)
    y = Scale.around((point.score for point in front.points), 0.1)
    set_scale(axes, "x", x)
    set_scale(axes, "y", y)
    axes.plot(*zip(*front.line, strict=True), color=COLOURS[0], linewidth=1.5)
    for point in front.points:
        best = point.row.name in front.best
        colour = COLOURS[0] if best else GREY
        axes.plot([point.cost], [point.score], "o", color=colour, markersize=7,
                  markerfacecolor=colour if best else "white")  # fmt: skip
    clear = 7 if table.metric.better == "lower" else -7  # of the steps, which leave a point to its right
    for place, numbers in gather(front, x, y):
        axes.annotate(", ".join(map(str, numbers)), place, (6, clear), xycoords="axes fraction",
                      textcoords="offset points", va="center", fontsize=9.5)  # fmt: skip
    title, _, unit, _ = front.cost
    axes.set_xlabel(f"{title} ({unit})" if unit else title)
    metric = f"{table.metric.name} ({table.metric.unit})" if table.metric.unit else table.metric.name
    said = f"test {metric}, {table.metric.better} is better"
    axes.set_title(said, loc="left", fontsize=9.5, color=GREY, parse_math=False)
    hide_frame(axes)


def gather(front: Front, x: Scale, y: Scale) -> Iterator[tuple[tuple[float, float], list[int]]]:
    """The rightmost of points that lie close together, in shares of the panel, and the numbers of their rows."""
    groups: list[dict[int, tuple[float, float]]] = []
    for point in front.points:
        here = x(point.cost), y(point.score)
        close = (group for group in groups if any(_is_near(here, place) for place in group.values()))
        group = next(close, None)
        if group is None:
            groups.append(group := {})
        group[point.number] = here
    for group in groups:
        yield max(group.values()), list(group)


def _is_near(here: tuple[float, float], there: tuple[float, float]) -> bool:
    return all(abs(a - b) < near for a, b, near in zip(here, there, NEAR, strict=True))


def _write_names(figure, rows: Sequence[tuple[int, Row]], left: float, size: tuple[float, float]) -> None:
    for line, (number, row) in enumerate(rows):
        figure.text(left, 1 - (ABOVE + 0.2 + LINE * line) / size[1], f"{number}  {cut_name(row.name)}", fontsize=9.5,
                    parse_math=False)  # fmt: skip
