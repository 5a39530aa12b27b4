"""What comes before the runs that are reported, as it is written: trials of settings, and rounds that drop rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from zoo.declare.reader import Reader
from zoo.declare.signature import Tunable, show
from zoo.declare.spec import Node, Train
from zoo.faults import nearest

from .rows import put_value, read_list
from .rules import MOST_SEEDS, chosen, clash, read_seeds, whole

TUNED = tuple(Train.marked(Tunable))
"""Settings that trials can choose."""
SAMPLERS = {"tpe": 4, "random": None}
"""Samplers, and how many trials each draws before it looks at what came of them, unless a file says; None is all."""
SCALES = ("linear", "log")
DRAWN = ("trials", "sampler", "per_round")
"""Keys of `tune` that are for drawn values alone."""
MOST = 1000
"""Trials of a row, rounds and factors of halving: a larger number is a slip."""


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, both included, drawn evenly on a scale."""

    low: Node
    high: Node
    scale: str = "linear"

    def plain(self) -> dict:
        return {"from": self.low.plain(), "to": self.high.plain(), "scale": self.scale}


@dataclass(frozen=True)
class Draw:
    """How many trials every row has, which sampler draws their values, and how many it draws at once."""

    trials: int
    sampler: str
    per_round: int

    def plain(self) -> dict:
        return {"trials": self.trials, "sampler": self.sampler, "per_round": self.per_round}


@dataclass(frozen=True)
class Tune:
    """The values of every setting that is tuned, by its path in `train`, and the seeds of the trials.

    Without `draw`, every choice of values is tried.
    """

    axes: Mapping[str, tuple[Node, ...] | Range]
    seeds: tuple[int, ...]
    draw: Draw | None = None

    def choices(self, train: Node) -> Iterator[tuple[dict[str, Any], Node]]:
        """Every choice of values, of a range its two ends, and the training settings with these."""
        sides = [(axis.low, axis.high) if isinstance(axis, Range) else axis for axis in self.axes.values()]
        for values in itertools.product(*sides):
            found = dict(zip(self.axes, values, strict=True))
            yield {path: value.plain() for path, value in found.items()}, placed(train, found)

    def plain(self) -> dict:
        axes = {
            path: axis.plain() if isinstance(axis, Range) else [value.plain() for value in axis]
            for path, axis in self.axes.items()
        }
        return {**(self.draw.plain() if self.draw else {}), **axes, "seeds": list(self.seeds)}


@dataclass(frozen=True)
class Halving:
    """Rounds of which the last has the whole budget and each one before it 1/`factor` of the next; after each, the
    best 1/`factor` of the rows beside the baseline go on. `seeds` are those of the rounds before the last.
    """

    rounds: int
    factor: int
    seeds: tuple[int, ...]

    def share(self, number: int) -> int:
        """By which a round, counted from 0, divides the budget."""
        return self.factor ** (self.rounds - 1 - number)

    def plain(self) -> dict:
        return {"rounds": self.rounds, "factor": self.factor, "seeds": list(self.seeds)}


def placed(train: Node, values: Mapping[str, Node]) -> Node:
    """Training settings with the value of every path put in, a whole part before what is in it."""
    for path in sorted(values, key=lambda path: path.count(".")):
        train = put_value(train, path.split("."), values[path])
    return train


def read_tune(node: Node, reader: Reader) -> Tune | None:
    """`tune: {lr: [1e-3, 2e-3], seeds: 1}`, or `{trials: 12, lr: {from: 1e-4, to: 1e-2, scale: log}}`."""
    if "tune" not in node.value:
        return None
    before = len(reader.faults)
    child = reader.mapping(node.get("tune"), "tune")
    seeds = read_seeds(child, reader, MOST_SEEDS)
    axes = {}
    for key, values in child.items():
        if key in ("seeds", *DRAWN):
            continue
        if str(key).split(".")[0] not in TUNED:
            near = nearest(key, (*TUNED, "seeds")) or nearest(key, DRAWN)
            known = f"; trials choose {', '.join(TUNED)}, or what is in these"
            reader.fail(child.fault(f"tune has no {show(key)}{near or known}", key))
        elif found := read_axis(values, reader):
            axes[str(key)] = found
            clash(node, (f"train.{key}",), f"tune: {key}", reader)
    draw = read_draw(child, axes, reader)
    if not axes and len(reader.faults) == before:
        reader.fail(child.fault("tune names no setting; it should have one at least, such as lr: [1e-3, 3e-3]"))
    return Tune(axes, tuple(seeds), draw) if axes and len(reader.faults) == before else None


def read_axis(node: Node, reader: Reader) -> tuple[Node, ...] | Range | None:
    """A list of values, or `{from: …, to: …, scale: log}`."""
    if not isinstance(node.value, Mapping):
        return tuple(read_list(node, reader)) or None
    before = len(reader.faults)
    for key in node.value:
        if key not in ("from", "to", "scale"):
            reader.fail(node.fault(f"a range has no {show(key)}{nearest(key, ('from', 'to', 'scale'))}", key))
    ends = [node.get(key) for key in ("from", "to") if key in node.value]
    for end in ends:
        if not isinstance(end.plain(), int | float) or isinstance(end.plain(), bool):
            reader.fail(end.fault(f"{end.path[-1]} is {show(end.plain())}; it should be a number"))
    if len(ends) < 2 and len(reader.faults) == before:
        reader.fail(node.fault(f"it is {show(node.plain())}; a range has 'from' and 'to', and may have a 'scale'"))
    scale = chosen(node.get("scale"), "scale", SCALES, reader) if "scale" in node.value else SCALES[0]
    if len(reader.faults) > before:
        return None
    low, high = ends
    if not low.plain() < high.plain():
        reader.fail(node.fault(f"from is {show(low.plain())} and to {show(high.plain())}; from should be below to"))
    if scale == "log" and low.plain() <= 0:
        reader.fail(low.fault(f"from is {show(low.plain())}; on a log scale it should be above 0"))
    return Range(low, high, scale) if len(reader.faults) == before else None


def read_draw(node: Node, axes: Mapping[str, Any], reader: Reader) -> Draw | None:
    """How values are drawn, which takes Optuna; None where every choice is tried."""
    if "trials" not in node.value:
        ranges = [path for path, axis in axes.items() if isinstance(axis, Range)]
        for key in (*ranges, *(key for key in ("sampler", "per_round") if key in node.value)):
            reader.fail(node.fault(f"beside {show(key)} there should be 'trials', how many values are drawn", key))
        return None
    if not find_spec("optuna"):
        reader.fail(node.fault("drawn trials need Optuna: pip install 'transformer-zoo[tune]'", "trials"))
    trials = read_count(node, "trials", None, 1, MOST, reader)
    named = node.get("sampler") if "sampler" in node.value else Node(next(iter(SAMPLERS)))
    sampler = chosen(named, "sampler", tuple(SAMPLERS), reader)
    size = read_count(node, "per_round", SAMPLERS.get(sampler) or trials, 1, MOST, reader)
    return Draw(trials, sampler, min(size, trials)) if trials and sampler and size else None


def read_halving(node: Node, reader: Reader) -> Halving | None:
    """`halving: {rounds: 3, factor: 3, seeds: 1}`."""
    if "halving" not in node.value:
        return None
    child = reader.mapping(node.get("halving"), "halving")
    known = ("rounds", "factor", "seeds")
    for key in child.value:
        if key not in known:
            reader.fail(child.fault(f"halving has no {show(key)}{nearest(key, known)}", key))
    rounds, factor = (read_count(child, key, 3, 2, MOST, reader) for key in ("rounds", "factor"))
    seeds = read_seeds(child, reader, MOST_SEEDS)
    if "tune" in node.value:
        text = "beside 'tune' there can be no 'halving': rows would be dropped before their settings are chosen"
        reader.fail(node.fault(text, "halving"))
    return Halving(rounds, factor, tuple(seeds)) if rounds and factor else None


def read_count(node: Node, key: str, default: int | None, least: int, most: int, reader: Reader) -> int | None:
    """A whole number within limits; None, with a fault, for another value."""
    if key not in node.value:
        return default
    value = node.get(key).plain()
    if whole(value, most) and value >= least:
        return value
    reader.fail(node.get(key).fault(f"{key} is {show(value)}; it should be a whole number from {least} to {most}"))
    return None
