"""Click-through rates: the ratio, its error, and what is not known."""

import math

import numpy as np
import pytest

from noisefloor.ads.clicks.rates import click_through, counts_of, interval, normal_quantile
from noisefloor.errors import BadParameter
from noisefloor.mechanisms.base import Estimate
from noisefloor.randomness import SeededSource


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
