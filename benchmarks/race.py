"""Calls timed in turns.

pytest-benchmark times one test after the other. On a machine whose speed drifts by a quarter within minutes that
compares moments, not variants. So all calls of a group are timed here, each once a round and in a new order every
round, and pytest-benchmark is told the times. Ratios are taken round by round. Times are of the processor, not of the
clock on the wall, unless a group says otherwise: with one thread they are the same where nobody else computes.
"""

from __future__ import annotations

import random
import statistics
from collections import deque
from collections.abc import Callable, Mapping
from time import process_time
from typing import Any

import pytest

Make = Callable[[], Callable[[], Any]]
"""Makes, untimed, the call that is timed next."""


class Replay:
    """A timer that shows times which were measured before."""

    def __init__(self):
        self.shown: deque[float] = deque()

    def load(self, seconds: list[float]) -> None:
        self.shown.extend(moment for duration in seconds for moment in (0.0, duration))

    def __call__(self) -> float:
        return self.shown.popleft()


clock = Replay()
in_turns = pytest.mark.benchmark(timer=clock)
ratios: list[list[str]] = []
"""Lines for the end of the session: group, name, ratio to the group's base and its quartiles."""


def race(makers: Mapping[Any, Make], rounds: int, timer: Callable[[], float] = process_time) -> dict[Any, list[float]]:
    """Seconds of each call in each of so many rounds; one more round goes first, to warm up."""
    order, shuffle = list(makers), random.Random(0).shuffle
    seconds: dict[Any, list[float]] = {name: [] for name in makers}
    for turn in range(rounds + 1):
        shuffle(order)
        for name in order:
            call = makers[name]()
            began = timer()
            call()
            if turn:
                seconds[name].append(timer() - began)
    return seconds


def show(benchmark, group: str, name: str, seconds: Mapping[str, list[float]], base: str) -> None:
    """Put the times of one call into pytest-benchmark's table, and its ratio to `base` into ours."""
    clock.load(seconds[name])
    benchmark.group = group
    benchmark.pedantic(lambda: None, rounds=len(seconds[name]))
    found = [mine / theirs for mine, theirs in zip(seconds[name], seconds[base], strict=True)]
    low, middle, high = statistics.quantiles(found, n=4)
    benchmark.extra_info.update(ratio=middle, ratio_to=base)
    ratios.append([group, name, f"{middle:.2f}", f"{low:.2f} to {high:.2f}", base])
