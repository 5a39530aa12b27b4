"""Scores by what was tried and by what was probed: lines with a row's name at their end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from ..drawing import BANDS, DRAWN, Scale
from ..judging.probes import ProbeLine, collect_probes
from ..judging.trials import TrialLine, collect_trials
from ..table import Table
from .canvas import choose_look, cut_name, end_labels, measure_width, save, set_scale, set_titles, sheet

HIGH = 5.6  # inches of a panel
TICKS = 12  # up to so many values of a grid each has its own
MARKS = ["large mark: chosen, a diamond where that is at the edge of what was tried", "×: no score"]


def sensitivity_picture(table: Table, path: Path) -> None:
    """Draw the score on dev against every tuned setting, a panel for each."""
    found = collect_trials(table)
    width = measure_width(_name(line) for lines in found.values() for line in lines)
    figure = sheet(width, HIGH * len(found), layout="constrained")
    for axes, (name, lines) in zip(figure.subplots(len(found), squeeze=False)[:, 0], found.items(), strict=True):
        marks = MARKS if any(line.lost for line in lines) else MARKS[:1]
        said = _join_marks(marks, len(lines))
        set_titles(axes, table, said, name, f"dev {table.metric.name}, {table.metric.better} is better")
        _draw_trials(axes, lines[:DRAWN])
    save(figure, path)


def _draw_trials(axes, lines: Sequence[TrialLine]) -> None:
    values = sorted({value for line in lines for value in (*line.best, *line.lost)})
    set_scale(axes, "x", Scale.around(values))
    set_scale(axes, "y", Scale.around(score for line in lines for score in line.best.values()))
    if len(values) <= TICKS and not any(line.row.tuning.get("drawn") for line in lines):
        axes.set_xticks(values, [f"{value:g}" for value in values])
    ends = []
    for number, line in enumerate(lines):
        style = choose_look(number)
        joined = style if line.joined else style | {"linestyle": "none"}
        axes.plot(list(line.best), list(line.best.values()), linewidth=1.6, marker=".", markersize=6, **joined)
        for value in line.lost:
            height = 0.985 - 0.035 * sum(value in above.lost for above in lines[:number])
            axes.plot([value], [height], "x", color=style["color"], transform=axes.get_xaxis_transform())
        if line.chosen is not None and line.chosen in line.best:
            mark = "D" if line.edge else "o"
            axes.plot([line.chosen], [line.best[line.chosen]], mark, color=style["color"], markersize=10,
                      markerfacecolor="none", markeredgewidth=2)  # fmt: skip
        last = max(line.best)
        ends.append((last, line.best[last], _name(line), style["color"]))
    end_labels(axes, ends)


def _name(line: TrialLine) -> str:
    edge = ", at the edge" if line.edge else ""
    return cut_name(line.row.name) + ("" if line.chosen is None else f": {line.chosen:g}{edge}")


def probe_picture(table: Table, path: Path) -> None:
    """Draw the score on every probe in their order, a line for each row."""
    found = collect_probes(table)
    lines = found[:DRAWN]
    several = any(line.low != line.high for line in lines)
    banded = several and len(lines) <= BANDS
    said = ["mean over seeds"] * several + ["band from the lowest to the highest"] * banded
    figure = sheet(measure_width(cut_name(line.row.name) for line in lines), HIGH, layout="constrained")
    axes = figure.add_subplot()
    unit = f" ({table.metric.unit})" if table.metric.unit else ""
    set_titles(axes, table, _join_marks(said, len(found)), "further splits of the task", f"{table.metric.name}{unit}")
    axes.set_xticks(range(len(table.probes)), table.probes, parse_math=False)
    axes.set_xlim(-0.2, len(table.probes) - 0.8)
    set_scale(axes, "y", Scale.around(_values(lines, banded)))
    for number, line in enumerate(lines):
        style = choose_look(number)
        axes.plot(line.places, line.mean, linewidth=1.8, marker="o", markersize=4, **style)
        if banded:
            axes.fill_between(line.places, line.low, line.high, color=style["color"], alpha=0.15, linewidth=0)
    end_labels(axes, [(line.places[-1], line.mean[-1], cut_name(line.row.name), choose_look(number)["color"])
                      for number, line in enumerate(lines)])  # fmt: skip
    save(figure, path)


def _values(lines: Iterable[ProbeLine], banded: bool) -> list[float]:
    return [value for line in lines for side in ([line.low, line.high] if banded else [line.mean]) for value in side]


def _join_marks(said: Sequence[str], n_rows: int) -> str:
    return "; ".join([*([f"the best {DRAWN} of {n_rows} rows"] if n_rows > DRAWN else []), *said])
