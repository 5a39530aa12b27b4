"""A comparison divided among machines that know nothing of each other: shard i of n, and which runs are in it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Shard:
    """Part `index` of `count`, counted from 1."""

    index: int = 1
    count: int = 1

    @classmethod
    def read(cls, text: str) -> Shard:
        """Of `2/4`. Raises `ValueError`."""
        found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
        if not found or not 1 <= int(found[1]) <= int(found[2]):
            raise ValueError(f"'{text}' should be i/n with i from 1 to n, such as 2/4")
        return cls(int(found[1]), int(found[2]))

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    def holds(self, costs: Sequence[int]) -> list[bool]:
        """Whether each run is in this shard, given what all of them cost, in the order in which they would start.

        The shards are stretches of that order which cost about the same. So they need not know of each other, and the
        rows of one seed mostly run on one machine.
        """
        whole, before, found = sum(costs), 0, []
        for cost in costs:
            found.append(self.count * (2 * before + cost) // (2 * whole) == self.index - 1)
            before += cost
        return found
