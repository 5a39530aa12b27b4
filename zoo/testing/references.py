"""What any reference row must do.

B rows, T target tokens, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from zoo.tasks import Batch, Reference, Task, fixed, pieces

from .harness import Subject, Suite
from .part_case import MissingOptions, PartCase, collect_checks, combine

VOCABULARY = 7


class Walk(Task):
    """Rows of tokens that mostly count upwards, so that there is something to learn; with `source`, those before."""

    vocab_size = VOCABULARY
    source_len = target_len = 6
    train_tokens = 600

    def __init__(self, source: bool):
        self.has_source = source

    def batch(self, size: int, generator: torch.Generator) -> Batch:
        steps = torch.randint(1, 3, (size, 12), generator=generator)
        ids = (steps.cumsum(1) + torch.randint(VOCABULARY, (size, 1), generator=generator)) % VOCABULARY
        target = ids[:, 6:]
        return Batch(ids[:, : 6 * self.has_source], target, torch.ones(target.shape))

    def batches(self, split: str, size: int) -> Iterator[Batch]:
        yield from pieces(self.batch(100 if split == "train" else 20, fixed(split)), size)


TASKS = {"a task without a source": False, "a task with a source": True}


def build_cases(subject: Subject) -> Sequence[PartCase | MissingOptions]:
    """The reference with each task that it takes."""
    found: list[PartCase | MissingOptions] = []
    for case in combine(subject, [(name, {"task": Walk(source)}) for name, source in TASKS.items()]):
        try:
            if isinstance(case, PartCase):
                case.make().fit(case.given["task"])
        except ValueError as error:
            subject.refusals.append(f"{case.label}: {error}")
        else:
            found.append(case)
    return found


def fit_reference(case: PartCase) -> tuple[Reference, Batch]:
    reference = case.make()
    task = case.given["task"]
    reference.fit(task)
    return reference, next(task.batches("test", 5))


def replace_target(batch: Batch, target: Tensor) -> Batch:
    return Batch(batch.source, target, batch.weight)


def finite(case: PartCase) -> None:
    """Nats are [B, T], finite, and never below 0, for tokens that training never saw too."""
    reference, batch = fit_reference(case)
    for target in (batch.target, torch.full_like(batch.target, VOCABULARY - 1), torch.zeros_like(batch.target)):
        nats = reference.nll(replace_target(batch, target))
        if nats.shape != target.shape or not nats.isfinite().all() or (nats < 0).any():
            told = f"{list(nats.shape)}, from {nats.min():.3g} to {nats.max():.3g}"
            case.fail(f"A batch was scored: the nats should be {list(target.shape)}, finite and at least 0; {told}.")


def distribution(case: PartCase) -> None:
    """At every place, the chances of all tokens add up to 1: none is told by the token that it is the chance of."""
    reference, batch = fit_reference(case)
    for t in range(batch.target.shape[1]):
        total = torch.zeros(len(batch.target), dtype=torch.float64)
        for token in range(VOCABULARY):
            target = batch.target.clone()
            target[:, t] = token
            total += reference.nll(replace_target(batch, target))[:, t].double().neg().exp()
        if not torch.allclose(total, torch.ones_like(total), atol=1e-6):
            told = f"should be 1 in every row, and are {total.tolist()}"
            case.fail(
                f"Target token {t} became each of the {VOCABULARY} tokens in turn: the sums of their chances {told}."
            )


def future(case: PartCase) -> None:
    """The nats of a token do not depend on those after it."""
    reference, batch = fit_reference(case)
    before = reference.nll(batch)
    for t in range(1, batch.target.shape[1]):
        target = batch.target.clone()
        target[:, t] = (target[:, t] + 1) % VOCABULARY
        after = reference.nll(replace_target(batch, target))
        case.check_equal(
            after[:, :t], before[:, :t], f"Target token {t} became another", f"the nats of tokens 0 to {t - 1}"
        )


def rows(case: PartCase) -> None:
    """A row has the same nats alone and among others."""
    reference, batch = fit_reference(case)
    together = reference.nll(batch)
    for i in range(len(together)):
        one = Batch(batch.source[i : i + 1], batch.target[i : i + 1], batch.weight[i : i + 1])
        case.check_equal(reference.nll(one), together[i : i + 1], f"Row {i} was scored alone", "its nats")


def repeats(case: PartCase) -> None:
    """Fitted anew, or again, on the same task, it gives the same nats."""
    (one, batch), (two, _) = fit_reference(case), fit_reference(case)
    nats = one.nll(batch)
    case.check_equal(two.nll(batch), nats, "Another was fitted to the same task", "the nats")
    one.fit(case.given["task"])
    case.check_equal(one.nll(batch), nats, "It was fitted a second time", "the nats")


SUITE = Suite(build_cases, collect_checks(finite, distribution, future, rows, repeats))
