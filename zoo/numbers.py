"""Numbers as a person reads them; nothing known is an empty text."""

from __future__ import annotations

import math
from typing import Protocol


class Mean(Protocol):
    """A mean, and the standard deviation where there is one."""

    @property
    def mean(self) -> float: ...
    @property
    def sd(self) -> float | None: ...


class Interval(Protocol):
    """A mean, and the ends of its confidence interval where there is one."""

    @property
    def mean(self) -> float: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...


def score(value: float) -> str:
    """Three decimals, or one significant digit where those would all be zero."""
    return f"{value:.3f}" if value == 0 or abs(value) >= 0.0005 else f"{value:.1g}"


def at_most(value: float) -> str:
    """A size rounded up, so that what is said to be no larger is not."""
    step = 0.001 if value >= 0.0005 else 10.0 ** math.floor(math.log10(value)) if value > 0 else 1.0
    return score(math.ceil(value / step - 1e-6) * step)


def signed(value: float) -> str:
    return ("+" if value > 0 else "") + score(value)


def between(verdict: Interval) -> str:
    """A difference with its interval."""
    if verdict.low is None or verdict.high is None:
        return signed(verdict.mean)
    return f"{signed(verdict.mean)} [{signed(verdict.low)}, {signed(verdict.high)}]"


def chance(value: float | None) -> str:
    return "" if value is None else f"{value:.2g}"


def mean(value: Mean | None) -> str:
    return "" if value is None else score(value.mean) + _spread(value)


def _spread(value: Mean) -> str:
    return "" if value.sd is None else f" ± {score(value.sd)}"


def count(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def rate(value: float | None) -> str:
    """Three significant digits: a clock is not steadier than that."""
    return "" if value is None else f"{float(f'{value:.3g}'):,.0f}" if value >= 10 else f"{value:.2g}"


def flops(value: float | None) -> str:
    """In thousands, millions, ...; the larger unit from a tenth of it on."""
    if value is None:
        return ""
    power = next((power for power in (12, 9, 6, 3) if value >= 10 ** (power - 1)), 0)
    return f"{_digits(value / 10**power)} {'_kMGT'[power // 3]}" if power else f"{value:.0f}"


def size(value: float | None) -> str:
    """Bytes in powers of 1024."""
    if value is None:
        return ""
    power = next((power for power in (3, 2, 1) if value >= 1024**power), 0)
    return f"{value / 1024**power:,.1f} {' KMG'[power]}iB" if power else f"{value:.0f} B"


def epochs(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}" if value >= 1 else f"{value:.2g}"


def _digits(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"
