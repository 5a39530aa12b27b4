"""What any optimizer must do."""

from __future__ import annotations

import copy
import json
from typing import Any

import torch
from torch import Tensor, nn

from zoo.model import weights

from .harness import Suite
from .part_case import PartCase, collect_checks, isolate

RATES = (0.3, 0.1, 0.03, 0.01, 0.003)


class Valley(nn.Module):
    """A quadratic: the squared distance of a matrix and a vector from where they should be, in steep and flat
    directions. It begins away from 0, where a decay shows.
    """

    def __init__(self):
        super().__init__()
        draw = torch.Generator().manual_seed(0)
        self.matrix, self.vector = (nn.Parameter(torch.randn(n, generator=draw) + 2) for n in ((4, 3), (3,)))
        self.slope = torch.tensor([1.0, 0.3, 3.0])

    def forward(self) -> Tensor:
        return (self.slope * (self.matrix - 1).square()).sum() + (self.slope * (self.vector + 1).square()).sum()

    def groups(self) -> list[dict]:
        """As training hands them over: what decays, and what never does."""
        return [{"params": [self.matrix]}, {"params": [self.vector], "weight_decay": 0.0}]


class Descent:
    """An optimizer on its way down the valley, at a rate that is set anew for every step."""

    def __init__(self, case: PartCase):
        self.valley = Valley()
        self.optimizer = case.make(params=self.valley.groups())

    def go(self, steps: int, rate: float = 0.01) -> Descent:
        for step in range(steps):
            self.valley.zero_grad()
            self.valley().backward()
            self.step(rate / (step + 1) ** 0.5)
        return self

    def step(self, rate: float) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()

    def rest(self, rate: float, decay: float | None = None) -> None:
        """A step without a slope."""
        for p in self.valley.parameters():
            p.grad = torch.zeros_like(p)
        if decay is not None:
            self.optimizer.param_groups[0]["weight_decay"] = decay
        self.step(rate)

    @property
    def place(self) -> Tensor:
        return torch.cat([p.detach().flatten() for p in self.valley.parameters()]).clone()


def descent(case: PartCase) -> None:
    """At one of several rates, it gets most of the way down a quadratic in 100 steps."""
    first = Valley()().item()
    ends = {rate: Descent(case).go(100, rate).valley().item() for rate in RATES}
    if not any(end < 0.1 * first for end in ends.values()):
        told = ", ".join(f"{end:.3g} at {rate}" for rate, end in ends.items())
        case.fail(
            f"100 steps were made down a quadratic: {first:.3g} should have fallen to a tenth, and came to {told}."
        )


def rate(case: PartCase) -> None:
    """The rate that stands in a group is the one that counts: at 0 nothing moves, and at a smaller one less does."""
    moved = {}
    for size in (0.0, 1e-4, 1e-2):
        run = Descent(case)
        before = run.place
        moved[size] = (run.go(1, size).place - before).abs().max().item()
    if moved[0.0] != 0 or not 0 < moved[1e-4] < moved[1e-2]:
        case.fail(f"Rates of 0, 0.0001 and 0.01 were set: the step should grow with them, and was {[*moved.values()]}.")


def groups(case: PartCase) -> None:
    """Every parameter stands in a group, once, with the options of its group."""
    run = Descent(case)
    found = [id(p) for group in run.optimizer.param_groups for p in group["params"]]
    expected = [id(p) for p in run.valley.parameters()]
    if sorted(found) != sorted(expected):
        case.fail(
            f"Two groups were given: param_groups should hold their {len(expected)} tensors, and holds {len(found)}."
        )
    if not all("lr" in group for group in run.optimizer.param_groups):
        case.fail("Two groups were given: each of param_groups should have an 'lr', and does not.")


def decay(case: PartCase) -> str | None:
    """A group that is given a decay shrinks even where there is no slope; one whose decay is 0 does not move."""
    run = Descent(case)
    if "weight_decay" not in run.optimizer.param_groups[0]:
        return "it has no weight_decay"
    matrix, vector = run.valley.matrix.detach().clone(), run.valley.vector.detach().clone()
    run.rest(0.1, decay=0.5)
    case.check_equal(
        run.valley.vector.detach(), vector, "A step was made without a slope", "what its group says never decays"
    )
    if not run.valley.matrix.norm() < matrix.norm():
        case.fail("A step was made without a slope, at a decay of 0.5: the matrix should have shrunk, and has not.")
    return None


def no_slope(case: PartCase) -> None:
    """Parameters without a gradient stay as they are, and gradients of 0 do no harm."""
    run = Descent(case)
    before = run.place
    run.step(0.1)
    case.check_equal(run.place, before, "A step was made without gradients", "the weights")
    run.go(1)
    vector = run.valley.vector.detach().clone()
    run.valley.zero_grad()
    run.valley().backward()
    run.valley.vector.grad = None
    run.step(0.1)
    case.check_equal(
        run.valley.vector.detach(), vector, "A step was made in which one tensor had no gradient", "that tensor"
    )
    run.rest(0.1)
    if not run.place.isfinite().all():
        case.fail("A step was made with gradients of 0: the weights should be finite, and are not.")


def repeats(case: PartCase) -> None:
    """Twice the same steps lead to the same bits, and torch's own generator is not touched."""
    before = torch.get_rng_state()
    one, two = Descent(case).go(5), Descent(case).go(5)
    case.check_equal(two.place, one.place, "The same five steps were made again", "the weights")
    if not torch.equal(before, torch.get_rng_state()):
        case.fail("Steps were made: torch's own generator should not have moved, and it has.")


def resuming(case: PartCase) -> None:
    """Saved after three steps as a run's folder has it, and loaded into a new one, it goes on to the same bits."""
    run = Descent(case).go(3)
    other = Descent(case)
    other.valley.load_state_dict(run.valley.state_dict())
    weights.unflatten(other.optimizer, *save_state(run.optimizer))
    case.check_equal(
        other.go(3).place, run.go(3).place, "It was saved and loaded after three steps", "the weights three steps on"
    )


def save_state(optimizer: Any) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What a run's folder keeps of an optimizer: tensors, and facts as JSON."""
    tensors, facts = weights.flatten(optimizer)
    return copy.deepcopy(tensors), json.loads(json.dumps(facts))


SUITE = Suite(isolate, collect_checks(descent, rate, groups, decay, no_slope, repeats, resuming))
