"""What the runs of a comparison share, made once: tasks with their data read, and what is counted of models."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass, replace
from typing import TypeVar

from zoo.declare.library import Library
from zoo.declare.shape import Shape
from zoo.declare.spec import ModelSpec, PartSpec
from zoo.faults import SpecError
from zoo.model.builder import bind_on_meta, bind_task, check_task, drop_unused_slots
from zoo.model.cost import Cost, count_cost
from zoo.model.weights import TensorMatch, match_tensors
from zoo.parts import Architecture
from zoo.tasks import Metric, Task
from zoo.train.metrics import metrics_of

from .run_spec import RunSpec, TrainedRun

T = TypeVar("T")
R = TypeVar("R", bound=RunSpec)


@dataclass(frozen=True)
class ModelFacts:
    """What is known of a run's model without its weights. `fit` says what a file of weights fills, None without one."""

    cost: Cost
    autoregressive: bool
    fit: TensorMatch | None


class Prepared:
    """Makes what runs share when it is first asked for, and keeps it.

    A task is read and tokenised once, and a model is checked and counted once, however many rows, seeds and trials
    have it. What is equal is told by content, never by identity, so that it may be kept elsewhere too.
    """

    def __init__(self, library: Library):
        self.library = library
        self._bound: dict[Hashable, Task] = {}
        self._read: dict[Hashable, Task] = {}
        self._used: dict[Hashable, Collection[str]] = {}
        self._fits: dict[Hashable, None] = {}
        self._facts: dict[Hashable, ModelFacts] = {}

    def bound_task(self, part: PartSpec, shape: Shape) -> Task:
        """The task with what it states of itself, nothing read yet. Raises `SpecError`."""
        return once(self._bound, (part.content, shape.of_tokens), lambda: bind_task(part, shape))

    def task(self, run: RunSpec) -> Task:
        """The run's task, its data read and its tokenizer trained. Raises `SpecError` for data that cannot serve."""

        def read() -> Task:
            task = self.bound_task(run.task, run.shape)
            try:
                task.prepare()
            except ValueError as error:
                raise SpecError([run.task.fault(str(error))]) from error
            return task

        return once(self._read, (run.task.content, run.shape.of_tokens), read)

    def metric(self, run: RunSpec) -> str:
        """The name of the metric that ranks the runs of this task."""
        return self.bound_task(run.task, run.shape).metrics[0]

    def ranking(self, run: RunSpec) -> Metric:
        """What this metric is: how it is counted, and which of two scores is better."""
        task = self.bound_task(run.task, run.shape)
        return metrics_of(task)[task.metrics[0]]

    def with_text(self, run: R) -> R:
        """The run with the hash of the text that it reads, by which its id is told."""
        return replace(run, text=self.task(run).sha256)

    def id(self, run: RunSpec) -> str:
        """The name of the run's folder."""
        return self.with_text(run).id()

    def used_slots(self, model: ModelSpec, shape: Shape) -> ModelSpec:
        """The model without the slots that nothing in it asks for, tried with two tokens. Raises `SpecError`."""

        used = once(
            self._used,
            (model.content, shape),
            lambda: drop_unused_slots(model, shape, self.library.registry).slots.keys(),
        )
        return model.only(used)

    def check_fit(self, model: ModelSpec, shape: Shape, task: PartSpec) -> None:
        """Raise `SpecError` if the task asks for what the architecture cannot express."""
        bound = self.bound_task(task, shape)
        once(
            self._fits,
            (model.content, shape, task.content),
            lambda: check_task(model, shape, bound, task, self.library.registry),
        )

    def facts(self, run: TrainedRun) -> ModelFacts:
        """What is known of the run's model on its task. Raises `SpecError`."""

        def count() -> ModelFacts:
            task = self.task(run)
            model = bind_on_meta(run.model, run.shape_for(task), self.library.registry)
            return ModelFacts(
                count_cost(model, task, run.train.batch_size), model.autoregressive, fit_weights(run, model)
            )

        return once(self._facts, (run.model.content, run.shape, run.task.content, run.train.batch_size), count)


def fit_weights(run: TrainedRun, model: Architecture) -> TensorMatch | None:
    """What the file that a model starts from fills. Raises `SpecError` where the file is named."""
    if run.model.weights is None:
        return None
    try:
        return match_tensors(model, run.model.weights)
    except SpecError as error:
        raise SpecError([run.model.node.fault(fault.text, "weights") for fault in error.faults]) from error


def once(kept: dict[Hashable, T], key: Hashable, make: Callable[[], T]) -> T:
    """What is kept under a key, or else what `make` makes now."""
    if key not in kept:
        kept[key] = make()
    return kept[key]
