import pytest
from hypothesis import given
from hypothesis import strategies as st

from zoo.execute.shard import Shard

COSTS = st.lists(st.integers(1, 10**15), min_size=1, max_size=40)


@given(COSTS, st.integers(1, 12))
def test_every_run_is_in_one_shard_and_no_shard_is_long(costs, count):
    held = [Shard(i, count).holds(costs) for i in range(1, count + 1)]
    assert all(sum(mine) == 1 for mine in zip(*held))
    loads = [sum(cost for cost, mine in zip(costs, shard) if mine) for shard in held]
    assert max(loads) <= sum(costs) / count + max(costs)


def test_a_seed_stays_on_one_machine():
    """Two rows and four seeds, the seeds one after the other."""
    assert Shard(1, 2).holds([5, 3] * 4) == [True] * 4 + [False] * 4
    assert [Shard(i, 4).holds([5, 3] * 4).index(True) for i in (1, 2, 3, 4)] == [0, 2, 4, 6]


def test_more_shards_than_runs():
    held = [Shard(i, 5).holds([1, 1]) for i in range(1, 6)]
    assert sum(map(sum, held)) == 2 and sum(not any(mine) for mine in held) == 3


def test_shards_as_written():
    assert Shard.read("2/4") == Shard(2, 4) and str(Shard(2, 4)) == "2/4" and Shard() == Shard.read("1/1")


@pytest.mark.parametrize("text", ["0/2", "3/2", "2", "1/0", "-1/2", "a/b", "1/2/3", "", "1 / 2", "٢/٤x"])
def test_what_is_no_shard(text):
    with pytest.raises(ValueError, match="should be i/n with i from 1 to n, such as 2/4"):
        Shard.read(text)
