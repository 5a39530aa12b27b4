"""Rows made to agree: the width or the number of steps at which a row has as many parameters, FLOPs or tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from zoo.declare import resize
from zoo.declare.shape import resize_shape
from zoo.faults import Fault, SpecError
from zoo.model.builder import bind_on_meta, build_on_meta
from zoo.model.card import count_by_part
from zoo.model.cost import count_flops_per_token, scale_to_step
from zoo.registry import Registry
from zoo.tasks import Task
from zoo.train.loop import count_step_tokens, count_steps

from .comparison import Comparison, ReferenceRow, Row
from .prepared import Prepared
from .rules import Match
from .run_spec import TrainedRun

CLOSE = 0.01
"""The share by which a row may differ and still count as equal."""
FAR = 0.1
"""A row that differs by more cannot be matched by this size."""
MOST = 8
"""Models that one search builds at most."""
OUTSIDE = ("embedding", "position", "head")
"""What holds the parameters that `non-embedding-parameters` leaves out."""

Measure = Callable[[TrainedRun, Task, Registry], float]


def count_parameters(run: TrainedRun, task: Task, registry: Registry) -> int:
    return sum(count_by_part(bind_on_meta(run.model, run.shape_for(task), registry)).values())


def count_inner_parameters(run: TrainedRun, task: Task, registry: Registry) -> int:
    counts = count_by_part(bind_on_meta(run.model, run.shape_for(task), registry))
    return sum(count for part, count in counts.items() if part not in OUTSIDE)


def count_flops(run: TrainedRun, task: Task, registry: Registry) -> int:
    return count_flops_per_token(bind_on_meta(run.model, run.shape_for(task), registry), task)


def count_step_flops(run: TrainedRun, task: Task, registry: Registry) -> int:
    return scale_to_step(count_flops(run, task, registry), run.train, task)


def refuse_untimed(run: TrainedRun, task: Task, registry: Registry) -> float:
    raise SpecError("match: no step of these rows has been timed; 'zoo run' and 'zoo plan' do that first")


MEASURES: Mapping[str, Measure] = {
    "parameters": count_parameters,
    "non-embedding-parameters": count_inner_parameters,
    "flops-per-token": count_flops,
    "training-flops": count_step_flops,
    "tokens": lambda run, task, registry: count_step_tokens(run.train, task),
    "seconds": refuse_untimed,
}
"""Of a model, or of one step where the steps are what is matched."""


def resize_ffn(run: TrainedRun, width: int) -> TrainedRun:
    return replace(run, shape=replace(run.shape, d_ff=width))


def resize_model(run: TrainedRun, width: int) -> TrainedRun:
    shape = resize_shape(run.shape, {"d_model": width})
    return replace(run, model=resize.resize_model(run.model, shape), shape=shape)


def resize_depth(run: TrainedRun, layers: int) -> TrainedRun:
    return replace(run, shape=replace(run.shape, n_layers=layers))


SIZES: Mapping[str, tuple[Callable[[TrainedRun, int], TrainedRun], Callable[[TrainedRun], tuple[int, ...]]]] = {
    "d_ff": (resize_ffn, lambda run: (run.shape.d_ff or 4 * run.shape.d_model, 8, 1)),
    "d_model": (resize_model, lambda run: (run.shape.d_model, 8 * run.shape.n_heads, 2 * run.shape.n_heads)),
    "n_layers": (resize_depth, lambda run: (run.shape.n_layers, 1)),
}
"""How a run is built at another size; where the search for it begins, and its steps, coarse before fine."""


def match_rows(comparison: Comparison, prepared: Prepared, measure: Measure | None = None) -> Comparison:
    """The comparison with every row at the size or the number of steps at which it agrees with the baseline in what
    `measure` finds, by default that of the table. Raises `SpecError` for rows that cannot.
    """
    rule = comparison.match
    if rule is None or any(row.match for row in comparison.rows):
        return comparison
    if isinstance(comparison.base, ReferenceRow):
        raise SpecError(f"match: the baseline '{comparison.baseline}' is no model; write 'to' with a number")
    target, measure = None if rule.to == "baseline" else rule.to, measure or MEASURES[rule.what]
    if target is None:
        run = comparison.base.first
        task = prepared.task(run)
        each = measure(run, task, prepared.library.registry)
        target = each * (count_steps(run.train, task) if rule.by == "steps" else 1)
    rows: list[Row] = []
    faults: list[Fault] = []
    for row in comparison.rows:
        try:
            rows.append(match_row(row, rule, measure, target, prepared))
        except SpecError as error:
            faults += error.faults
    if faults:
        raise SpecError(faults)
    return comparison.replace_rows(rows)


def match_row(row: Row, rule: Match, measure: Measure, target: float, prepared: Prepared) -> Row:
    """One row at the size or the steps at which it comes nearest to the target. Raises `SpecError`."""
    run, registry = row.first, prepared.library.registry
    task = prepared.task(run)
    size: int | None
    if rule.by == "steps":
        one = measure(run, task, registry)
        number = size = max(1, round(target / one))
        got = one * number
        if number != count_steps(run.train, task):
            row = row.change_runs(lambda each: replace(each, train=each.train.of_steps(number)))
    else:
        assert rule.by, "or what is matched would say by which size"
        got, size = measure(run, task, registry), None
        if got != target:
            change, (start, *steps) = SIZES[rule.by][0], SIZES[rule.by][1](run)
            size = search_size(lambda n: measure(change(run, n), task, registry), target, start, list(steps))
            if size is None:
                why = "its parts have no such width, or write their own"
                others = " or ".join(way for way in SIZES if way != rule.by)
                text = f"row '{row.name}': {rule.by} changes nothing in its {rule.what}: {why}; match by {others}"
                raise SpecError([run.model.node.fault(text)])
            new = change(run, size)
            build_on_meta(new.model, new.shape_for(task), registry)
            got = measure(new, task, registry)
            row = row.change_runs(lambda each: replace(each, model=new.model, shape=new.shape))
    off = got / target - 1
    if abs(off) > FAR:
        text = f"row '{row.name}' cannot be matched in {rule.what}: {rule.by} {size} comes nearest, {off:+.0%} off"
        raise SpecError([run.model.node.fault(text)])
    return replace(row, match={"what": rule.what, "by": rule.by, "size": size, "value": got, "mismatch": off})


def search_size(count: Callable[[int], float], target: float, start: int, steps: list[int]) -> int | None:
    """The size whose count comes nearest to the target, in multiples of the first step, or of a finer one where that
    is not close enough; None if the size changes nothing. By secants: counts are lines or parabolas of a size.
    """
    off: dict[int, float] = {}
    for step in steps:
        try:
            find_root(lambda n: count(n) - target, off, start, step)
        except SpecError:  # sizes that the parts do not accept
            if not off:
                raise
        if len(set(off.values())) < 2:
            return None
        start = min(off, key=lambda n: abs(off[n]))
        if abs(off[start]) <= CLOSE * target:
            break
    return start


def find_root(distance: Callable[[int], float], off: dict[int, float], start: float, step: int) -> None:
    """Add to `off` the distances of sizes, nearer and nearer to where it is 0."""

    def at(size: float) -> int:
        size = max(1, round(size / step)) * step
        if size not in off:
            off[size] = distance(size)
        return size

    one = at(start)
    two = at(one * 2 if off[one] < 0 else one / 2)
    two = at(one + step) if two == one else two
    for _ in range(MOST):
        if off[one] == off[two]:
            return
        three = two - off[two] * (two - one) / (off[two] - off[one])
        size = max(1, round(three / step)) * step
        if size in off:
            return
        one, two = two, at(size)
