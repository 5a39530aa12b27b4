"""A whole comparison: planned, and run to its end."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from zoo.compare.comparison import Comparison
from zoo.compare.prepared import Prepared

from .engines import ENGINES
from .engines.local import choose_capacity
from .estimate import estimate
from .match_seconds import match_by_seconds
from .plan import Plan
from .pool import STOPPED, State, choose_exit_code, run_all
from .progress import Show, display
from .shard import Shard
from .stages import WHOLE, count_resources, describe_starts, plan_stages


def plan_comparison(
    comparison: Comparison, prepared: Prepared, out: Path, *, workers: int | None = None, time: bool = True,
    say: Callable[[str], None] = lambda line: None,
) -> Plan:  # fmt: skip
    """What a comparison would run, with how long that would take with so many `workers` at once: by runs that are done
    in `out`, or, if `time` is true, by a step timed now. Reads the data. Raises `SpecError`.
    """
    workers = workers or choose_capacity(count_resources(comparison))
    comparison = match_by_seconds(comparison, prepared, out, workers, why_not="" if time else "--no-time", say=say)
    return estimate(comparison, prepared, out, workers, time)


def run_comparison(
    comparison: Comparison, prepared: Prepared, out: Path, *, file: str = "", workers: int | None = None,
    on: str = "local", shard: Shard = WHOLE, show: Callable[[int], AbstractContextManager[Show]] = display,
    say: Callable[[str], None] = lambda line: None,
) -> list[State]:  # fmt: skip
    """Train what is missing of a comparison, and return how every run ended: those on which the choice of others
    depends come first, and where some of them were stopped, the others are not begun.

    `file` is what the report names as its origin. `workers` runs go at once, as many as the engine `on` says unless
    given. `show(workers)` gives what shows the progress; `say` gets a line for what a user should know before.
    Raises `SpecError`.
    """
    states: list[State] = []
    ENGINES[on].check()
    with ENGINES[on].open(count_resources(comparison)) as (start, capacity):
        workers = workers or capacity
        why_not = f"--shard {shard}" if shard.count > 1 else f"--on {on}" if on != "local" else ""
        comparison = match_by_seconds(comparison, prepared, out, workers, why_not=why_not, say=say)
        for jobs in plan_stages(comparison, prepared, out, file, shard):
            for line in describe_starts(jobs):
                say(line)
            if jobs:
                with show(workers) as progress:
                    states += run_all(jobs, workers=workers, progress=progress, start=start)
            if states and choose_exit_code(states) == STOPPED:
                break
    return states
