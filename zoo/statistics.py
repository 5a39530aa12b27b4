"""What a handful of paired scores can tell, and what it cannot: pure functions over numbers.

Arrays have their pairs on the last axis, [..., n]; whatever stands before it is done at once.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

ALPHA = 0.05
"""How often all verdicts of a table together may see a difference where there is none."""

POWER = 0.8
"""How often a difference of the smallest detectable size is seen."""

ENUMERATED = 16
"""Up to so many pairs all 2^n signs are gone through; beyond, `FLIPS` random ones."""

FLIPS = 99_999
MOST = 1000
"""More pairs than this are not counted out."""

SIMULATED = 12
EXPERIMENTS = 4000
"""Up to `SIMULATED` pairs the power of the exact test is counted over so many experiments: it has no formula."""

RESAMPLES = 10_000
"""How often a bootstrap draws."""

DRAWN = 3
"""From fewer seeds nothing is drawn: on two tasks with two seeds each, seven of ten intervals would cover."""


def interval(differences, level: float = 1 - ALPHA) -> tuple[np.ndarray, np.ndarray]:
    """The bounds [...] of Student's interval for the mean of `differences` [..., n >= 2]."""
    d = np.asarray(differences, float)
    n = d.shape[-1]
    half = special.stdtrit(n - 1, (1 + level) / 2) * d.std(-1, ddof=1) / math.sqrt(n)
    return d.mean(-1) - half, d.mean(-1) + half


def sign_flip(differences) -> np.ndarray:
    """The two-sided p [...] of Fisher's randomisation test on `differences` [..., n]: the share of all 2^n choices of
    signs whose sum is at least as far from 0 as the sum that was seen.

    It supposes only that a difference is as likely as its opposite where the arms are alike. Beyond `ENUMERATED` pairs
    it is (b + 1) / (`FLIPS` + 1), b of that many random choices being as far: the same ones every time.
    """
    d = np.asarray(differences, float)
    n = d.shape[-1]
    flat = d.reshape(-1, n)
    seen = np.abs(flat.sum(-1)) - 1e-9 * np.abs(flat).sum(-1)  # sums that differ by rounding alone are equal
    blocks: Iterable[np.ndarray]
    if n <= ENUMERATED:
        blocks, added, total = [signs(n)], 0, 2 ** max(n - 1, 0)
    else:
        random = np.random.default_rng(0)
        sizes = np.diff(np.append(np.arange(0, FLIPS, 5000), FLIPS))
        blocks, added, total = (2.0 * random.integers(0, 2, (size, n)) - 1 for size in sizes), 1, FLIPS + 1
    far = sum((np.abs(block @ flat.T) >= seen).sum(0) for block in blocks)
    return ((far + added) / total).reshape(d.shape[:-1])


def signs(n: int) -> np.ndarray:
    """Every choice of n signs but for a common one [2^(n-1), n], all of them alike first."""
    bits = np.arange(2 ** max(n - 1, 0))[:, None] >> np.arange(n) & 1
    return 1.0 - 2 * bits


def paired_t(differences) -> np.ndarray:
    """The two-sided p [...] of Student's paired test on `differences` [..., n]."""
    d = np.asarray(differences, float)
    n, mean = d.shape[-1], np.abs(d.mean(-1))
    if n < 2:
        return np.ones(d.shape[:-1])
    error = d.std(-1, ddof=1) / math.sqrt(n)
    t = np.divide(mean, error, out=np.where(mean > 0, np.inf, 0.0), where=error > 0)
    return 2 * special.stdtr(n - 1, -t)


TESTS: dict[str, Callable] = {"sign-flip": sign_flip, "paired-t": paired_t}


def holm(p) -> np.ndarray:
    """The values `p` [..., m] corrected for being m, so that all below alpha are wrong with a chance of at most alpha.

    The i-th smallest of m is multiplied by m - i + 1, and none becomes less than a smaller one. Holm 1979.
    """
    p = np.asarray(p, float)
    order = np.argsort(p, -1)
    ranked = np.take_along_axis(p, order, -1) * np.arange(p.shape[-1], 0, -1)
    corrected = np.minimum(np.maximum.accumulate(ranked, -1), 1.0)
    out = np.empty_like(p)
    np.put_along_axis(out, order, corrected, -1)
    return out


def improvement(gains, weights=None) -> np.ndarray:
    """How likely [...] an arm is to be better with a random seed: the share of `gains` [..., n] above 0, ties half."""
    gains = np.asarray(gains, float)
    return np.average((gains > 0) + 0.5 * (gains == 0), -1, weights)


def fewest(test: str, alpha: float = ALPHA) -> int:
    """The fewest pairs with which `test` can give p < alpha; the exact test's smallest p is 2 / 2^n."""
    if test == "paired-t":
        return 2
    return next(n for n in range(1, MOST) if 2.0 ** (1 - n) < alpha)


@functools.cache
def detectable(n: int, test: str, alpha: float = ALPHA, power: float = POWER) -> float:
    """The smallest difference that n pairs show with this power, in sds of the differences; infinite if none is.

    For `paired-t` from the non-central t: the difference d for which |t| is above its critical value with chance
    `power`, t having n - 1 degrees of freedom and non-centrality d sqrt(n). The exact test has less power with few
    pairs, since its p moves in steps: that is counted in simulated experiments, and from the level that its steps
    reach where they are fine enough for the formula.
    """
    if n < fewest(test, alpha):
        return math.inf
    if test == "sign-flip" and n <= SIMULATED:
        return _simulated(n, alpha, power)
    steps = 2.0 ** (min(n, ENUMERATED) - 1)
    reached = (math.ceil(alpha * steps) - 1) / steps if test == "sign-flip" else alpha
    critical = special.stdtrit(n - 1, 1 - min(max(reached, 1 / FLIPS), alpha) / 2)
    return float(special.nctdtrinc(n - 1, 1 - power, critical)) / math.sqrt(n)


def _simulated(n: int, alpha: float, power: float) -> float:
    """`detectable` for the rule of `judge`: p of the exact test below alpha, and an interval without zero."""
    noise = np.random.default_rng(0).standard_normal((n, EXPERIMENTS)).astype(np.float32)
    half = special.stdtrit(n - 1, 1 - ALPHA / 2) * noise.std(0, ddof=1) / math.sqrt(n)
    flips = signs(n).astype(np.float32)
    sums, tilt = flips @ noise, flips.sum(1, keepdims=True)
    allowed = math.ceil(alpha * len(flips)) - 1  # so many may be as far: all that keeps p below alpha

    def found(d: float) -> float:
        sure = noise.mean(0) + d > half
        far = np.abs(sums[:, sure] + np.float32(d) * tilt)
        return np.count_nonzero(np.count_nonzero(far >= far[0] * (1 - 1e-5), 0) <= allowed) / EXPERIMENTS

    low, high = 0.5, 4.0
    while high - low > 2e-3:
        middle = (low + high) / 2
        low, high = (low, middle) if found(middle) >= power else (middle, high)
    return high


def needed(difference: float, sd: float, test: str, alpha: float = ALPHA) -> int:
    """The fewest pairs that show `difference` with power `POWER`, given the sd of the differences; at most `MOST`."""
    low, high = fewest(test, alpha) - 1, MOST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if detectable(middle, test, alpha) * sd <= difference else (middle, high)
    return high


@dataclass(frozen=True)
class Verdict:
    """What n paired differences of an arm to the baseline say; `word` is one of the four of `judge`.

    Differences and bounds are in the metric's unit, arm less baseline. `p_holm` is corrected over the arms that were
    judged together; `detectable` is the smallest difference that this many pairs show; `more` is how many pairs are
    missing where the word is "cannot tell". What n pairs cannot give is None.
    """

    word: str
    mean: float
    n: int
    sd: float | None
    low: float | None
    high: float | None
    p: float
    p_holm: float
    improvement: float
    detectable: float | None
    more: int | None

    @property
    def interval(self) -> tuple[float, float] | None:
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def bound(self) -> float | None:
        """How large the difference can be, either way: the farther end of the interval."""
        return None if self.interval is None else max(map(abs, self.interval))


def judge(arms: Sequence[Sequence[float]], margin: float, better: str, test: str = "sign-flip") -> list[Verdict]:
    """The verdict on every arm, each given by its paired differences (one at least) to one baseline.

    - "better", "worse": Holm's p is below `ALPHA` and the interval lies on one side of zero;
    - "no difference": else, where the interval lies within `margin` of zero on both sides;
    - "cannot tell": else. `more` pairs would show a difference of `margin`, or the one seen if that is larger, with
      power `POWER` at the level that Holm's correction asks of the first of the arms, `ALPHA` / arms.

    `better` is "lower" or "higher", and says which sign is an improvement.
    """
    sign = -1.0 if better == "lower" else 1.0
    level = ALPHA / max(len(arms), 1)
    p = [float(TESTS[test](arm)) for arm in arms]
    return [
        _verdict(np.asarray(arm, float), sign, one, float(corrected), margin, test, level)
        for arm, one, corrected in zip(arms, p, holm(p), strict=True)
    ]


def _verdict(d: np.ndarray, sign: float, p: float, p_holm: float, margin: float, test: str, level: float) -> Verdict:
    n, mean = len(d), float(d.mean())
    sd, low, high = (float(d.std(ddof=1)), *map(float, interval(d))) if n > 1 else (math.inf, -math.inf, math.inf)
    more = None
    if p_holm < ALPHA and low * high > 0:
        word = "better" if sign * mean > 0 else "worse"
    elif -margin <= low and high <= margin:
        word = "no difference"
    else:
        word = "cannot tell"
        more = max(needed(max(margin, abs(mean)), sd if n > 1 else 0.0, test, level) - n, 1)
    least = detectable(n, test, level) * sd if 1 < n >= fewest(test, level) else None
    how_likely = float(improvement(sign * d))
    if n == 1:
        return Verdict(word, mean, n, None, None, None, p, p_holm, how_likely, least, more)
    return Verdict(word, mean, n, sd, low, high, p, p_holm, how_likely, least, more)


def front(points) -> np.ndarray:
    """Which `points` [n, k], smaller being better in each of k ways, no other point dominates [n].

    A point dominates another if it is nowhere worse and somewhere better.
    """
    points = np.asarray(points, float)
    nowhere_worse = (points[:, None] <= points[None]).all(-1)
    somewhere_better = (points[:, None] < points[None]).any(-1)
    return ~(nowhere_worse & somewhere_better).any(0)


def interquartile_mean(values, weights=None) -> np.ndarray:
    """The mean [...] of the middle half of `values` [..., n], of `weights` [n] or alike. Agarwal et al. 2021,
    arXiv:2108.13264.

    At each end as many whole values are left out as weigh no more than a quarter together: of n alike, n / 4 of them,
    rounded down.
    """
    values = np.asarray(values, float)
    weights = np.ones(values.shape[-1]) if weights is None else np.asarray(weights, float)
    order = np.argsort(values, -1, kind="stable")
    ranked, share = np.take_along_axis(values, order, -1), (weights / weights.sum())[order]
    upto, quarter = share.cumsum(-1), 0.25 + 1e-9
    kept = share * ((upto > quarter) & (1 - upto + share > quarter))
    return (kept * ranked).sum(-1) / kept.sum(-1)


def stratified_bootstrap(
    tasks: Sequence[Sequence[float]],
    statistic: Callable[[np.ndarray, np.ndarray], np.ndarray] = interquartile_mean,
    *,
    level: float = 1 - ALPHA,
    seed: int = 0,
) -> tuple[float, float] | None:
    """The interval of a statistic of values by task and seed, the seeds drawn anew within every task, which all weigh
    the same; None where a task has fewer than `DRAWN`. Agarwal et al. 2021, arXiv:2108.13264.

    `statistic` takes values [..., n] and their weights [n]. Few seeds spread too little when they are drawn from
    themselves, so the percentiles are expanded as Hesterberg 2015, arXiv:1411.5279, does: to those that a normal
    statistic would need for Student's interval with the sum of (seeds - 1) degrees of freedom.
    """
    values = [np.asarray(one, float) for one in tasks]
    sizes = np.array([len(one) for one in values])
    if sizes.min() < DRAWN:
        return None
    random = np.random.default_rng(seed)
    drawn = np.concatenate([one[random.integers(0, len(one), (RESAMPLES, len(one)))] for one in values], -1)
    too_narrow = math.sqrt(((sizes - 1) / sizes**2).sum() / (1 / sizes).sum())
    tail = special.ndtr(special.stdtrit((sizes - 1).sum(), (1 - level) / 2) / too_narrow)
    low, high = np.quantile(statistic(drawn, equal(tasks)), [tail, 1 - tail])
    return float(low), float(high)


def equal(tasks: Sequence[Sequence[float]]) -> np.ndarray:
    """A weight for each value [n] of all tasks, one after the other, with which every task weighs 1."""
    return np.concatenate([np.full(len(one), 1 / len(one)) for one in tasks])
