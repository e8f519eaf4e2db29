"""Ceilings against closed forms, integrals, and mechanisms that reach them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from noisefloor.accounting import (
    advantage,
    binary_success,
    gaussian_delta,
    gaussian_true_positive_rate,
    success,
    true_positive_rate,
)
from noisefloor.errors import BadParameter

epsilons = st.floats(0, 30)
deltas = st.floats(0, 1)
rates = st.floats(0, 1)


@given(epsilons, deltas, st.integers(1, 1000))
def test_ceilings_are_their_printed_formulas(epsilon: float, delta: float, size: int) -> None:
    e = math.exp(epsilon)
    assert binary_success(epsilon, delta) == pytest.approx((e + delta) / (1 + e))
    assert success(epsilon, size, delta) == pytest.approx(
        (e + (size - 1) * delta) / (e + size - 1)
    )
    assert advantage(epsilon, delta) == pytest.approx((e - 1 + 2 * delta) / (e + 1))


@given(rates, epsilons, deltas)
def test_true_positive_rate_is_its_printed_formula(
    rate: float, epsilon: float, delta: float
) -> None:
    e = math.exp(epsilon)
    oracle = min(e * rate + delta, 1 - (1 - delta - rate) / e, 1.0)
    assert true_positive_rate(rate, epsilon, delta) == pytest.approx(oracle, abs=1e-12)


@pytest.mark.parametrize("size", [2, 5, 100])
def test_randomised_response_reaches_the_ceiling_and_no_more(size: int) -> None:
    e = math.exp(1.5)
    kept = e / (e + size - 1)  # k-ary randomised response keeps the truth with this probability
    assert success(1.5, size) == pytest.approx(kept)
    assert success(1.4, size) < kept  # the twin: a smaller epsilon has to be passed


@given(epsilons, st.floats(0, 0.5))
def test_advantage_is_the_widest_gap_of_the_testing_region(epsilon: float, delta: float) -> None:
    grid = np.linspace(0, 1, 2001)
    widest = float(np.max(true_positive_rate(grid, epsilon, delta) - grid))
    assert widest <= advantage(epsilon, delta) + 1e-9
    corner = (1 - delta) / (1 + math.exp(epsilon))
    reached = true_positive_rate(corner, epsilon, delta) - corner
    assert reached == pytest.approx(float(advantage(epsilon, delta)), abs=1e-9)
    assert binary_success(epsilon, delta) == pytest.approx((1 + advantage(epsilon, delta)) / 2)


def test_huge_and_infinite_epsilons_give_one_without_overflow() -> None:
    huge = np.array([800.0, 1e6, math.inf])
    for reached in (
        binary_success(huge),
        success(huge, 1000),
        advantage(huge),
        true_positive_rate(0.01, huge),
        true_positive_rate(1e-300, huge),
    ):
        assert np.all(reached == 1)
    assert true_positive_rate(0.0, 800.0, 0.25) == 0.25
    assert true_positive_rate(0.0, math.inf) == 1


def test_numbers_give_a_number_and_arrays_broadcast() -> None:
    assert f"{binary_success(0.0):.1f}" == "0.5"
    table = true_positive_rate(np.array([[0.0], [0.1]]), np.array([0.0, 1.0, 2.0]))
    assert table.shape == (2, 3)
    assert gaussian_delta([0.0, 1.0], [[1.0], [2.0]]).shape == (2, 2)


@pytest.mark.parametrize(("epsilon", "mu"), [(0.0, 0.5), (1.0, 1.0), (4.0, 1.5), (0.3, 0.1)])
def test_gaussian_delta_is_the_integral_over_what_passes(epsilon: float, mu: float) -> None:
    start = epsilon / mu + mu / 2  # from here on one density passes e^epsilon times the other
    oracle, _ = quad(
        lambda x: norm.pdf(x - mu) - math.exp(epsilon) * norm.pdf(x), start, start + 40
    )
    assert gaussian_delta(epsilon, mu) == pytest.approx(oracle, rel=1e-6)
    assert gaussian_delta(epsilon, mu * 1.1) > oracle * 1.05  # the twin: noise ten per cent less


def test_gaussian_delta_at_the_edges() -> None:
    assert gaussian_delta(0.0, 0.0) == 0
    assert gaussian_delta(1.0, 0.0) == 0
    assert gaussian_delta(1.0, math.inf) == 1
    assert gaussian_delta(math.inf, 1.0) == 0
    assert 0 <= gaussian_delta(5000.0, 100.0) <= 1


@given(rates, st.floats(0, 6))
def test_gaussian_rate_is_the_most_powerful_test(rate: float, mu: float) -> None:
    oracle = norm.sf(norm.isf(rate) - mu)
    assert gaussian_true_positive_rate(rate, mu) == pytest.approx(oracle, abs=1e-12)


@given(st.floats(0, 1), st.floats(0.05, 3), st.floats(0, 8))
def test_gaussian_rate_stays_below_the_ceiling_of_its_own_delta(
    rate: float, mu: float, epsilon: float
) -> None:
    ceiling = true_positive_rate(rate, epsilon, gaussian_delta(epsilon, mu))
    assert gaussian_true_positive_rate(rate, mu) <= ceiling + 1e-12


def test_infinite_mu_gives_one() -> None:
    assert np.all(gaussian_true_positive_rate(np.array([0.0, 0.5]), math.inf) == 1)


def test_what_is_no_parameter_is_refused() -> None:
    with pytest.raises(BadParameter, match="epsilon"):
        binary_success(-0.1)
    with pytest.raises(BadParameter, match="epsilon"):
        advantage(np.array([1.0, math.nan]))
    with pytest.raises(BadParameter, match="delta"):
        advantage(1.0, 1.1)
    with pytest.raises(BadParameter, match="false_positive_rate"):
        true_positive_rate(1.1, 1.0)
    with pytest.raises(BadParameter, match="size"):
        success(1.0, 0)
    with pytest.raises(BadParameter, match="mu"):
        gaussian_delta(1.0, -1.0)
    with pytest.raises(BadParameter, match="numbers"):
        binary_success("1")
