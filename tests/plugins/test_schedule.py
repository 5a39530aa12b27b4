import math

import pytest

from zoo.declare.library import open_library
from zoo.declare.spec import Node
from zoo_plugins import schedule


def rates(make, n, **given):
    return [make(**given)(step) for step in range(n)]


def test_cosine_starts_above_zero_and_ends_at_its_floor():  # TRAIN-4
    got = rates(schedule.cosine, 9, steps=6, warmup=2, floor=0.1)
    assert got == pytest.approx([0.5, 1, 1, 0.8682, 0.55, 0.2318, 0.1, 0.1, 0.1], abs=5e-5)


def test_linear_is_a_straight_line():
    assert rates(schedule.linear, 6, steps=6, warmup=2) == pytest.approx([0.5, 1, 1, 0.75, 0.5, 0.25])
    assert schedule.linear(10, 0, floor=0.5)(10) == 0.5


def test_constant_stays_at_the_peak():
    assert rates(schedule.constant, 5, steps=5, warmup=4) == [0.25, 0.5, 0.75, 1, 1]


def test_inverse_sqrt_is_the_formula_of_2017():
    d_model, warmup = 512, 4000
    ours = schedule.inverse_sqrt(100_000, warmup)
    peak = d_model**-0.5 * warmup**-0.5
    for step in (1, 10, 3999, 4000, 4001, 50_000):  # theirs counts from 1
        theirs = d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
        assert ours(step - 1) * peak == pytest.approx(theirs, rel=1e-12)


@pytest.mark.parametrize("make", [schedule.cosine, schedule.linear, schedule.constant, schedule.inverse_sqrt])
def test_every_step_learns_and_none_exceeds_the_peak(make):
    for steps, warmup in [(1, 0), (1, 1), (3, 3), (5, 50), (40, 7)]:
        got = rates(make, steps, steps=steps, warmup=warmup)
        assert all(0 < rate <= 1 and math.isfinite(rate) for rate in got), (steps, warmup, got)


@pytest.mark.parametrize("name", ["cosine", "linear"])
def test_a_floor_that_cannot_be_is_refused_where_it_is_read(name):
    reader = open_library().reader()
    assert reader.part(Node({"name": name, "floor": 1.5}), "schedule") is None
    assert "floor is 1.5; it should be a number of at least 0 and at most 1" in reader.faults[0].text
