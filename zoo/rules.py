"""How a comparison is made fair and judged, as it is written: its seeds, what is matched, what is tuned, the test."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .faults import nearest
from .reader import Reader
from .rows import listed, put
from .signature import show
from .spec import Node

MOST_SEEDS = 1000
"""As a number; a larger one is more likely meant as the seed itself. Trials count from here, so that no run of
`seeds` chooses its own settings."""

WIDTHS = ("d_ff", "d_model", "n_layers")
MATCHES = {
    "parameters": WIDTHS,
    "non-embedding-parameters": WIDTHS,
    "flops-per-token": WIDTHS,
    "training-flops": ("steps",),
    "tokens": ("steps",),
}
"""What rows can be made to agree in, and by which size or setting; the first one unless another is written."""
TUNED = ("lr", "warmup", "schedule", "optimizer", "clip")
"""Settings that trials can choose: none of them changes the budget."""


@dataclass(frozen=True)
class Match:
    """What all rows agree in, the size or setting by which, and the figure; None is the baseline's."""

    what: str
    by: str
    to: float | None = None

    def plain(self) -> dict:
        return {"what": self.what, "by": self.by, "to": "baseline" if self.to is None else self.to}


@dataclass(frozen=True)
class Tune:
    """The values of every setting that is tuned, by its path in `train`, and the seeds of the trials."""

    axes: Mapping[str, tuple[Node, ...]]
    seeds: tuple[int, ...]

    def choices(self, train: Node) -> Iterator[tuple[dict[str, Any], Node]]:
        """Every choice of values, and the training settings with these."""
        for chosen in itertools.product(*self.axes.values()):
            node = train
            for path, value in zip(self.axes, chosen, strict=True):
                node = put(node, path.split("."), value)
            yield {path: value.plain() for path, value in zip(self.axes, chosen, strict=True)}, node

    def plain(self) -> dict:
        axes = {path: [value.plain() for value in values] for path, values in self.axes.items()}
        return {**axes, "seeds": list(self.seeds)}


def read_seeds(node: Node, reader: Reader, start: int = 0) -> list[int]:
    """`seeds: [0, 1, 2]`, or a number of them, which counts from `start`."""
    child = node.get("seeds") if "seeds" in node.value else Node([start])
    value = child.plain()
    seeds = list(range(start, start + value)) if whole(value, MOST_SEEDS) else value
    if isinstance(seeds, list) and seeds and all(whole(s, 2**63) for s in seeds) and len(set(seeds)) == len(seeds):
        return seeds
    expected = f"a number of seeds, at most {MOST_SEEDS}, or a list of different integers from 0"
    reader.fail(child.fault(f"seeds is {show(value)}; it should be {expected}"))
    return [start]


def whole(value: Any, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf


def read_rule(node: Node, reader: Reader) -> dict[str, Any]:
    """What of `test` and `margin` is written; the tests cost an import that only reports need otherwise."""
    rule = {key: node.get(key).plain() for key in ("test", "margin") if key in node.value}
    if "test" in rule:
        from .statistics import TESTS

        if rule["test"] not in list(TESTS):
            text = f"test is {show(rule['test'])}; it should be {' or '.join(TESTS)}{nearest(rule['test'], TESTS)}"
            reader.fail(node.get("test").fault(text))
    if not positive(rule.get("margin", 1.0)):
        text = f"margin is {show(rule['margin'])}; it should be a number above 0, in the unit of the metric"
        reader.fail(node.get("margin").fault(text))
    return rule


def read_match(node: Node, reader: Reader) -> Match | None:
    """`match: parameters`, or `{what: …, by: d_model, to: 1e6}`."""
    if "match" not in node.value:
        return None
    child = node.get("match")
    fields = dict(child.items()) if isinstance(child.value, Mapping) else {"what": child}
    for key in fields:
        if key not in ("what", "by", "to"):
            reader.fail(child.fault(f"match has no {show(key)}{nearest(key, ('what', 'by', 'to'))}", key))
    what = chosen(fields.get("what", Node(None, child.path, child.document)), "match", tuple(MATCHES), reader)
    if what is None:
        return None
    ways = MATCHES[what]
    by = chosen(fields["by"], f"the size by which {what} are matched", ways, reader) if "by" in fields else ways[0]
    to = fields["to"].plain() if "to" in fields else "baseline"
    if to != "baseline" and not positive(to):
        reader.fail(fields["to"].fault(f"to is {show(to)}; it should be baseline or a number above 0"))
    varied = ("train.steps", "train.tokens") if by == "steps" else (f"shape.{by}",)
    clash(node, varied, f"match: {what}", reader)
    return by and Match(what, by, None if to == "baseline" else to)


def chosen(node: Node, what: str, known: tuple[str, ...], reader: Reader) -> str | None:
    """The node's value if it is one of those known, else None and a fault."""
    value = node.plain()
    if isinstance(value, str) and value in known:
        return value
    near = nearest(value, known) if isinstance(value, str) else ""
    reader.fail(node.fault(f"{what} is {show(value)}; it should be {' or '.join(known)}{near}"))
    return None


def clash(node: Node, paths: tuple[str, ...], owner: str, reader: Reader) -> None:
    """A fault for every path that varies and is decided by something else too."""
    vary = node.get("vary") if "vary" in node.value else Node({})
    for path in paths:
        if isinstance(vary.value, Mapping) and path in vary.value:
            reader.fail(vary.fault(f"'{path}' cannot vary: '{owner}' decides it", path))


def read_tune(node: Node, reader: Reader) -> Tune | None:
    """`tune: {lr: [1e-3, 2e-3], optimizer.weight_decay: [0.0, 0.1], seeds: 1}`."""
    if "tune" not in node.value:
        return None
    child = reader.mapping(node.get("tune"), "tune")
    seeds = read_seeds(child, reader, MOST_SEEDS)
    axes = {}
    for key, values in child.items():
        if key == "seeds":
            continue
        if str(key).split(".")[0] not in TUNED:
            near = nearest(key, (*TUNED, "seeds")) or f"; trials choose {', '.join(TUNED)}, or what is in these"
            reader.fail(child.fault(f"tune has no {show(key)}{near}", key))
        elif found := listed(values, reader):
            axes[str(key)] = tuple(found)
            clash(node, (f"train.{key}",), f"tune: {key}", reader)
    if not axes and "tune" in node.value and not reader.faults:
        reader.fail(child.fault("tune names no setting; it should have one at least, such as lr: [1e-3, 3e-3]"))
    return Tune(axes, tuple(seeds)) if axes else None
