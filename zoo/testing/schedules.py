"""What any schedule must do: a function of the step, in units of the peak rate."""

from __future__ import annotations

import math

from .harness import Suite
from .part_case import PartCase, collect_checks, isolate

PLANS = ((1, 0), (1, 1), (2, 1), (3, 3), (5, 50), (40, 0), (40, 7), (1000, 100))
"""Steps and warm-up; some plans end before their warm-up does."""


def compute_factors(case: PartCase, steps: int, warmup: int) -> list[float]:
    schedule = case.make(steps=steps, warmup=warmup)
    return [schedule(step) for step in range(steps)]


def bounds(case: PartCase) -> None:
    """Every step of a run, and one after it, has a factor from 0 to 1, and the first update learns."""
    for steps, warmup in PLANS:
        made = case.make(steps=steps, warmup=warmup)
        for step in range(steps + 1):
            factor = made(step)
            if not isinstance(factor, int | float) or not math.isfinite(factor) or not 0 <= factor <= 1:
                case.fail(
                    f"{describe_plan(steps, warmup)}: the factor of step {step} should be from 0 to 1, and is {factor}."
                )
        if not made(0) > 0:
            case.fail(
                f"{describe_plan(steps, warmup)}: the factor of the first step should be above 0, and is {made(0)}."
            )


def warm_up(case: PartCase) -> None:
    """The factor rises evenly over the warm-up and reaches 1 with its last step."""
    for steps, warmup in PLANS:
        found = compute_factors(case, steps, warmup)[:warmup]
        for step, factor in enumerate(found):
            if not math.isclose(factor, (step + 1) / warmup, rel_tol=1e-9):
                told = f"should be {step + 1} / {warmup}, and is {factor}"
                case.fail(
                    f"{describe_plan(steps, warmup)}: the factor of step {step}, which is one of the warm-up, {told}."
                )


def peak(case: PartCase) -> None:
    """A run that is longer than its warm-up reaches the peak."""
    for steps, warmup in PLANS:
        highest = max(compute_factors(case, steps, warmup))
        if steps > warmup and not math.isclose(highest, 1.0, rel_tol=1e-9):
            case.fail(f"{describe_plan(steps, warmup)}: the highest factor should be 1, and is {highest}.")


def memoryless(case: PartCase) -> None:
    """A step's factor does not depend on the steps that were asked for before: a run that is resumed goes on alike."""
    for steps, warmup in PLANS:
        forwards, made = compute_factors(case, steps, warmup), case.make(steps=steps, warmup=warmup)
        backwards = [made(step) for step in reversed(range(steps))]
        case.check_equal(
            backwards[::-1], forwards, f"{describe_plan(steps, warmup)}, the last step asked for first", "the factors"
        )


def describe_plan(steps: int, warmup: int) -> str:
    return f"{steps} steps with a warm-up of {warmup}"


SUITE = Suite(isolate, collect_checks(bounds, warm_up, peak, memoryless))
