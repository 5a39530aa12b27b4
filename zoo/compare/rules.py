"""How a comparison is made fair and judged, as it is written: its seeds, the test, what is matched and claimed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le, Len
from pydantic import AfterValidator, BeforeValidator

from zoo.claims import FIGURES, Claim
from zoo.declare.reader import Reader
from zoo.declare.signature import Amount, Means, show
from zoo.declare.spec import Node
from zoo.faults import Fault, SpecError, nearest
from zoo.train.metrics import metrics_of

from .rows import read_list

MOST_SEEDS = 1000
"""As a number; a larger one is more likely meant as the seed itself. Trials count from here, so that no run of
`seeds` chooses its own settings."""


def count_seeds(start: int) -> BeforeValidator:
    """A number of seeds as these, counted from `start`; a list stays as it is."""

    def count(value: Any) -> Any:
        if isinstance(value, int) and not isinstance(value, bool) and value <= MOST_SEEDS:
            return tuple(range(start, start + value))
        return tuple(value) if isinstance(value, list) else value

    return BeforeValidator(count, json_schema_input_type=SeedsAsWritten)


def check_different(seeds: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(seeds)) < len(seeds):
        raise ValueError("a seed stands there twice")
    return seeds


Seed = Annotated[int, Ge(0), Le(2**63)]
SeedsAsWritten = Annotated[int, Ge(1), Le(MOST_SEEDS)] | Annotated[list[Seed], Len(1)]
WORDS = Means(f"a number of seeds, at most {MOST_SEEDS}, or a list of different integers from 0")
Seeds = Annotated[tuple[Seed, ...], Len(1), AfterValidator(check_different), count_seeds(0), WORDS]
TrialSeeds = Annotated[tuple[Seed, ...], Len(1), AfterValidator(check_different), count_seeds(MOST_SEEDS), WORDS]

Sizes = Literal["d_ff", "d_model", "n_layers", "steps"]
Quantity = Literal[
    "parameters", "non-embedding-parameters", "flops-per-token", "training-flops", "tokens", "seconds"
]  # fmt: skip
WIDTHS: tuple[Sizes, ...] = ("d_ff", "d_model", "n_layers")
MATCHES: dict[Quantity, tuple[Sizes, ...]] = {
    "parameters": WIDTHS,
    "non-embedding-parameters": WIDTHS,
    "flops-per-token": WIDTHS,
    "training-flops": ("steps",),
    "tokens": ("steps",),
    "seconds": ("steps",),
}
"""What rows can be made to agree in, and by which size or setting; the first one unless another is written."""


@dataclass(frozen=True)
class Judging:
    """With which seeds rows are run, and how they are judged: docs/verdict.md says what `test` and `margin` are."""

    seeds: Seeds = (0,)
    test: Literal["sign-flip", "paired-t"] = "sign-flip"
    margin: Annotated[Amount | None, Means("a number above 0, in the unit of the metric")] = None


@dataclass(frozen=True)
class Match:
    """What all rows agree in, the size or setting by which, and the figure, or that of the baseline."""

    what: Quantity
    by: Sizes | None = None
    to: Literal["baseline"] | Amount = "baseline"

    def __post_init__(self) -> None:
        ways = MATCHES[self.what]
        if self.by is None:
            object.__setattr__(self, "by", ways[0])
        elif self.by not in ways:
            text = f"{self.what} cannot be matched by {self.by}; match by {' or '.join(ways)}"
            raise SpecError([Fault(text, ("by",))])

    def plain(self) -> dict[str, Any]:
        return dict(vars(self))


def read_judging(node: Node, reader: Reader) -> Judging:
    """The keys `seeds`, `test` and `margin` of a comparison; the defaults where they cannot be read."""
    return reader.record(node.only(("seeds", "test", "margin")), Judging, "") or Judging()


def read_match(node: Node, reader: Reader) -> Match | None:
    """`match: parameters`, or `{what: …, by: d_model, to: 1e6}`."""
    if "match" not in node.value:
        return None
    rule = reader.record(node.get("match"), Match, "match", short="what")
    if rule:
        varied = ("train.steps", "train.tokens") if rule.by == "steps" else (f"shape.{rule.by}",)
        clash(node, varied, f"match: {rule.what}", reader)
    return rule


def clash(node: Node, paths: tuple[str, ...], owner: str, reader: Reader) -> None:
    """A fault for every path that varies and is decided by something else too."""
    vary = node.get("vary") if "vary" in node.value else Node({})
    for path in paths:
        if isinstance(vary.value, Mapping) and path in vary.value:
            reader.fail(vary.fault(f"'{path}' cannot vary: '{owner}' decides it", path))


SIZE = Means("a number above 0, in the unit of what is compared")


@dataclass(frozen=True)
class WrittenClaim:
    """A claim as it is written: what it leaves open follows from its rows."""

    row: str
    is_: Literal["better", "worse", "same"]
    than: str | None = None
    of: str | None = None
    on: str | None = None
    than_on: str | None = None
    least: Annotated[Amount | None, SIZE] = None
    most: Annotated[Amount | None, SIZE] = None
    source: str = ""

    def __post_init__(self) -> None:
        faults = []
        if self.is_ == "same" and self.least is not None:
            faults.append(Fault("what is the same differs by no least; write 'most'", ("least",)))
        if self.is_ == "same" and self.most is None:
            faults.append(Fault("a claim of 'same' needs 'most', the largest difference that counts as none"))
        if self.least is not None and self.most is not None and self.least >= self.most:
            text = f"least is {show(self.least)} and most {show(self.most)}; least should be below most"
            faults.append(Fault(text, ("least",)))
        if faults:
            raise SpecError(faults)


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
    claim = reader.record(node, WrittenClaim, "claim", among={"row": runs, "than": runs})
    if not isinstance(node.value, Mapping):
        return None
    row, than = (node.get(key).plain() if key in node.value else baseline for key in ("row", "than"))
    measure = read_measure(node, row, than, runs, metric, reader)  # of a claim with faults too, for its own
    if claim is None or measure is None or than is None or len(reader.faults) > before:
        return None
    of, on, than_on = measure
    if claim.row == than and on == than_on:
        reader.fail(node.fault(f"row '{than}' is compared with itself; write another 'than', or another 'than_on'"))
        return None
    known = (run.make_task() for run in (runs[claim.row], runs[than], *runs.values()) if run)
    figure = FIGURES.get(of) or next(metrics_of(task)[of] for task in known if of in task.metrics)
    sides = (figure.better, figure.unit, on, than_on)
    return Claim(claim.row, claim.is_, than, of, *sides, claim.least, claim.most, claim.source)


def word(node: Node, key: str, known: Iterable[str], default: str, reader: Reader) -> str | None:
    """What stands under a key, if it is one of those known, else None and a fault; `default` where nothing does."""
    if key not in node.value:
        return default
    value, known = node.get(key).plain(), list(known)
    if value in known:
        return value
    near = nearest(value, known) if isinstance(value, str) else ""
    reader.fail(node.get(key).fault(f"claim.{key} is {show(value)}; it should be one of {', '.join(known)}{near}"))
    return None


def read_measure(
    node: Node, row: str | None, than: str | None, runs: Mapping[str, Any], metric: str, reader: Reader
) -> tuple[str, str | None, str | None] | None:
    """In what two rows are compared, and on which split of each: none for a figure. Only what both are scored in will
    do, as far as that is known. None, with faults, where that cannot be read.
    """
    mine, theirs = (run and run.make_task() for name in (row, than) for run in [name in list(runs) and runs[name]])
    both = [task.metrics for task in (mine, theirs) if task]
    shared = [name for name in both[0] if name in both[-1]] if both else []
    of = word(node, "of", (*shared, *FIGURES), metric, reader) if both else metric
    if of in FIGURES:
        for key in ("on", "than_on"):
            if key in node.value:
                reader.fail(node.fault(f"{of} is of a whole run, and of no split; drop '{key}'", key))
        return of, None, None
    on = word(node, "on", splits(mine), "test", reader) if mine else "test"
    than_on = word(node, "than_on", splits(theirs), on or "test", reader) if theirs else on
    if on and theirs and "than_on" not in node.value and on not in splits(theirs):
        reader.fail(node.fault(f"row '{than}' has no {on}; say with than_on where it is scored"))
    if row and than and mine and theirs and content(runs[row]) != content(runs[than]):
        text = f"'{row}' and '{than}' are scored on different tasks or data, so no {of} tells them apart"
        reader.fail(node.fault(text))
    return (of, on, than_on) if of and on and than_on else None


def content(run) -> tuple:
    """What decides whether two scores are of the same thing."""
    return run.task.name, [part.plain() for part in run.task.parts() if part.slot == "data"]


def splits(task) -> tuple[str, ...]:
    """What a claim can be about: dev has chosen the weights, and proves nothing."""
    return ("test", *task.probes)
