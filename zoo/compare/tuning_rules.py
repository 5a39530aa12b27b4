"""What comes before the runs that are reported, as it is written: trials of settings, and rounds that drop rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le

from zoo.declare.reader import Reader
from zoo.declare.signature import Number, Tunable, fields_of, show
from zoo.declare.spec import Node, Train
from zoo.faults import Fault, SpecError, nearest

from .rows import put_value, read_list
from .rules import MOST_SEEDS, TrialSeeds, clash

TUNED = tuple(Train.marked(Tunable))
"""Settings that trials can choose."""
MOST = 1000
"""Trials of a row, rounds and factors of halving: a larger number is a slip."""
Trials = Annotated[int, Ge(1), Le(MOST)]
Several = Annotated[int, Ge(2), Le(MOST)]
Sampler = Literal["tpe", "random"]
SAMPLERS: dict[Sampler, int | None] = {"tpe": 4, "random": None}
"""Samplers, and how many trials each draws before it looks at what came of them, unless a file says; None is all."""


@dataclass(frozen=True)
class Range:
    """Numbers from one to another, both included, drawn evenly on a scale."""

    from_: Number
    to: Number
    scale: Literal["linear", "log"] = "linear"
    node: Node = field(default=Node(None), compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.from_ < self.to:
            raise SpecError(f"from is {show(self.from_)} and to {show(self.to)}; from should be below to")
        if self.scale == "log" and self.from_ <= 0:
            raise SpecError([Fault(f"from is {show(self.from_)}; on a log scale it should be above 0", ("from",))])

    @property
    def low(self) -> Node:
        return self.node.get("from")

    @property
    def high(self) -> Node:
        return self.node.get("to")

    def plain(self) -> dict[str, Any]:
        return {"from": self.from_, "to": self.to, "scale": self.scale}


@dataclass(frozen=True)
class Draw:
    """How many trials every row has, which sampler draws their values, and how many it draws at once."""

    trials: Trials
    sampler: Sampler = "tpe"
    per_round: Trials = 0  # which nobody writes: as many as the sampler draws at first

    def __post_init__(self) -> None:
        size = self.per_round or SAMPLERS[self.sampler] or self.trials
        object.__setattr__(self, "per_round", min(size, self.trials))

    def plain(self) -> dict[str, Any]:
        return dict(vars(self))


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
            yield {path: value.plain() for path, value in found.items()}, place_values(train, found)

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

    rounds: Several = 3
    factor: Several = 3
    seeds: TrialSeeds = (MOST_SEEDS,)

    def share(self, number: int) -> int:
        """By which a round, counted from 0, divides the budget."""
        return self.factor ** (self.rounds - 1 - number)

    def plain(self) -> dict:
        return {"rounds": self.rounds, "factor": self.factor, "seeds": list(self.seeds)}


def place_values(train: Node, values: Mapping[str, Node]) -> Node:
    """Training settings with the value of every path put in, a whole part before what is in it."""
    for path in sorted(values, key=lambda path: path.count(".")):
        train = put_value(train, path.split("."), values[path])
    return train


@dataclass(frozen=True)
class TuneSeeds:
    """The key of `tune` that is for listed values and for drawn ones alike."""

    seeds: TrialSeeds = (MOST_SEEDS,)


OWN = (*fields_of(TuneSeeds), *fields_of(Draw))
"""Keys of `tune` that are no paths of settings."""


def read_tune(node: Node, reader: Reader) -> Tune | None:
    """`tune: {lr: [1e-3, 2e-3], seeds: 1}`, or `{trials: 12, lr: {from: 1e-4, to: 1e-2, scale: log}}`."""
    if "tune" not in node.value:
        return None
    before = len(reader.faults)
    child = reader.mapping(node.get("tune"), "tune")
    seeds = reader.record(child.only(fields_of(TuneSeeds)), TuneSeeds, "tune")
    axes = {}
    for key, values in child.items():
        if key in OWN:
            continue
        if str(key).split(".")[0] not in TUNED:
            near = nearest(key, (*TUNED, *fields_of(TuneSeeds))) or nearest(key, fields_of(Draw))
            known = f"; trials choose {', '.join(TUNED)}, or what is in these"
            reader.fail(child.fault(f"tune has no {show(key)}{near or known}", key))
        elif found := read_axis(values, f"tune.{key}", reader):
            axes[str(key)] = found
            clash(node, (f"train.{key}",), f"tune: {key}", reader)
    draw = read_draw(child, axes, reader)
    if not axes and len(reader.faults) == before:
        reader.fail(child.fault("tune names no setting; it should have one at least, such as lr: [1e-3, 3e-3]"))
    return Tune(axes, seeds.seeds, draw) if seeds and axes and len(reader.faults) == before else None


def read_axis(node: Node, owner: str, reader: Reader) -> tuple[Node, ...] | Range | None:
    """A list of values, or `{from: …, to: …, scale: log}`."""
    if isinstance(node.value, Mapping):
        return reader.record(node, Range, owner)
    return tuple(read_list(node, reader)) or None


def read_draw(node: Node, axes: Mapping[str, Any], reader: Reader) -> Draw | None:
    """How values are drawn, which takes Optuna; None where every choice is tried."""
    if "trials" not in node.value:
        ranges = [path for path, axis in axes.items() if isinstance(axis, Range)]
        for key in (*ranges, *(key for key in fields_of(Draw) if key in node.value)):
            reader.fail(node.fault(f"beside {show(key)} there should be 'trials', how many values are drawn", key))
        return None
    if not find_spec("optuna"):
        reader.fail(node.fault("drawn trials need Optuna: pip install 'transformer-zoo[tune]'", "trials"))
    return reader.record(node.only(fields_of(Draw)), Draw, "tune")


def read_halving(node: Node, reader: Reader) -> Halving | None:
    """`halving: {rounds: 3, factor: 3, seeds: 1}`."""
    if "halving" not in node.value:
        return None
    if "tune" in node.value:
        text = "beside 'tune' there can be no 'halving': rows would be dropped before their settings are chosen"
        reader.fail(node.fault(text, "halving"))
    return reader.record(node.get("halving"), Halving, "halving")
