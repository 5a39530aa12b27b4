"""Every figure against scipy.stats or a count by hand, and the promises of a verdict against experiments."""

import functools
import itertools
import math

import numpy as np
import pytest
from scipy import stats

from zoo import statistics as ours

EXPERIMENTS = 2000


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def error(rate, *counts):
    """Four standard errors of a rate counted over so many experiments, or of the difference of two such rates."""
    return 4 * math.sqrt(rate * (1 - rate) * sum(1 / count for count in counts or [EXPERIMENTS]))


@pytest.mark.parametrize("n", [2, 3, 6, 17])
def test_interval_and_paired_t_are_those_of_scipy(n):
    arm, base = drawn(5, n), drawn(5, n, seed=1)
    theirs = stats.ttest_rel(arm, base, axis=-1)
    bounds = theirs.confidence_interval(0.95)
    np.testing.assert_allclose(ours.interval(arm - base), (bounds.low, bounds.high), rtol=1e-9)
    np.testing.assert_allclose(ours.paired_t(arm - base), theirs.pvalue, rtol=1e-9)


@pytest.mark.parametrize("n", range(2, 11))
@pytest.mark.parametrize("round_to", [9, 0])  # whole numbers have ties
def test_sign_flip_is_the_exact_test_of_scipy(n, round_to):
    for differences in np.round(drawn(4, n, seed=n) * 2 + 0.5, round_to):
        theirs = stats.permutation_test(
            (differences,), np.mean, permutation_type="samples", vectorized=True, n_resamples=np.inf
        )
        assert ours.sign_flip(differences) == pytest.approx(theirs.pvalue, abs=1e-12)


def counted(whole):
    """The exact p of whole numbers: how many choices of signs give each sum, one number after the other."""
    ways = {0: 1}
    for value in whole:
        new = {}
        for total, count in ways.items():
            for step in (value, -value):
                new[total + step] = new.get(total + step, 0) + count
        ways = new
    return sum(count for total, count in ways.items() if abs(total) >= abs(sum(whole))) / 2 ** len(whole)


@pytest.mark.parametrize("n", [16, 17, 40])
def test_sign_flip_of_many_pairs(n):
    whole = np.round(10 * drawn(n, seed=n) + 4)
    exact = counted([int(value) for value in whole])
    assert 0.0005 < exact < 0.9
    found = ours.sign_flip(whole)
    assert abs(found - exact) <= (1e-12 if n <= ours.ENUMERATED else error(exact, ours.FLIPS))
    assert ours.sign_flip(whole) == found  # the same signs every time


def test_a_random_p_is_never_zero():
    assert ours.sign_flip(np.ones(40)) == 1 / (ours.FLIPS + 1)


def test_signs_are_all_there_are():
    both = np.concatenate([ours.signs(5), -ours.signs(5)])
    assert sorted(map(tuple, both)) == sorted(itertools.product([-1.0, 1.0], repeat=5))
    assert (ours.signs(5)[0] == 1).all()


@pytest.mark.parametrize("m", [1, 2, 5])
def test_holm_is_the_closure_of_bonferroni(m):
    """An arm is told apart at alpha if in every group of arms that it is in, the smallest p times their number is."""
    for p in np.random.default_rng(m).uniform(0, 0.3, (20, m)):
        p[-1] = p[0]
        groups = [g for size in range(1, m + 1) for g in itertools.combinations(range(m), size)]
        closed = [max(min(1.0, len(g) * min(p[list(g)])) for g in groups if arm in g) for arm in range(m)]
        np.testing.assert_allclose(ours.holm(p), closed, rtol=1e-12)


def test_holm_by_hand():
    np.testing.assert_allclose(ours.holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(ours.holm([0.02, 0.019, 0.9]), [0.057, 0.057, 0.9])  # never below a smaller one's


def test_probability_of_improvement_counts_ties_half():
    assert ours.improvement([0.1, -0.2, 0.0, 0.3]) == 0.625
    arm, base = np.round(drawn(9)), np.round(drawn(9, seed=1))
    by_hand = sum(1.0 if a > b else 0.5 if a == b else 0.0 for a, b in zip(arm, base)) / 9
    assert ours.improvement(arm - base) == pytest.approx(by_hand)


@pytest.mark.parametrize("alpha", [0.05, 0.01])
@pytest.mark.parametrize("n", [4, 6, 10, 40, 300])
def test_detectable_by_t_has_the_power_of_scipys_non_central_t(n, alpha):
    critical = stats.t.ppf(1 - alpha / 2, n - 1)
    far = stats.nct(n - 1, ours.detectable(n, "paired-t", alpha) * math.sqrt(n))
    assert far.sf(critical) + far.cdf(-critical) == pytest.approx(0.8, abs=2e-6)


@pytest.mark.parametrize("arms, least", [(1, 6), (2, 7), (3, 7), (4, 8), (5, 8), (10, 9), (100, 12)])
def test_the_fewest_pairs_of_an_exact_test(arms, least):
    alpha = ours.ALPHA / arms
    assert ours.fewest("sign-flip", alpha) == least
    assert ours.sign_flip(np.ones(least)) < alpha <= ours.sign_flip(np.ones(least - 1))
    assert ours.detectable(least - 1, "sign-flip", alpha) == math.inf > ours.detectable(least, "sign-flip", alpha)
    assert ours.fewest("paired-t", alpha) == 2


def test_detectable_of_six_pairs_is_all_of_one_sign():
    """p < 0.05 takes six differences of one sign, so power 0.8 takes Phi(d)^6 = 0.8; t alone would promise 1.43."""
    alone = stats.norm.ppf(0.8 ** (1 / 6))
    slope = 6 * 0.8 ** (5 / 6) * stats.norm.pdf(alone)
    assert alone - error(0.8, ours.EXPERIMENTS) / slope < ours.detectable(6, "sign-flip") < alone + 0.1


def test_detectable_shrinks_with_pairs_and_has_no_jump():
    for alpha in (0.05, 0.01):
        values = [ours.detectable(n, "sign-flip", alpha) for n in range(ours.fewest("sign-flip", alpha), 30)]
        assert values == sorted(values, reverse=True)
        by_t = [ours.detectable(n, "paired-t", alpha) for n in range(ours.fewest("sign-flip", alpha), 30)]
        assert all(t <= exact for t, exact in zip(by_t, values)) and values[-1] / by_t[-1] < 1.01


def test_needed_is_the_first_that_will_do():
    for test, ratio in itertools.product(ours.TESTS, (0.2, 0.5, 1.0, 5.0)):
        n = ours.needed(ratio, 1.0, test)
        assert ours.detectable(n, test) <= ratio
        assert n == ours.fewest(test) or ours.detectable(n - 1, test) > ratio
    assert ours.needed(1e-9, 1.0, "sign-flip") == ours.MOST and ours.needed(0.1, 0.0, "sign-flip") == 6


def experiments(n, effects, sd=0.01, seed=0):
    """Differences [experiments, arms, n]: scores in which seeds share a part, less those of the baseline."""
    rng = np.random.default_rng(seed)
    shared = 0.02 * rng.standard_normal((EXPERIMENTS, 1, n))
    own = sd / math.sqrt(2) * rng.standard_normal((EXPERIMENTS, len(effects) + 1, n))
    scores = 1.9 + shared + own + np.array([0.0, *effects])[:, None]
    return scores[:, 1:] - scores[:, :1]


@functools.cache
def words(n, effects, test="sign-flip", margin=0.02, better="lower"):
    """The words of `judge` [experiments, arms] on experiments whose differences have an sd of 0.01."""
    return np.array([[v.word for v in ours.judge(arms, margin, better, test)] for arms in experiments(n, effects)])


@pytest.mark.parametrize("n", [3, 6, 12])
def test_the_interval_covers(n):
    low, high = ours.interval(experiments(n, (0.004,))[:, 0])
    covered = ((low <= 0.004) & (high >= 0.004)).mean()
    assert abs(covered - 0.95) < error(0.95) < 0.02


@pytest.mark.parametrize("test", ours.TESTS)
@pytest.mark.parametrize("arms, n", [(1, 6), (1, 12), (5, 8), (5, 12)])
def test_false_verdicts_stay_under_the_rate(arms, n, test):
    """At least one false word in a table, whatever the number of arms; and not far below where p is fine enough."""
    said = np.isin(words(n, (0.0,) * arms, test), ["better", "worse"])
    false = said.any(1).mean()
    assert false <= 0.05 + error(0.05)
    assert arms > 1 or n < 12 or false >= 0.05 - error(0.05)
    better = (words(n, (0.0,) * arms, test) == "better").mean()
    assert abs(2 * better - said.mean()) < error(0.05)  # as often one as the other


def test_false_verdicts_where_noise_has_long_tails():
    """The exact test asks for symmetry alone."""
    rng = np.random.default_rng(3)
    noise = rng.standard_t(2, (EXPERIMENTS, 10))
    false = (ours.sign_flip(noise) < 0.05).mean()
    assert abs(false - 0.05) < error(0.05)


@pytest.mark.parametrize("test", ours.TESTS)
@pytest.mark.parametrize("n", [6, 7, 8, 10, 13])
def test_the_smallest_detectable_difference_is_found_at_the_stated_power(n, test):
    effect = 0.01 * ours.detectable(n, test)
    simulated = test == "sign-flip" and n <= ours.SIMULATED
    found = (words(n, (-effect,), test) == "better").mean()
    assert abs(found - 0.8) < error(0.8, EXPERIMENTS, *[ours.EXPERIMENTS] * simulated)


@pytest.mark.parametrize("test", ours.TESTS)
def test_one_arm_of_five_is_found_at_the_stated_power(test):
    """Its p is corrected for five, and so is the difference that it promises."""
    effect = 0.01 * ours.detectable(9, test, 0.05 / 5)
    found = (words(9, (effect, 0.0, 0.0, 0.0, 0.0), test)[:, 0] == "worse").mean()
    assert abs(found - 0.8) < error(0.8, EXPERIMENTS, ours.EXPERIMENTS)


@pytest.mark.parametrize("test", ours.TESTS)
def test_so_many_more_pairs_do_show_the_margin(test):
    n = ours.needed(0.008, 0.01, test)
    found = (words(n, (0.008,), test, margin=0.008) == "worse").mean()
    assert found >= 0.8 - error(0.8)


def test_no_difference_is_rarely_said_of_one_at_the_margin():
    """The bound lies outside of the interval in one of forty cases, at most."""
    false = (words(12, (0.01,), margin=0.01) == "no difference").mean()
    assert false <= 0.025 + error(0.025)
    assert (words(12, (0.0,), margin=0.012) == "no difference").mean() > 0.5


D = np.array([0.010, 0.013, 0.008, 0.011, 0.012, 0.009])


def test_words():
    [lower] = ours.judge([-D], 0.02, "lower")
    [higher] = ours.judge([-D], 0.02, "higher")
    assert (lower.word, higher.word) == ("better", "worse")
    assert (lower.improvement, higher.improvement) == (1.0, 0.0)
    assert lower.mean == pytest.approx(-0.0105) and lower.p == lower.p_holm == 2 / 64
    assert lower.sd == pytest.approx(stats.tstd(D)) and lower.more is None
    [same] = ours.judge([D - D.mean()], 0.002, "lower")
    assert same.word == "no difference" and same.bound == max(same.high, -same.low) <= 0.002
    [unsure] = ours.judge([D - D.mean()], 0.001, "lower")
    assert unsure.word == "cannot tell" and unsure.more == ours.needed(0.001, unsure.sd, "sign-flip") - 6


def test_a_small_difference_that_is_sure_is_a_difference():
    assert ours.judge([D], 1.0, "lower")[0].word == "worse"


def test_three_pairs_are_told_how_many_are_missing():
    three, *_ = ours.judge([-D[:3]] * 5, 0.001, "lower")
    assert (three.word, three.n, three.more) == ("cannot tell", 3, 5)  # eight, for five arms
    assert three.detectable is None
    assert ours.judge([-D[:3]], 0.001, "lower", "paired-t")[0].word == "better"
    [one] = ours.judge([[-0.1]], 0.02, "lower")
    assert (one.word, one.more, one.sd, one.low, one.bound) == ("cannot tell", 5, None, None, None)
    assert ours.judge([[-0.1]], 0.02, "lower", "paired-t")[0].more == 1


@pytest.mark.parametrize("test", ours.TESTS)
def test_differences_that_are_all_alike(test):
    [nothing] = ours.judge([[0.0] * 6], 0.0, "lower", test)
    assert (nothing.word, nothing.p, nothing.bound, nothing.improvement) == ("no difference", 1.0, 0.0, 0.5)
    [always] = ours.judge([[0.25] * 6], 0.0, "higher", test)
    assert (always.word, always.low, always.high) == ("better", 0.25, 0.25)


def test_a_p_and_an_interval_that_disagree_tell_nothing():
    """Six of one sign, one of them huge: the exact test sees a difference, and the interval holds zero."""
    [odd] = ours.judge([[0.001, 0.001, 0.001, 0.001, 0.001, 1.0]], 0.01, "lower")
    assert odd.p < 0.05 and odd.low < 0 < odd.high and odd.word == "cannot tell" and odd.more >= 1


def test_front_holds_what_nothing_dominates():
    points = np.round(drawn(60, 3) * 2)

    def dominated(p):
        return any(all(q <= p) and any(q < p) for q in points)

    assert ours.front(points).tolist() == [not dominated(p) for p in points]
    assert ours.front([[1, 2], [2, 1], [1, 2], [2, 2]]).tolist() == [True, True, True, False]


@pytest.mark.parametrize("n", [1, 2, 3, 15, 24, 70])
def test_interquartile_mean_is_scipys_trimmed_mean(n):
    scores = drawn(4, n)
    np.testing.assert_allclose(ours.interquartile_mean(scores), stats.trim_mean(scores, 0.25, axis=-1), rtol=1e-12)
    by_hand = sorted(scores[0])[n // 4 : n - n // 4]
    assert ours.interquartile_mean(scores[0]) == pytest.approx(sum(by_hand) / len(by_hand))


def test_weights_of_an_interquartile_mean_count_copies():
    """Three seeds of one task and two of another are as six and six where each stands twice, or three times."""
    tasks = drawn(3), 2 + drawn(2, seed=1)
    copies = np.concatenate([np.repeat(tasks[0], 2), np.repeat(tasks[1], 3)])
    theirs = stats.trim_mean(copies, 0.25)
    assert ours.interquartile_mean(np.concatenate(tasks), ours.equal(tasks)) != pytest.approx(theirs)  # whole values
    tasks = np.arange(4.0), np.array([10.0, 11.0])  # the lower half weighs as much as the upper: two left out, and one
    copies = np.concatenate([tasks[0], np.repeat(tasks[1], 2)])
    found = ours.interquartile_mean(np.concatenate(tasks), ours.equal(tasks))
    assert found == pytest.approx(stats.trim_mean(copies, 0.25)) == pytest.approx((2 + 3 + 10 + 10) / 4)
    assert ours.interquartile_mean(np.concatenate(tasks)) == pytest.approx((1 + 2 + 3 + 10) / 4)


def test_improvement_weighs_tasks_alike():
    tasks = [1.0, 1.0, 1.0, 1.0], [-1.0, 0.0]
    assert ours.improvement(np.concatenate(tasks), ours.equal(tasks)) == pytest.approx((1 + 0.25) / 2)


def theirs(tasks, statistic, level, resamples):
    """scipy's bootstrap of several samples, each drawn from itself."""
    return stats.bootstrap(
        tasks, lambda *drawn, axis=-1: statistic(np.concatenate(drawn, -1), ours.equal(tasks)), method="percentile",
        confidence_level=level, n_resamples=resamples, rng=1, vectorized=True,
    )  # fmt: skip


def hesterberg(*sizes):
    """The level whose percentiles are Student's, of samples that have one variance and are drawn from themselves."""
    plain, drawn = sum(1 / n for n in sizes), sum((n - 1) / n / n for n in sizes)
    t = stats.t.ppf(0.025, sum(sizes) - len(sizes))
    return 1 - 2 * stats.norm.cdf(t * math.sqrt(plain / drawn))


@pytest.mark.parametrize("statistic", [ours.interquartile_mean, np.average])
@pytest.mark.parametrize("sizes", [(8, 8, 8), (12, 5, 7)])
def test_bootstrap_draws_within_tasks_as_scipys_of_several_samples_does(statistic, sizes):
    tasks = [drawn(n, seed=n + k) + 10 * k for k, n in enumerate(sizes)]  # drawn across tasks it would be much wider

    def middle(values, weights):
        return statistic(values, -1, weights) if statistic is np.average else statistic(values, weights)

    level = hesterberg(*sizes)
    reference = theirs(tasks, middle, level, 20_000)
    low, high = ours.stratified_bootstrap(tasks, middle)
    tail = (1 - level) / 2
    slack = error(tail, ours.RESAMPLES, 20_000) / stats.norm.pdf(stats.norm.ppf(tail)) * reference.standard_error
    assert abs(low - reference.confidence_interval.low) < slack < 0.4 * reference.standard_error
    assert abs(high - reference.confidence_interval.high) < slack
    assert ours.stratified_bootstrap(tasks, middle) == (low, high)


def test_expanded_percentiles_of_a_mean_are_students_interval():
    """What they are made for. Percentiles of 95 % would be 17 % narrower with ten values."""
    values = np.linspace(-1, 1, 10)
    theirs = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    low, high = ours.stratified_bootstrap([values], lambda drawn, weights: np.average(drawn, -1, weights))
    assert high - low == pytest.approx(theirs.high - theirs.low, rel=0.05)


def test_a_task_with_two_seeds_has_no_interval():
    assert ours.stratified_bootstrap([[1.0, 2.0, 3.0], [6.0, 7.0]]) is None
    assert ours.stratified_bootstrap([[1.0, 2.0, 3.0], [6.0, 7.0, 8.0]])


def covered(sizes, means, experiments):
    """How often the interval holds the middle of what the tasks give with any seed; from 100,000 seeds each."""
    every = np.concatenate([mean + drawn(100_000, seed=10 + k) for k, mean in enumerate(means)])
    truth, hits = stats.trim_mean(every, 0.25), 0
    for number in range(experiments):
        noise = np.random.default_rng(1000 + number)
        low, high = ours.stratified_bootstrap([m + noise.standard_normal(n) for n, m in zip(sizes, means, strict=True)])
        hits += low <= truth <= high
    return hits / experiments


def test_the_bootstraps_interval_covers(monkeypatch):
    monkeypatch.setattr(ours, "RESAMPLES", 1000)
    assert abs(covered((6, 6, 6), (0.0, 0.5, 3.0), 300) - 0.95) < error(0.95, 300) + 0.01


@pytest.mark.exhaustive
@pytest.mark.parametrize("sizes", [(6, 6), (8, 5, 6), (6,) * 5, (10,) * 5])
@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_the_bootstraps_interval_covers_many(sizes, spread, monkeypatch):
    monkeypatch.setattr(ours, "RESAMPLES", 2000)
    assert 0.93 <= covered(sizes, spread * drawn(len(sizes)), EXPERIMENTS) <= 0.97
