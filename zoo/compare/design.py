"""Which combinations of the values that vary become rows: designs over axes, and conditions that leave some out."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

Pick = tuple[int, ...]
"""One value of every axis, by number; the first of each is the baseline."""
Allowed = Callable[[Sequence[int | None]], bool]
"""Whether a pick may stand; None is a value that is not chosen yet."""
Condition = Mapping[int, frozenset[int]]
"""Values of some axes, any of which each may have."""


@dataclass(frozen=True)
class Conditions:
    """What a row has to be: one of `only`, if there are such, and none of `without`."""

    only: tuple[Condition, ...] = ()
    without: tuple[Condition, ...] = ()

    def __call__(self, pick: Sequence[int | None]) -> bool:
        """Whether the pick meets them, or, where values are not chosen yet, still can."""
        fits = not self.only or any(
            all(pick[axis] is None or pick[axis] in values for axis, values in condition.items())
            for condition in self.only
        )
        return fits and not any(
            all(pick[axis] in values for axis, values in condition.items()) for condition in self.without
        )


def grid(sizes: Sequence[int], allowed: Allowed) -> list[Pick]:
    """Every value with every other."""
    return [pick for pick in itertools.product(*map(range, sizes)) if allowed(pick)]


def one_at_a_time(sizes: Sequence[int], allowed: Allowed) -> list[Pick]:
    """The baseline, and every single change of it."""
    first = (0,) * len(sizes)
    changes = ((axis, value) for axis, size in enumerate(sizes) for value in range(1, size))
    return anchored([first, *(replaced(first, axis, value) for axis, value in changes)], allowed)


def leave_one_out(sizes: Sequence[int], allowed: Allowed) -> list[Pick]:
    """All changes at once, and then each of them taken back. Raises `ValueError` for an axis of three values."""
    if max(sizes) > 2:
        raise ValueError("an axis has two values here, without and with")
    every = tuple(size - 1 for size in sizes)
    return anchored([every, *(replaced(every, axis, 0) for axis, size in enumerate(sizes) if size > 1)], allowed)


def anchored(picks: list[Pick], allowed: Allowed) -> list[Pick]:
    """The picks that may stand. Raises `ValueError` if the first, to which all others are one step, may not."""
    if not allowed(picks[0]):
        raise ValueError("the row from which the others are one step is left out by a condition")
    return [pick for pick in picks if allowed(pick)]


def replaced(pick: Pick, axis: int, value: int) -> Pick:
    return (*pick[:axis], value, *pick[axis + 1 :])


def pairwise(sizes: Sequence[int], allowed: Allowed) -> list[Pick]:
    """Few rows in which every pair of values of two axes stands at least once, if any row that may stand has it.

    Each row takes the first pair that is missing and adds, axis by axis, the value that brings most missing pairs; of
    equal ones that which has stood in the fewest rows (after Cohen et al. 1997, "The AETG System").
    """
    if len(sizes) < 2:
        return grid(sizes, allowed)
    every = range(len(sizes))
    missing = {
        ((i, a), (j, b)): None
        for i, j in itertools.combinations(every, 2)
        for a, b in itertools.product(range(sizes[i]), range(sizes[j]))
    }
    used = [[0] * size for size in sizes]
    rows: list[Pick] = []
    while missing:
        partial: list[int | None] = [None] * len(sizes)
        first = next(iter(missing))
        for axis, value in first:
            partial[axis] = value
        row = next(completions(partial, missing, used, allowed), None)
        if row is None:
            del missing[first]
            continue
        rows.append(row)
        for pair in itertools.combinations(enumerate(row), 2):
            missing.pop(pair, None)
        for axis, value in enumerate(row):
            used[axis][value] += 1
    return rows


def completions(
    partial: list[int | None], missing: Mapping, used: Sequence[Sequence[int]], allowed: Allowed
) -> Iterator[Pick]:
    """The rows that may stand and hold the values chosen so far, the most wanted first."""
    if not allowed(partial):
        return
    open_axes = [axis for axis, value in enumerate(partial) if value is None]
    if not open_axes:
        yield tuple(value for value in partial if value is not None)
        return
    axis = open_axes[0]
    chosen = [(other, value) for other, value in enumerate(partial) if value is not None]

    def wanted(value: int) -> tuple[int, int]:
        return -sum(tuple(sorted([(axis, value), other])) in missing for other in chosen), used[axis][value]

    for value in sorted(range(len(used[axis])), key=wanted):
        yield from completions([*partial[:axis], value, *partial[axis + 1 :]], missing, used, allowed)


DESIGNS: Mapping[str, Callable[[Sequence[int], Allowed], list[Pick]]] = {
    "grid": grid,
    "one-at-a-time": one_at_a_time,
    "leave-one-out": leave_one_out,
    "pairwise": pairwise,
}
