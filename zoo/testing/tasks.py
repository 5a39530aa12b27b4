"""What any task must do.

B rows of a batch, S source tokens, T target tokens, V vocabulary.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from zoo.declare.shape import Shape
from zoo.declare.spec import Node
from zoo.model.builder import bind, make
from zoo.tasks import SPLITS, Batch, Data, Task
from zoo.train.loop import group_parameters
from zoo.train.metrics import evaluate, loss, predict

from .harness import Subject, Suite
from .part_case import MissingOptions, PartCase, collect_checks, combine
from .samples import Bytes, Lines, Pairs

SHAPE = Shape(d_model=32, n_heads=4, n_layers=1, max_len=32)
LONGEST = {"source": SHAPE.max_len, "target": SHAPE.max_len}
"""What a probe may hold: it may ask for more at once than training did."""
PARTNERS = (("lines", Lines), ("pairs", Pairs))


def build_cases(subject: Subject) -> Sequence[PartCase | MissingOptions]:
    """The task with each kind of data that it takes; a task that reads none stands alone."""
    found = combine(subject, [(name, make_requests(data)) for name, data in PARTNERS])
    first = found[0] if found else None
    if isinstance(first, PartCase) and "data" not in first.part.requests:
        return [replace(first, label=subject.label)]
    return found


def make_requests(data: type[Data]) -> dict[str, Any]:
    return {"shape": SHAPE, "data": data(), "tokenizer": Bytes()}


def prepare_task(case: PartCase) -> Task:
    task = case.make()
    task.prepare()
    return task


def make_generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def list_tensors(batch: Batch) -> list[Tensor]:
    return [value for value in vars(batch).values() if isinstance(value, Tensor)]


def are_equal(one: Batch, two: Batch) -> bool:
    pairs = zip(vars(one).values(), vars(two).values(), strict=True)
    return all(a.equal(b) if isinstance(a, Tensor) and isinstance(b, Tensor) else a is b for a, b in pairs)


def fill_keep(ids: Tensor, keep: Tensor | None) -> Tensor:
    return torch.ones_like(ids, dtype=torch.bool) if keep is None else keep


def list_rows(task: Task, split: str, size: int) -> Iterator[tuple]:
    """Every row of a split: the real tokens of its source and target, and what the latter weigh."""
    for batch in task.batches(split, size):
        source_keep, target_keep = (
            fill_keep(batch.source, batch.source_keep),
            fill_keep(batch.target, batch.target_keep),
        )
        for i, (s, t) in enumerate(zip(source_keep, target_keep, strict=True)):
            yield tuple(tuple(x.tolist()) for x in (batch.source[i][s], batch.target[i][t], batch.weight[i][t]))


def batches(case: PartCase) -> None:
    """Batches are ids [B, S] and [B, T] of the vocabulary, as long as the task says; pads are named and never count."""
    task = prepare_task(case)
    drawn = [("A training batch", task.batch(7, make_generator()))]
    drawn += [(f"A batch of {split}", batch) for split in SPLITS for batch in task.batches(split, 7)]
    probed = [(f"A batch of {split}", batch) for split in task.probes for batch in task.batches(split, 7)]
    lengths = {"source": task.source_len, "target": task.target_len}
    for what, batch, longest in [(*each, lengths) for each in drawn] + [(*each, LONGEST) for each in probed]:
        for fault in find_faults(task, batch, longest):
            case.fail(f"{what} of 7 rows: {fault}.")
    for split in ("training", "dev", "test", *task.probes):
        if not any(batch.weight.sum() > 0 for what, batch in drawn + probed if split in what.split()):
            case.fail(f"The {split} batches: some target should count, and none does.")


def find_faults(task: Task, batch: Batch, longest: Mapping[str, int]) -> Iterator[str]:
    """What is wrong with a batch in itself, its source and target being so long at most."""
    B, T = batch.target.shape
    S = batch.source.shape[1]
    if not 1 <= B <= 7 or len(batch.source) != B:
        yield f"there should be as many sources as targets, 1 to 7, and there are {len(batch.source)} and {B}"
    if longest["source"] < S or longest["target"] < T:
        yield f"they should be at most {longest['source']} and {longest['target']} long, and are {S} and {T}"
    for name, ids, keep in (("source", batch.source, batch.source_keep), ("target", batch.target, batch.target_keep)):
        if ids.dtype != torch.int64 or (ids < 0).any() or (ids >= task.vocab_size).any():
            yield f"the {name} should be ids from 0 to {task.vocab_size - 1}, and runs from {ids.min()} to {ids.max()}"
        if keep is not None and (keep.dtype != torch.bool or keep.shape != ids.shape):
            yield f"{name}_keep should be bools {list(ids.shape)}, and is {keep.dtype} {list(keep.shape)}"
        elif keep is not None and (ids[~keep] != SHAPE.pad).any():
            yield f"the {name} should hold {SHAPE.pad} wherever {name}_keep is False, and does not"
    weight = batch.weight
    if weight.dtype != torch.float32 or weight.shape != batch.target.shape:
        yield f"the weights should be float32 {[B, T]}, and are {weight.dtype} {list(weight.shape)}"
    elif not (weight.isfinite() & (weight >= 0)).all():
        yield "every weight should be a number from 0 on, and some are not"
    elif batch.target_keep is not None and weight[~batch.target_keep].any():
        yield "a pad of the target should weigh nothing, and some do"


def facts(case: PartCase) -> None:
    """What the task says of itself is so: `has_source`, `aligned`, `asks_in_target`, `choices`."""
    task = prepare_task(case)
    batch = task.batch(64, make_generator())
    counted, kept = batch.weight > 0, fill_keep(batch.target, batch.target_keep)
    found = {"has_source": batch.source.shape[1] > 0, "aligned": batch.aligned}
    if not task.aligned:  # where source and target are aligned, most places are read and not asked for
        found["asks_in_target"] = bool((kept & ~counted).any())
    for name, value in found.items():
        if getattr(task, name) != value:
            case.fail(f"A batch was drawn: {name} should be {value}, as the batch shows, and is {getattr(task, name)}.")
    names = [*SPLITS, *task.probes]
    if len(set(names)) < len(names) or bool(task.probes) != bool(task.probe_note):
        case.fail(f"Probes should have names of their own and a note, and are {task.probes}: {task.probe_note!r}.")
    if task.aligned and batch.source.shape != batch.target.shape:
        case.fail("A batch was drawn: an aligned target should be as long as its source, and is not.")
    if (choices := task.choices) is None:
        return
    if not (choices.diff() > 0).all() or choices.min() < 0 or choices.max() >= task.vocab_size:
        case.fail(f"choices should be ids of the vocabulary in ascending order, each once, and are {choices.tolist()}.")
    if strange := set(batch.target[counted].tolist()) - set(choices.tolist()):
        case.fail(f"A batch was drawn: every target that counts should be one of the choices, and {strange} are not.")


def generators(case: PartCase) -> None:
    """The generator alone decides what is drawn: the same gives the same, it moves on, torch's own is not used."""
    task, other = prepare_task(case), prepare_task(case)
    one, two = make_generator(3), make_generator(3)
    before = torch.get_rng_state()
    first, second = task.batch(8, one), task.batch(8, one)
    if not are_equal(first, other.batch(8, two)) or not are_equal(second, other.batch(8, two)):
        case.fail("A task was made twice and given equal generators: the batches should be equal, and are not.")
    if are_equal(first, second) or are_equal(first, task.batch(8, make_generator(4))):
        case.fail("A second batch was drawn, and one with another seed: both should differ from the first.")
    list(task.batches("dev", 8))
    if not torch.equal(before, torch.get_rng_state()):
        case.fail("Batches were drawn: torch's own generator should not have moved, and it has.")


def evaluation(case: PartCase) -> None:
    """Each split is gone through once, in one order, whatever the size of a batch."""
    task = prepare_task(case)
    for split in (*SPLITS, *task.probes):
        whole = list(list_rows(task, split, 1000))
        for size in (1000, 7, 1):
            found = list(list_rows(task, split, size))
            if found != whole:
                told = (
                    f"{len(found)} rows of {split} came, of which {sum(row in whole for row in found)} are among those"
                )
                case.fail(
                    f"Batches had {size} rows in place of 1000: the rows should stay the same {len(whole)}; {told}."
                )


def splits(case: PartCase) -> None:
    """No split is another one: most of its rows stand in no other. A probe may have those of test."""
    task = prepare_task(case)
    found = {split: set(list_rows(task, split, 64)) for split in (*SPLITS, *task.probes)}
    probed = [(seen, probe) for probe in task.probes for seen in ("train", "dev")]
    for one, two in (("train", "dev"), ("train", "test"), ("dev", "test"), *probed):
        both = len(found[one] & found[two])
        if both * 2 > min(len(found[one]), len(found[two])):
            case.fail(f"{one} and {two} were read: they should have few rows in common, and have {both}.")


def hidden(case: PartCase) -> str | None:
    """Where the target stands at the places of the source, most answers are not to be read there."""
    task = prepare_task(case)
    if not task.aligned:
        return "its source is not aligned with its target"
    batch = task.batch(64, make_generator())
    counted = batch.weight > 0
    share = (batch.source == batch.target)[counted].float().mean().item()
    if share > 0.5:
        case.fail(f"A batch was drawn: most answers should differ from the source, and {share:.0%} stand in it.")
    return None


def coverage(case: PartCase) -> str | None:
    """Bits per byte are of the whole text: the bytes of all targets that count in a split are those of its text."""
    task = prepare_task(case)
    if task.bytes is None or task.has_source:
        return (
            "it does not know how many bytes an id stands for" if task.bytes is None else "a part of its text is source"
        )
    assert task.data is not None and task.bytes is not None  # what bits per byte are counted from
    read = task.data.read()
    for split in SPLITS[1:]:
        text = sum(len(example.target.encode()) for example in getattr(read, split))
        scored = sum((b.weight * task.bytes[b.target]).sum().item() for b in task.batches(split, 7))
        if scored != text:
            case.fail(f"{split} was gone through: its {text} bytes should each be scored once, and {scored:g} are.")
    return None


class Uniform(nn.Module):
    """Gives every token the same chance."""

    def __init__(self, vocab_size: int):
        super().__init__()
        self.vocab_size = vocab_size

    def forward(self, source: Tensor | None, target: Tensor, **given: Any) -> Tensor:
        return torch.zeros(*target.shape, self.vocab_size)


def metrics(case: PartCase) -> None:
    """The metrics are known, each comes out finite, and a model that knows nothing loses ln V, V the choices."""
    task = prepare_task(case)
    known = [case.library.registry.spelling(entry) for entry in case.library.registry.variants("metric")]
    if strange := [name for name in task.metrics if name not in known] or not task.metrics:
        case.fail(f"the metrics should be some of {', '.join(known)}, and are {strange}.")
    model = Uniform(task.vocab_size)
    nats = math.log(task.vocab_size if task.choices is None else len(task.choices))
    for split, size in itertools.product(("dev", *task.probes), (64, 5)):
        found = evaluate(model, task, split, batch_size=size)
        wrong = [name for name, value in found.items() if not math.isfinite(value)]
        if wrong or not math.isclose(found.get("loss", nats), nats, rel_tol=1e-5):
            case.fail(
                f"A model that knows nothing was scored on {split} in batches of {size}: "
                f"its loss should be {nats:.4f}; {found}."
            )


def learnable(case: PartCase) -> None:
    """A tiny model that is shown the same eight rows again and again comes to know them."""
    task = prepare_task(case)
    model, optimizer = build_learner(case, task)
    batch, losses = task.batch(8, make_generator()), []
    for _ in range(60):
        nll, weight = loss(predict(model, batch), batch, task.choices)
        losses.append((nll / weight).item())
        (nll / weight).backward()
        optimizer.step()
        model.zero_grad()
    if not losses[-1] < losses[0] / 2:
        text = f"its loss should have fallen to less than half, and went from {losses[0]:.3f} to {losses[-1]:.3f}"
        case.fail(f"A tiny model was shown eight rows again and again: {text}.")


def build_learner(case: PartCase, task: Task) -> tuple[nn.Module, Any]:
    """A model with the default parts for this task, and the default optimizer for its weights."""
    reader = case.library.reader()
    spec, default = reader.model(Node({})), reader.default("optimizer")
    part = reader.part(default, "optimizer") if default else None
    reader.finish()
    assert spec and part, "registry.yaml names a default for each slot"
    length = task.source_len + task.target_len
    model = make(spec, replace(SHAPE, vocab_size=task.vocab_size, max_len=length), registry=case.library.registry)
    optimizer = bind(part, {"params": group_parameters(model)})
    for group in optimizer.param_groups:
        group["lr"] = 1e-2
    return model, optimizer


SUITE = Suite(
    build_cases,
    collect_checks(batches, facts, generators, evaluation, splits, hidden, coverage, metrics, learnable),
    frozenset({"learnable"}),
)
