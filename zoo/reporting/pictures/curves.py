"""The loss curves of a comparison in one picture. Only drawing needs matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..drawing import BANDS, DRAWN
from ..judging.curves import Curve, collect_curves, describe_curves, find_window
from ..table import Table
from .canvas import GREY, NoPicture, choose_look, cut_name, end_labels, measure_width, save, set_titles, sheet


def curve_picture(table: Table, path: Path) -> None:
    """Draw the dev curves of `table` into a PNG file. Raises `NoPicture` if there is nothing to draw or draw with."""
    name, curves = collect_curves(table)
    if not curves:
        raise NoPicture("no picture: no run has a curve yet")
    levels = {row.name: row.dev.mean for row in table.rows if row.reference and row.dev and name == table.metric.name}
    drawn = curves[:DRAWN]
    figure = sheet(measure_width([*map(_name, drawn), *map(cut_name, levels)]), 6, layout="constrained")
    axes = figure.add_subplot()
    unit = {table.metric.name: table.metric.unit, "loss": "nats per token"}.get(name)
    set_titles(
        axes,
        table,
        describe_curves(drawn, len(curves)),
        "training step",
        f"dev {name} ({unit})" if unit else f"dev {name}",
    )
    _draw(axes, drawn, levels)
    low, high, right = find_window(drawn, levels)
    axes.set_ylim(low, high)
    axes.set_xlim(0, right)
    ends = [(*curve.end, _name(curve), choose_look(number)["color"]) for number, curve in enumerate(drawn)]
    end_labels(axes, ends + [(right, value, f"{cut_name(row)} (reference)", GREY) for row, value in levels.items()])
    save(figure, path)


def _draw(axes, curves: list[Curve], levels: Mapping[str, float]) -> None:
    for number, curve in enumerate(curves):
        style = choose_look(number)
        axes.plot(curve.steps, curve.mean, linewidth=1.8, **style)
        if len(curves) <= BANDS:
            axes.fill_between(curve.steps, curve.low, curve.high, color=style["color"], alpha=0.15, linewidth=0)
        for points in curve.lost:
            axes.plot(*zip(*points, strict=True), linewidth=1, alpha=0.7, **style)
            axes.plot(*points[-1], marker="x", color=style["color"], markersize=8)
    for value in levels.values():
        axes.axhline(value, color=GREY, linewidth=1.2, linestyle=(0, (6, 4)))


def _name(curve: Curve) -> str:
    return cut_name(curve.row.name) + ("" if curve.steps else f" ({curve.row.runs[0].status})")
