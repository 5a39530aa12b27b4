"""What runs look like while they run: live lines in a terminal and a notebook, now and then a plain one elsewhere."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import TextIO

from .pool import State

Show = Callable[[Sequence[State]], None]
LIVE, PLAIN = 0.25, 15.0
"""Seconds between two pictures in a terminal, and between two lines elsewhere."""


MOST = 20
"""Ended runs that a notebook shows."""


@contextmanager
def silent(workers: int) -> Iterator[Show]:
    """A function for `run_all` to call that shows nothing."""
    yield lambda states: None


@contextmanager
def display(workers: int, stream: TextIO | None = None) -> Iterator[Show]:
    """A function for `run_all` to call; it writes to the output of a notebook's cell, or to `stream`, which is stderr
    unless given.
    """
    if stream is None and in_notebook():
        yield update_cell(workers)
        return
    stream = stream or sys.stderr
    if not stream.isatty():
        yield print_plainly(workers, stream)
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(file=stream), auto_refresh=False, transient=True) as screen:
        ended: set[str] = set()
        shown = -LIVE

        def show(states: Sequence[State]) -> None:
            nonlocal shown
            over = list_ended(states, ended)
            if over or monotonic() - shown >= LIVE:
                shown = monotonic()
                screen.update(draw_table(states, workers), refresh=True)
            for state in over:  # above the picture, which is drawn anew as it was last
                screen.console.print(describe_run(state), markup=False, highlight=False)

        yield show


def in_notebook() -> bool:
    """Whether IPython runs here with a kernel, which is what a notebook talks to; it is not imported for that."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


def update_cell(workers: int) -> Show:
    """Keeps one output of the cell: the runs that ended last, those that run, and how far all are."""
    from IPython.display import display

    ended: set[str] = set()
    lines: list[str] = []
    shown = -math.inf
    output = display({"text/plain": ""}, raw=True, display_id=True)

    def show(states: Sequence[State]) -> None:
        nonlocal shown
        over = list_ended(states, ended)
        lines.extend(map(describe_run, over))
        if over or monotonic() - shown >= LIVE:
            shown = monotonic()
            running = [describe_run(state) for state in states if state.status == "running"]
            text = "\n".join([*lines[-MOST:], *running, describe_total(states, workers)])
            output.update({"text/plain": text}, raw=True)

    return show


def print_plainly(workers: int, stream: TextIO) -> Show:
    """Prints a run's end when it ends, and at first and every so often how far all are."""
    ended: set[str] = set()
    shown = -math.inf

    def show(states: Sequence[State]) -> None:
        nonlocal shown
        for state in list_ended(states, ended):
            print(describe_run(state), file=stream, flush=True)
        if monotonic() - shown >= PLAIN:
            shown = monotonic()
            running = [describe_run(state) for state in states if state.status == "running"]
            print("; ".join([describe_total(states, workers), *running]), file=stream, flush=True)

    return show


def list_ended(states: Sequence[State], ended: set[str]) -> list[State]:
    """The runs that have ended since the last call, in this process."""
    found = [s for s in states if s.process and s.status not in ("not run", "running") and s.job.run.id not in ended]
    ended.update(s.job.run.id for s in found)
    return found


def draw_table(states: Sequence[State], workers: int):
    """One line per running run, and one for all; where there is no room, names are cut."""
    from rich.console import Group
    from rich.table import Column, Table
    from rich.text import Text

    grid = Table.grid("", *(Column(no_wrap=True) for _ in range(4)), padding=(0, 2))
    for state in states:
        if state.status == "running":
            grid.add_row(Text(state.job.name, no_wrap=True, overflow="ellipsis"), *map(Text, describe_progress(state)))
    return Group(grid, Text(describe_total(states, workers)))


def describe_run(state: State) -> str:
    """A run on one line: how far it is, or how it ended."""
    if state.status == "running":
        return f"{state.job.name}: {', '.join(filter(None, describe_progress(state)))}"
    reason = f": {state.reason}" if state.reason else ""
    return f"{state.job.name} {state.status} after {format_clock(state.seconds)}{reason}"


def describe_progress(state: State) -> tuple[str, ...]:
    """Step, loss, speed and time to go; nothing where it is not known yet."""
    if state.steps is None:
        return ("starting", "", "", "")
    return (
        f"step {state.step}/{state.steps}",
        f"loss {state.loss:.3f}" if state.loss is not None else "",
        f"{state.tokens_per_second:,.0f} tokens/s" if state.tokens_per_second else "",
        "scoring" if state.step == state.steps else f"{format_clock(state.eta)} to go" if state.eta is not None else "",
    )


def describe_total(states: Sequence[State], workers: int) -> str:
    """`3/15 runs, 1 failed, 2:10 to go`."""
    counts = Counter(state.status for state in states)
    over = len(states) - counts["running"] - counts["not run"]
    bad = [f"{counts[status]} {status}" for status in ("failed", "diverged", "interrupted") if counts[status]]
    left = estimate_remaining(states, workers)
    to_go = [] if left is None else [f"{format_clock(left)} to go"]
    return ", ".join([f"{over}/{len(states)} runs", *bad, *to_go])


def estimate_remaining(states: Sequence[State], workers: int) -> float | None:
    """Seconds until all have ended, if each that waits takes as long as those that have ended or run do."""
    running = [s for s in states if s.status == "running"]
    waiting = sum(s.status == "not run" for s in states)
    etas = [s.eta for s in running if s.eta is not None]
    if len(etas) < len(running):
        return None
    whole = [s.seconds + eta for s, eta in zip(running, etas, strict=True)]
    whole += [s.seconds for s in states if s.process and s.status == "done"]
    left = sum(etas)
    if waiting:
        if not whole:
            return None
        left += waiting * sum(whole) / len(whole)
    return left / max(1, min(workers, len(running) + waiting))


def format_clock(seconds: float) -> str:
    """`0:07`, `12:30`, `1:02:03`."""
    whole, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(whole, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
