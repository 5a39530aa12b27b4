"""What a user wrote wrong: one record for a fault, one exception for all of them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Fault:
    """One mistake. `path` leads to the value in the document, `where` is `file:line:column` if it has one; `error` is
    what failed, where the mistake is a program's and no refusal.
    """

    text: str
    path: Path = ()
    where: str = ""
    error: BaseException | None = field(default=None, compare=False, repr=False)

    @property
    def place(self) -> tuple[str, list[int]]:
        """What to sort by: the file, then line and column."""
        file, *numbers = self.where.rsplit(":", 2)
        return file, [int(n) for n in numbers if n.isdecimal()]

    def __str__(self) -> str:
        place = self.where or ".".join(str(step) for step in self.path)
        return f"{place}: {self.text}" if place else self.text


class SpecError(ValueError):
    """All faults of a document, a mapping or a combination, one per line."""

    def __init__(self, faults: Iterable[Fault] | str):
        self.faults = [Fault(faults)] if isinstance(faults, str) else list(faults)
        super().__init__("\n".join(map(str, self.faults)))


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the known word closest to `word`, or nothing."""
    close = difflib.get_close_matches(str(word), list(known), n=1, cutoff=0.5)
    return f"; did you mean '{close[0]}'?" if close else ""
