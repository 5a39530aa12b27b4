"""What any data must do."""

from __future__ import annotations

from itertools import combinations

from zoo.tasks import SPLITS, Example, Splits

from .harness import Suite
from .part_case import PartCase, collect_checks, isolate


def list_examples(splits: Splits) -> list[tuple[str, int, Example]]:
    """Every example with its split and its number there."""
    return [(split, i, example) for split in SPLITS for i, example in enumerate(getattr(splits, split))]


def reading(case: PartCase) -> None:
    """Three splits of examples, none of them empty; each example holds two texts that UTF-8 can write, and a target."""
    read = case.make().read()
    for split in SPLITS:
        if not getattr(read, split):
            case.fail(f"The data was read: {split} should hold examples, and holds none.")
    for split, i, example in list_examples(read):
        if not isinstance(example, Example) or not all(isinstance(text, str) for text in example):
            case.fail(f"The data was read: example {i} of {split} should be two texts, and is {example!r:.80}.")
        if not example.target:
            case.fail(f"The data was read: example {i} of {split} should have a target, and has {example!r:.80}.")
        try:
            "".join(example).encode()
        except UnicodeEncodeError as error:
            case.fail(f"The data was read: example {i} of {split} should be text that UTF-8 can write: {error}.")


def sources(case: PartCase) -> None:
    """`has_source`, known before anything is read, says whether the examples have sources."""
    data = case.make()
    told = data.has_source
    for split, i, example in list_examples(data.read()):
        if bool(example.source) != told:
            case.fail(
                f"has_source is {told}: example {i} of {split} should be so, and its source is {example.source!r:.60}."
            )


def stable(case: PartCase) -> None:
    """The same examples in the same order, however often they are read."""
    data, other = case.make(), case.make()
    first = data.read()
    case.check_equal(data.read().sha256(), first.sha256(), "It was read a second time", "the sha256")
    case.check_equal(other.read().sha256(), first.sha256(), "It was made anew", "the sha256")


def disjoint(case: PartCase) -> None:
    """No example stands in two splits: what is scored was never trained on. Where there are sources, none of these
    does."""
    data = case.make()
    read = data.read()
    kept = {split: {e.source if data.has_source else e.target for e in getattr(read, split)} for split in SPLITS}
    for one, two in combinations(SPLITS, 2):
        if both := sorted(kept[one] & kept[two]):
            what = "sources" if data.has_source else "examples"
            case.fail(
                f"{one} and {two} were read: they should share no {what}, and share {len(both)}, as {both[0]!r:.60}."
            )


SUITE = Suite(isolate, collect_checks(reading, sources, stable, disjoint))
