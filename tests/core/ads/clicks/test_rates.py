"""Click-through rates: the ratio, its error, and what is not known."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from noisefloor.ads.clicks.rates import (
    click_through,
    counts_of,
    interval,
    normal_quantile,
    response_interval,
)
from noisefloor.errors import BadParameter
from noisefloor.mechanisms.base import Estimate
from noisefloor.randomness import SeededSource
from statistics_of_tests import FALSE_ALARM


def estimate(value: list[float], error: list[float]) -> Estimate:
    return Estimate(np.array(value), np.array(error))


def test_known_impressions_scale_the_error_of_the_clicks() -> None:
    rates = click_through(estimate([20.0, 5.0], [4.0, 1.0]), np.array([100, 50]))
    assert rates.value == pytest.approx([0.2, 0.1])
    assert rates.standard_error == pytest.approx([0.04, 0.02])
    assert rates.low == pytest.approx([0.2 - 1.959964 * 0.04, 0.1 - 1.959964 * 0.02])
    assert rates.high == pytest.approx([0.2 + 1.959964 * 0.04, 0.1 + 1.959964 * 0.02])


def test_estimated_impressions_add_their_error() -> None:
    rates = click_through(estimate([20.0], [4.0]), estimate([100.0], [10.0]))
    assert rates.value[0] == pytest.approx(0.2)
    assert rates.standard_error[0] == pytest.approx(math.hypot(0.04, 0.2 * 0.1))


def test_the_delta_method_is_the_spread_of_ratios() -> None:
    """n = 10**6 normal pairs; a spread of n is known to 0.1 %, and is compared to 2 %."""
    drawn = SeededSource(8, "ratio").generator().normal(size=(2, 10**6))
    ratios = (300 + 15 * drawn[0]) / (1000 + 20 * drawn[1])
    error = click_through(estimate([300.0], [15.0]), estimate([1000.0], [20.0])).standard_error[0]
    assert ratios.std() == pytest.approx(error, rel=0.02)
    assert ratios.std() != pytest.approx(0.015, rel=0.02)


def test_an_ad_that_was_not_shown_has_no_rate() -> None:
    rates = click_through(estimate([0.0, 1.0], [0.0, 1.0]), np.array([0, 10]))
    for figures in (rates.value, rates.standard_error, rates.low, rates.high):
        assert np.isnan(figures).tolist() == [True, False]


@pytest.mark.parametrize("shown", [-5.0, 0.0])
def test_an_estimate_of_no_impressions_gives_no_rate(shown: float) -> None:
    rates = click_through(estimate([3.0], [1.0]), estimate([shown], [10.0]))
    assert np.isnan(rates.value).all()
    assert np.isnan(rates.low).all()


def test_impressions_that_may_be_none_leave_the_rate_open() -> None:
    rates = click_through(estimate([3.0], [1.0]), estimate([15.0], [10.0]))
    assert rates.value[0] == pytest.approx(0.2)
    assert (rates.low[0], rates.high[0]) == (0.0, 1.0)


def test_ends_stay_within_zero_and_one_and_the_value_stays_unbiased() -> None:
    rates = click_through(estimate([-8.0, 130.0], [10.0, 20.0]), np.array([100, 100]))
    assert rates.value == pytest.approx([-0.08, 1.3])
    assert rates.low.tolist() == pytest.approx([0.0, 1.3 - 1.959964 * 0.2])
    assert rates.high.tolist() == pytest.approx([-0.08 + 1.959964 * 0.1, 1.0])


def test_intervals_and_counts() -> None:
    low, high = interval(estimate([10.0], [2.0]), level=0.5)
    assert (low[0], high[0]) == pytest.approx((10 - 2 * 0.67449, 10 + 2 * 0.67449), abs=1e-4)
    counts = counts_of(estimate([0.25], [0.01]), 400)
    assert (counts.value[0], counts.standard_error[0]) == pytest.approx((100, 4))
    assert normal_quantile(0.95) == pytest.approx(1.959964, abs=1e-6)


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, math.nan])
def test_a_level_that_is_no_probability_is_refused(level: float) -> None:
    with pytest.raises(BadParameter, match="level"):
        interval(estimate([1.0], [1.0]), level=level)


def response(epsilon: float, is_optimised: bool) -> tuple[float, float]:
    """Return hold and lack of an optimised or a symmetric response."""
    lack = 1 / (math.exp(epsilon) + 1)
    return (0.5 if is_optimised else 1 - lack), lack


@pytest.mark.parametrize("is_sampled", [False, True])
@pytest.mark.parametrize("is_optimised", [False, True])
def test_a_response_interval_is_what_its_score_test_does_not_reject(
    is_optimised: bool, is_sampled: bool
) -> None:
    hold, lack = response(1.0, is_optimised)
    n, reach, counts = 400, normal_quantile(0.95), np.arange(0.0, 400.01, 0.25)
    mean = n * lack + (hold - lack) * counts
    spread = counts * hold * (1 - hold) + (n - counts) * lack * (1 - lack)
    if is_sampled:
        spread = mean * (1 - mean / n)
    for tally in (0, 60, 130, 205, 400):
        low, high = response_interval(
            np.array([tally]), n, hold=hold, lack=lack, is_sampled=is_sampled
        )
        above = tally - 0.5 - mean <= reach * np.sqrt(spread)
        below = mean - tally - 0.5 <= reach * np.sqrt(spread)
        accepted = counts[above & below]
        if accepted.size:
            assert low[0] == pytest.approx(accepted.min(), abs=0.26)
            assert high[0] == pytest.approx(accepted.max(), abs=0.26)
        assert 0 <= low[0] <= high[0] <= n


@pytest.mark.statistical
@pytest.mark.parametrize("count", [0, 1, 10])
def test_response_intervals_cover_few_holders_as_often_as_they_say(count: int, seed: int) -> None:
    """8 settings of 4 000 tallies each, drawn from the exact distribution. A tally is discrete,
    so that coverage is a little off 0.95: 0.94 is tested, false alarm FALSE_ALARM each. The twin:
    normal intervals from the estimate's own variance, as long as 0.8 of it."""
    drawn, runs = SeededSource(seed, "tallies", count).generator(), 4_000
    for epsilon in (0.5, 2.0, 4.0, 8.0):
        for is_optimised in (False, True):
            hold, lack = response(epsilon, is_optimised)
            # Twice as many hold it, and each reports about it with probability a half.
            kept = lack + (hold - lack) / 2
            tally = drawn.binomial(2 * count, kept, runs) + drawn.binomial(
                2_000 - 2 * count, lack, runs
            )
            low, high = response_interval(tally, 2_000, hold=hold, lack=lack, is_sampled=True)
            hits = int(((low <= count) & (count <= high)).sum())
            assert binom.cdf(hits, runs, 0.94) > FALSE_ALARM
            spread = math.sqrt(2_000 * lack * (1 - lack)) / (hold - lack)
            value = (tally - 2_000 * lack) / (hold - lack)
            short = int((np.abs(value - count) <= 0.8 * 1.96 * spread).sum())
            if 2_000 * lack > 100:
                assert binom.cdf(short, runs, 0.94) < FALSE_ALARM
