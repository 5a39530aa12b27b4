"""What is said of two rows before they run: which of them is better, in what, by how much, and who says so."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

WAYS = ("better", "worse", "same")
KEYS = ("row", "is", "than", "on", "than_on", "of", "least", "most", "source")


class Figure(NamedTuple):
    """A figure that a run measures beside its scores; `read` is the part of its record, and the name there."""

    what: str
    unit: str
    better: str
    read: tuple[str, str]


FIGURES = {
    "decode": Figure("decoding speed", "tokens/s", "higher", ("decode", "tokens_per_second")),
    "speed": Figure("training speed", "tokens/s", "higher", ("train", "tokens_per_second")),
    "seconds": Figure("training time", "s", "lower", ("train", "seconds")),
    "memory": Figure("peak memory", "bytes", "lower", ("train", "peak_memory_bytes")),
    "kv": Figure("KV memory per token", "bytes", "lower", ("model", "kv_bytes_per_token")),
    "parameters": Figure("number of parameters", "", "lower", ("model", "parameters")),
}
TIMED = ("decode", "speed", "seconds")
"""Figures that can be compared only where all runs were on one machine."""


@dataclass(frozen=True)
class Claim:
    """`row`, scored on the split `on`, is better or worse than the row `than` on `than_on`, or the same, in `of`: a
    metric, or one of `FIGURES`, which are of no split.

    `least` and `most` bound the size of the difference, in `unit`; `better` is "lower" or "higher".
    """

    row: str
    way: str
    than: str
    of: str
    better: str
    unit: str = ""
    on: str | None = None
    than_on: str | None = None
    least: float | None = None
    most: float | None = None
    source: str = ""

    __pydantic_config__: ClassVar = {"alias_generator": lambda name: "is" if name == "way" else name}
    """`way` stands as `is` in a file, which is no name in Python."""

    def __post_init__(self) -> None:
        for what, value, known in (("is", self.way, WAYS), ("better", self.better, ("lower", "higher"))):
            if value not in known:
                raise ValueError(f"a claim's '{what}' is '{value}'; it should be {' or '.join(known)}")

    def plain(self) -> dict[str, Any]:
        """As YAML holds it, every default filled in."""
        written = {"is" if key == "way" else key: value for key, value in vars(self).items()}
        return {key: written[key] for key in KEYS if written[key] not in (None, "")}

    def record(self) -> dict[str, Any]:
        """The same with what a report has to know of the figure."""
        return {**self.plain(), "better": self.better, "unit": self.unit}

    @property
    def region(self) -> tuple[float, float]:
        """Between which two numbers the gain is said to lie, itself neither: how much better `row` is."""
        least, most = self.least or 0.0, math.inf if self.most is None else self.most
        return {"better": (least, most), "worse": (-most, -least), "same": (-most, most)}[self.way]

    @property
    def what(self) -> str:
        return FIGURES[self.of].what if self.of in FIGURES else self.of

    @property
    def words(self) -> str:
        """The claim as a sentence without its full stop."""
        relation = "as good as" if self.way == "same" else f"{self.way} than"
        if self.on == self.than_on:
            place = f" on {self.on}" if self.on else ""
            return f"{self.row} is {relation} {self.than} in {self.what}{place}{self._size}"
        other = "" if self.than == self.row else f"{self.than} "
        return f"{self.row} on {self.on} is {relation} {other}on {self.than_on} in {self.what}{self._size}"

    @property
    def _size(self) -> str:
        least, most = (None if size is None else f"{size:g}" for size in (self.least, self.most))
        if self.way == "same":
            size = f", to within {most}"
        elif most is None:
            size = f" by more than {least}" if self.least else ""
        else:
            size = f" by {least} to {most}" if self.least else f" by less than {most}"
        return f"{size} {self.unit}".rstrip() if size else ""
