"""Values drawn by Optuna: what comes next is a function of the trials before it, asked and told in a fixed order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from zoo.declare.spec import Node

from .tuning_rules import Draw, Range, Tune

Values = Mapping[str, Node]
"""A value for every path in `train`."""


def make_samplers() -> Mapping[str, Callable[[int, int], Any]]:
    """By name, what makes a sampler of a seed and the number of trials to draw before it looks at any."""
    from optuna.samplers import RandomSampler, TPESampler

    return {
        "tpe": lambda seed, first: TPESampler(seed=seed, n_startup_trials=first),
        "random": lambda seed, first: RandomSampler(seed=seed),
    }


def draw_values(
    tune: Tune,
    draw: Draw,
    better: str,
    whole: Callable[[str], bool],
    score: Callable[[Sequence[Values]], list[float | None] | None],
) -> list[Values]:
    """The values of every trial that can be known: batch after batch, up to one of which trials are to come.

    `whole(path)` says whether a setting is a whole number. `score` gives the scores of a batch, None for a trial that
    has none, and None in place of all while one is to come. The sampler's seed is the first of the trials', so all
    rows begin with the same values.
    """
    import optuna
    from optuna.trial import TrialState

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    space = {path: make_distribution(axis, whole(path)) for path, axis in tune.axes.items()}
    sampler = make_samplers()[draw.sampler](tune.seeds[0], draw.per_round)
    study = optuna.create_study(direction="maximize" if better == "higher" else "minimize", sampler=sampler)
    found: list[Values] = []
    while len(found) < draw.trials:
        asked = [study.ask(space) for _ in range(min(draw.per_round, draw.trials - len(found)))]
        batch = [{path: place_value(tune.axes[path], got) for path, got in trial.params.items()} for trial in asked]
        found += batch
        if (scores := score(batch)) is None:
            break
        for trial, value in zip(asked, scores, strict=True):
            study.tell(trial, value, state=TrialState.FAIL if value is None else TrialState.COMPLETE)
    return found


def make_distribution(axis: Sequence[Node] | Range, whole: bool) -> Any:
    """What Optuna draws from; of a list, the number of a value, which itself may be anything."""
    from optuna import distributions

    if not isinstance(axis, Range):
        return distributions.CategoricalDistribution(range(len(axis)))
    kind = distributions.IntDistribution if whole else distributions.FloatDistribution
    return kind(axis.low.plain(), axis.high.plain(), log=axis.scale == "log")


def place_value(axis: Sequence[Node] | Range, got: Any) -> Node:
    """What was drawn, as if it stood in the file."""
    return Node(got, axis.low.path, axis.low.document) if isinstance(axis, Range) else axis[got]


def read_version() -> str:
    """That of Optuna: another one may draw other values."""
    import optuna

    return optuna.__version__
