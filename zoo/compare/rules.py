"""How a comparison is made fair and judged, as it is written: its seeds, the test, what is matched, tuned, claimed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from zoo.claims import FIGURES, WAYS, Claim
from zoo.claims import KEYS as CLAIM
from zoo.declare.reader import Reader
from zoo.declare.signature import show
from zoo.declare.spec import Node
from zoo.faults import nearest
from zoo.train.metrics import metrics_of

from .rows import read_list

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
    "seconds": ("steps",),
}
"""What rows can be made to agree in, and by which size or setting; the first one unless another is written."""


@dataclass(frozen=True)
class Match:
    """What all rows agree in, the size or setting by which, and the figure; None is the baseline's."""

    what: str
    by: str
    to: float | None = None

    def plain(self) -> dict:
        return {"what": self.what, "by": self.by, "to": "baseline" if self.to is None else self.to}


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
        from zoo.statistics import TESTS

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


def read_claims(
    node: Node, runs: Mapping[str, Any], metric: str, baseline: str | None, reader: Reader
) -> tuple[Claim, ...]:
    """`claims: [{row: …, is: better, than: …, on: …, of: …, least: 0.02, source: …}]`.

    `runs` has the first one of every row, None where it is not known; `metric` ranks the rows.
    """
    if "claims" not in node.value or not runs:
        return ()
    found = [read_claim(child, runs, metric, baseline, reader) for child in read_list(node.get("claims"), reader)]
    return tuple(claim for claim in found if claim)


def read_claim(node: Node, runs: Mapping[str, Any], metric: str, baseline: str | None, reader: Reader) -> Claim | None:
    """One of them; None, with faults, where it cannot be read."""
    before = len(reader.faults)
    node = reader.mapping(node, "a claim")
    if len(reader.faults) > before:
        return None
    for key in node.value:
        if key not in CLAIM:
            reader.fail(node.fault(f"a claim has no {show(key)}{nearest(key, CLAIM)}", key))
    for key in ("row", "is"):
        if key not in node.value:
            reader.fail(node.fault(f"a claim needs '{key}'"))
    row, than = word(node, "row", runs, None, reader), word(node, "than", runs, baseline, reader)
    way = word(node, "is", WAYS, None, reader)
    of, on, than_on = read_measure(node, row, than, runs, metric, reader)
    if row and row == than and (of in FIGURES or (on and on == than_on)):
        reader.fail(node.fault(f"row '{row}' is compared with itself; write another 'than', or another 'than_on'"))
    sizes = read_sizes(node, way, reader)
    source = node.get("source").plain() if "source" in node.value else ""
    if not isinstance(source, str):
        reader.fail(node.get("source").fault(f"source is {show(source)}; it should be a text"))
    if len(reader.faults) > before or None in (row, way, than, of):
        return None
    known = (run.make_task() for run in (runs[row], runs[than], *runs.values()) if run)
    figure = FIGURES.get(of) or next(metrics_of(task)[of] for task in known if of in task.metrics)
    return Claim(row, way, than, of, figure.better, figure.unit, on, than_on, *sizes, source)


def word(node: Node, key: str, known: Iterable[str], default: str | None, reader: Reader) -> str | None:
    """What stands under a key, if it is one of those known; `default` where nothing does."""
    return chosen(node.get(key), key, tuple(known), reader) if key in node.value else default


def read_measure(
    node: Node, row: str | None, than: str | None, runs: Mapping[str, Any], metric: str, reader: Reader
) -> tuple[str | None, str | None, str | None]:
    """In what two rows are compared, and on which split of each: none for a figure. Only what both are scored in will
    do, as far as that is known.
    """
    mine, theirs = (run and run.make_task() for run in (runs.get(row), runs.get(than)))
    both = [task.metrics for task in (mine, theirs) if task]
    shared = [name for name in both[0] if name in both[-1]] if both else []
    of = word(node, "of", (*shared, *FIGURES), metric, reader) if both else metric
    if of in FIGURES:
        for key in ("on", "than_on"):
            if key in node.value:
                reader.fail(node.fault(f"{of} is of a whole run, and of no split; drop '{key}'", key))
        return of, None, None
    on = word(node, "on", splits(mine), "test", reader) if mine else "test"
    than_on = word(node, "than_on", splits(theirs), on, reader) if theirs else on
    if on and theirs and "than_on" not in node.value and on not in splits(theirs):
        reader.fail(node.fault(f"row '{than}' has no {on}; say with than_on where it is scored"))
    if mine and theirs and asked(runs[row]) != asked(runs[than]):
        text = f"'{row}' and '{than}' are scored on different tasks or data, so no {of} tells them apart"
        reader.fail(node.fault(text))
    return of, on, than_on


def asked(run) -> tuple:
    """What decides whether two scores are of the same thing."""
    return run.task.name, [part.plain() for part in run.task.parts() if part.slot == "data"]


def splits(task) -> tuple[str, ...]:
    """What a claim can be about: dev has chosen the weights, and proves nothing."""
    return ("test", *task.probes)


def read_sizes(node: Node, way: str | None, reader: Reader) -> tuple[float | None, float | None]:
    """How large the difference is said to be at least and at most."""
    least, most = (node.get(key).plain() if key in node.value else None for key in ("least", "most"))
    for key, value in (("least", least), ("most", most)):
        if value is not None and not positive(value):
            text = f"{key} is {show(value)}; it should be a number above 0, in the unit of what is compared"
            reader.fail(node.get(key).fault(text))
    if way == "same" and least is not None:
        reader.fail(node.fault("what is the same differs by no least; write 'most'", "least"))
    if way == "same" and most is None:
        reader.fail(node.fault("a claim of 'same' needs 'most', the largest difference that counts as none"))
    if positive(least) and positive(most) and least >= most:
        reader.fail(node.fault(f"least is {show(least)} and most {show(most)}; least should be below most", "least"))
    return least, most
