"""The pictures of the page: differences with their intervals, curves on dev, and quality against cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from zoo import numbers

from ..drawing import BANDS, COLOURS, DRAWN, Scale
from ..judging.bars import Bar, fit_scale
from ..judging.curves import Curve, collect_curves, describe_curves, find_window
from ..judging.pareto import Front, Point, find_fronts
from ..judging.probes import ProbeLine, collect_probes
from ..judging.trials import TrialLine, collect_trials
from ..judging.verdict import rule
from ..table import Table
from .markup import Markup, join, tag
from .svg import frame, path, percent, stretch

HIGH = 28  # pixels of a line in the picture of differences
MIDDLE = HIGH / 2
POINTS = 60  # of a curve; as many as anyone can see
DOTS = 12  # of those, the ones that say their value


def differences(table: Table, drawn: Sequence[Bar]) -> Markup | None:
    """Each difference on a line of its own with its interval and its seeds, zero being the baseline."""
    if not drawn:
        return None
    margin = rule(table).margin
    scale = fit_scale(drawn, margin)
    band = tag(
        "rect", class_="margin", x=percent(scale(-margin)), y="0", height="100%",
        width=percent(scale(margin) - scale(-margin)),
    )  # fmt: skip
    ground = join([band, _upright(scale(0.0), "zero")])
    lines = [
        tag(
            "li",
            tag("span", bar.name, class_="name"),
            tag("svg", ground, _bar(bar, scale), role="group", aria_label=f"{bar.name}: {bar.said}", height=HIGH),
            tag("span", tag("b", bar.phrase), " ", tag("span", numbers.between(bar.verdict)), class_="said"),
        )
        for bar in drawn
    ]
    left, right = ("better", "worse") if table.metric.better == "lower" else ("worse", "better")
    ticks = [tag("text", name, x=percent(share), y="1.1em") for share, name in scale.labels()]
    axis = tag("svg", *ticks, _upright(scale(0.0), "zero", "4"), aria_hidden="true", height=24)
    sides = tag("span", tag("span", f"← {left}"), tag("span", f"{right} →"), class_="sides")
    return tag("ol", *lines, tag("li", axis, sides, class_="axis", aria_hidden="true"), class_="bars")


def _upright(share: float, kind: str, height: str = "100%") -> Markup:
    return tag("line", class_=kind, x1=percent(share), x2=percent(share), y1="0", y2=height)


def _bar(bar: Bar, scale: Scale) -> Markup:
    """The interval below, the seeds on it, and the mean above all."""
    verdict, parts = bar.verdict, []
    if verdict.interval:
        low, high = verdict.interval
        ends = [(low, max(scale(low), 0.0)), (high, min(scale(high), 1.0))]
        (_, left), (_, right) = ends
        parts.append(tag("line", class_="interval", x1=percent(left), x2=percent(right), y1=MIDDLE, y2=MIDDLE))
        for (bound, share), cut in zip(ends, ("‹", "›"), strict=True):
            whole = 0 <= scale(bound) <= 1
            cap = tag("line", class_="cap", x1=percent(share), x2=percent(share), y1=MIDDLE - 5, y2=MIDDLE + 5)
            parts.append(cap if whole else tag("text", cut, class_="cut", x=percent(share), y=MIDDLE, dy="0.32em"))
    for name, value in bar.seeds.items():
        title = tag("title", f"{bar.name}, {name}: {numbers.signed(value)}")
        parts.append(tag("circle", title, class_="seed", cx=percent(scale(value)), cy=MIDDLE, r=3))
    sure = "sure" if verdict.word in ("better", "worse") else "open"
    place, title = percent(scale(verdict.mean)), tag("title", f"{bar.name}: {bar.said}")
    parts.append(tag("circle", title, class_=f"mean {sure} point", cx=place, cy=MIDDLE, r=6))
    return join(parts)


def curves(table: Table) -> Markup | None:
    """Means on dev over the seeds with a band from the lowest to the highest, and what each line is."""
    name, every = collect_curves(table)
    if not every:
        return None
    drawn = every[:DRAWN]
    levels = {row.name: row.dev.mean for row in table.rows if row.reference and row.dev and name == table.metric.name}
    low, high, right = find_window(drawn, levels)
    x, y = Scale(0, right), Scale(low, high)
    lines = [_series(curve, number, x, y, len(drawn) <= BANDS) for number, curve in enumerate(drawn)]
    lines += [_level(name, value, y) for name, value in levels.items()]
    unit = {table.metric.name: table.metric.unit, "loss": "nats per token"}.get(name)
    axes = ("training step", f"dev {name} ({unit})" if unit else f"dev {name}")
    picture = frame(x, y, axes, join(lines), f"dev {name} by training step, one line for each row")
    said = (
        tag("p", f"{describe_curves(drawn, len(every))}.", class_="note") if describe_curves(drawn, len(every)) else ""
    )
    return join([tag("div", picture, _legend(drawn, levels, y), class_="beside"), said])


def _look(number: int) -> str:
    return f"c{number % len(COLOURS)} s{number // len(COLOURS)}"


def _series(curve: Curve, number: int, x: Scale, y: Scale, banded: bool) -> Markup:
    kept = thin(range(len(curve.steps)), POINTS)
    paths, points = [], []
    if banded and curve.low != curve.high:
        around = [*((n, curve.high[n]) for n in kept), *((n, curve.low[n]) for n in reversed(kept))]
        paths.append(tag("path", class_="band", d=path(((x(curve.steps[n]), y(v)) for n, v in around), "Z")))
    if len(kept) > 1:
        paths.append(tag("path", class_="line", d=path((x(curve.steps[n]), y(curve.mean[n])) for n in kept)))
    for n in thin(kept, DOTS):
        spread = "" if curve.low[n] == curve.high[n] else f", from {_score(curve.low[n])} to {_score(curve.high[n])}"
        points.append(_point(x, y, (curve.steps[n], curve.mean[n]), curve.row.name, spread))
    for lost in curve.lost:
        kept = thin(lost, POINTS)
        paths.append(tag("path", class_="line lost", d=path((x(step), y(value)) for step, value in kept)))
        points.append(_point(x, y, lost[-1], f"{curve.row.name}, a run that did not reach the end", kind="lost"))
    return tag("g", stretch(*paths), *points, class_=f"series {_look(number)}", data_row=curve.row.name)


def _point(x: Scale, y: Scale, at: tuple[int, float], name: str, rest: str = "", kind: str = "") -> Markup | None:
    """A dot that says its value; one out of view could not be pointed at."""
    step, value = at
    if not 0 <= y(value) <= 1:
        return None
    title = tag("title", f"{name}, step {step:,}: {_score(value)}{rest}")
    place = {"cx": percent(x(step)), "cy": percent(1 - y(value))}
    return tag("circle", title, class_=f"point {kind}".rstrip(), **place, r=3)


def probes(table: Table) -> Markup | None:
    """The scores on the task's further splits, in their order, with a band from the lowest seed to the highest."""
    every = collect_probes(table)
    if not every:
        return None
    lines = every[:DRAWN]
    banded = len(lines) <= BANDS
    x = Scale(-0.2, len(table.probes) - 0.8)
    y = Scale.around(v for line in lines for v in (*line.mean, *(line.low + line.high if banded else ())))
    names = [(x(number), name) for number, name in enumerate(table.probes)]
    drawn = [_probed(table, line, _look(number), x, y, banded) for number, line in enumerate(lines)]
    unit = f" ({table.metric.unit})" if table.metric.unit else ""
    axes = ("further splits of the task", f"{table.metric.name}{unit}, {table.metric.better} is better")
    picture = frame(x, y, axes, join(drawn), f"{table.metric.name} by split, one line for each row", below=names)
    last = sorted(enumerate(lines), key=lambda pair: -pair[1].mean[-1])
    key = [tag("li", _swatch(_look(number)), tag("span", line.row.name), f" {_score(line.mean[-1])}",
               data_row=line.row.name) for number, line in last]  # fmt: skip
    return tag("div", picture, tag("ul", *key, class_="legend"), class_="beside")


def _probed(table: Table, line: ProbeLine, look: str, x: Scale, y: Scale, banded: bool) -> Markup:
    paths, points = [], []
    if banded and line.low != line.high:
        around = [*zip(line.places, line.high, strict=True), *reversed([*zip(line.places, line.low, strict=True)])]
        paths.append(tag("path", class_="band", d=path(((x(place), y(v)) for place, v in around), "Z")))
    middle = [*zip(line.places, line.mean, strict=True)]
    paths.append(tag("path", class_="line", d=path((x(place), y(value)) for place, value in middle)))
    for (place, value), low, high in zip(middle, line.low, line.high, strict=True):
        spread = "" if low == high else f", from {_score(low)} to {_score(high)}"
        title = tag("title", f"{line.row.name}, {table.probes[place]}: {_score(value)}{spread}")
        points.append(tag("circle", title, class_="point", cx=percent(x(place)), cy=percent(1 - y(value)), r=3))
    return tag("g", stretch(*paths), *points, class_=f"series {look}", data_row=line.row.name)


def sensitivity(table: Table) -> list[Markup]:
    """How the score on dev hangs on each setting that trials chose."""
    return [_setting(table, name, lines) for name, lines in collect_trials(table).items()]


def _setting(table: Table, name: str, every: Sequence[TrialLine]) -> Markup:
    """A line for each row through the best score at each value of one setting, whatever the others were."""
    lines = every[:DRAWN]
    x, y = (Scale.around(side) for side in zip(*(p for line in lines for p in line.best.items()), strict=True))
    drawn = [_trials(line, name, _look(number), x, y) for number, line in enumerate(lines)]
    axes = (name, f"dev {table.metric.name}, {table.metric.better} is better")
    picture = frame(x, y, axes, join(drawn), f"dev {table.metric.name} by {name}, one line for each row")
    key = tag("ul", *(_chosen(line, _look(number)) for number, line in enumerate(lines)), class_="legend")
    return tag("section", tag("h3", f"{name}, as tried for each row"), tag("div", picture, key, class_="beside"))


def _trials(line: TrialLine, name: str, look: str, x: Scale, y: Scale) -> Markup:
    joined = [tag("path", class_="line", d=path((x(value), y(score)) for value, score in line.best.items()))]
    drawn = stretch(*(joined if line.joined else ()))
    points = []
    for value, score in line.best.items():
        size, said = (6, ", chosen") if value == line.chosen else (3, "")
        title = tag("title", f"{line.row.name}, {name} {value:g}: {_score(score)}{said}")
        points.append(tag("circle", title, class_="point", cx=percent(x(value)), cy=percent(1 - y(score)), r=size))
    return tag("g", drawn, *points, class_=f"series {look}", data_row=line.row.name)


def _chosen(line: TrialLine, look: str) -> Markup:
    edge = ", at the edge of what was tried" if line.edge else ""
    said = "nothing was chosen" if line.chosen is None else f"{line.chosen:g} was chosen{edge}"
    return tag("li", _swatch(look), tag("span", line.row.name), f" {said}", data_row=line.row.name)


def _level(name: str, value: float, y: Scale) -> Markup:
    place = percent(1 - y(value))
    return tag("line", tag("title", f"{name}, a reference: {_score(value)}"), class_="level", x1="0", x2="100%",
               y1=place, y2=place)  # fmt: skip


def _score(value: float) -> str:
    return numbers.score(value)


def thin(values: Sequence, most: int) -> list:
    """At most so many of the values, evenly, the first and the last among them."""
    if len(values) <= most:
        return list(values)
    return [values[round(number * (len(values) - 1) / (most - 1))] for number in range(most)]


def _legend(drawn: Sequence[Curve], levels: Mapping[str, float], y: Scale) -> Markup:
    """Names in the order in which their lines end, and what the picture does not show of them."""
    entries = []
    for number, curve in enumerate(drawn):
        ended = "" if curve.steps else f", {curve.row.status}"
        beyond = "" if 0 <= y(curve.end[1]) <= 1 else ", out of view"
        entries.append((curve.end[1], curve.row.name, _look(number), ended + beyond))
    entries += [(value, name, "level", ", a reference") for name, value in levels.items()]
    entries.sort(key=lambda entry: -entry[0])
    lines = [
        tag("li", _swatch(look), tag("span", name), f" {_score(value)}{rest}", data_row=name)
        for value, name, look, rest in entries
    ]
    return tag("ul", *lines, class_="legend")


def _swatch(look: str) -> Markup:
    kind = "level" if look == "level" else "line"
    line = tag("line", class_=kind, x1="0", x2="28", y1="6", y2="6")
    return tag("svg", tag("g", line, class_=f"series {look}"), width=28, height=12, aria_hidden="true", class_="swatch")


def quality_and_cost(table: Table) -> list[Markup]:
    """A picture for every cost that rows differ in."""
    return [_front(table, front) for front in find_fronts(table).values()]


def _front(table: Table, front: Front) -> Markup:
    title, _, unit, write = front.cost
    x = Scale.around(point.cost for point in front.points)
    y = Scale.around((point.score for point in front.points), 0.12)
    line = stretch(tag("path", class_="front", d=path((x(cost), y(score)) for cost, score in front.line)))
    clear = "-0.5em" if table.metric.better == "lower" else "1.2em"  # of the steps, which leave a point sideways
    points = [_dot(point, x, y, write, point.row.name in front.best, clear) for point in front.points]
    metric, of_metric = table.metric.name, f" ({table.metric.unit})" if table.metric.unit else ""
    axes = (f"{title} ({unit})" if unit else title, f"test {metric}{of_metric}, {table.metric.better} is better")
    picture = frame(x, y, axes, join([line, *points]), f"test {metric} against {title}")
    entries = [_key(point, write(point.cost), point.row.name in front.best) for point in front.points]
    said = tag("p", "● no other row is as good for less", class_="note")
    pair = tag("div", picture, tag("div", tag("ul", *entries, class_="legend"), said), class_="beside")
    return tag("section", tag("h3", f"The best {metric} for its {title}"), pair)


def _dot(point: Point, x: Scale, y: Scale, write: Callable[[float], str], best: bool, clear: str) -> Markup:
    place, up = percent(x(point.cost)), percent(1 - y(point.score))
    ending = ", on the front" if best else ""
    title = tag("title", f"{point.row.name}: {numbers.mean(point.row.test)} at {write(point.cost)}{ending}")
    dot = tag("circle", title, class_=f"point dot {'best' if best else 'other'}", cx=place, cy=up, r=6)
    inward = {"dx": -10, "class_": "last"} if x(point.cost) > 0.9 else {"dx": 10}
    return join([dot, tag("text", str(point.number), x=place, y=up, dy=clear, aria_hidden="true", **inward)])


def _key(point: Point, cost: str, best: bool) -> Markup:
    mark, name = "●" if best else "○", point.row.name
    return tag("li", f"{mark} {point.number} ", tag("span", name), f" {_score(point.score)} at {cost}", data_row=name)
