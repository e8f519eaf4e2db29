"""Discrete Laplace: closed forms, ranges, and that nothing leaks through floating point."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from noisefloor.errors import BadParameter
from noisefloor.mechanisms import DiscreteLaplace
from noisefloor.mechanisms.laplace import IntegerRange
from noisefloor.privacy import Neighbours, TrustModel
from noisefloor.randomness import SeededSource, Words
from statistics_of_tests import FALSE_ALARM, Floats, binomial_p, chi_square_p

EPSILONS = (0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)


def around(mechanism: DiscreteLaplace) -> NDArray[np.int64]:
    reach = math.ceil(45 / float(mechanism.noise.rate)) + mechanism.sensitivity
    return np.arange(mechanism.low - reach, mechanism.high + reach + 1)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("high", [1, 2, 5, 100])
def test_exact_ratio_guarantee_and_request_agree(epsilon: float, high: int) -> None:
    """Over all pairs of inputs and all reports out to e**-45."""
    mechanism = DiscreteLaplace(epsilon, 0, high)
    reports = around(mechanism)
    ends = mechanism.log_likelihood(reports, 0), mechanism.log_likelihood(reports, high)
    worst = float(np.abs(ends[0] - ends[1]).max())
    for value in range(0, high + 1, max(1, high // 5)):
        logs = mechanism.log_likelihood(reports, value)
        assert np.abs(logs - ends[0]).max() <= worst + 1e-11
        assert np.abs(logs - ends[1]).max() <= worst + 1e-11
    promised = mechanism.guarantee().epsilon
    assert worst <= promised + 1e-11
    assert promised <= epsilon
    assert worst >= epsilon - 1e-6


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_likelihoods_sum_to_one_and_have_the_stated_variance(epsilon: float) -> None:
    mechanism = DiscreteLaplace(epsilon, 0, 3)
    reports = around(mechanism)
    chances = np.exp(mechanism.log_likelihood(reports, 1))
    assert chances.sum() == pytest.approx(1, abs=1e-11)
    assert chances @ reports == pytest.approx(1, abs=1e-7)
    variance = chances @ (reports - 1.0) ** 2
    error = mechanism.estimate(np.array([5]), 7).standard_error[0]
    assert error == pytest.approx(math.sqrt(variance / 7), rel=1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("distance", [2, 4, 10])
def test_total_variation_is_the_closed_form(epsilon: float, distance: int) -> None:
    """1 - e**(-distance / (2 scale)): on the grid it is exact for even distances."""
    mechanism = DiscreteLaplace(epsilon, 0, 10)
    reports = around(mechanism)
    first = np.exp(mechanism.log_likelihood(reports, 0))
    second = np.exp(mechanism.log_likelihood(reports, distance))
    closed = -math.expm1(-distance * epsilon / 10 / 2)
    assert np.abs(first - second).sum() / 2 == pytest.approx(closed, abs=1e-6)


@pytest.mark.parametrize("scale", [10, 100, 1000])
def test_a_fine_grid_is_the_continuous_distribution(scale: int) -> None:
    """Variance 2 scale**2 and density e**(-|y| / scale) / (2 scale), up to 1 / scale**2."""
    mechanism = DiscreteLaplace(1.0, 0, scale)
    assert mechanism.noise.variance == pytest.approx(2 * scale**2, rel=1 / scale**2 + 1e-5)
    reports = np.array([0, scale // 2, 3 * scale])
    density = np.exp(-reports / scale) / (2 * scale)
    chances = np.exp(mechanism.log_likelihood(reports, 0))
    assert chances == pytest.approx(density, rel=1 / scale**2 + 1e-5)


@pytest.mark.parametrize("neighbours", [Neighbours.RECORD_ADD_REMOVE, Neighbours.DOCUMENT])
def test_a_curators_count_has_a_sensitivity_of_its_own(neighbours: Neighbours) -> None:
    mechanism = DiscreteLaplace(1.0, 0, 10_000, sensitivity=1, neighbours=neighbours)
    guarantee = mechanism.guarantee(neighbours)
    assert guarantee.epsilon == pytest.approx(1, abs=1e-6)
    assert guarantee.model is TrustModel.CENTRAL
    assert not mechanism.guarantee(Neighbours.USER).is_finite


def test_a_user_may_move_over_the_whole_range() -> None:
    with pytest.raises(BadParameter, match="sensitivity"):
        DiscreteLaplace(1.0, 0, 10, sensitivity=1)


@pytest.mark.parametrize(("low", "high"), [(0, 0), (1, 0), (0, 1 << 41), (0.5, 2), (0, True)])
def test_a_bad_range_is_refused(low: int, high: int) -> None:
    with pytest.raises(BadParameter, match=r"low|high"):
        IntegerRange(low, high)


@pytest.mark.parametrize("sensitivity", [-1, 11, 1.5])
def test_a_bad_sensitivity_is_refused(sensitivity: int) -> None:
    with pytest.raises(BadParameter, match="sensitivity"):
        IntegerRange(0, 10, sensitivity, Neighbours.DOCUMENT)


def test_a_distribution_that_64_bits_cannot_hold_is_refused() -> None:
    with pytest.raises(BadParameter, match="64 bits"):
        DiscreteLaplace(1e-6, 0, 1 << 40)


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [3, 1000])
@pytest.mark.parametrize(("factor", "passes"), [(1.0, True), (1.1, False)])
def test_reports_follow_the_textbook(scale: int, factor: float, passes: bool, seed: int) -> None:
    """n = 200 000; false alarm FALSE_ALARM. Integers in bins; the twin's scale is a tenth off."""
    mechanism = DiscreteLaplace(1.0 * factor, 0, scale)
    source = SeededSource(seed, "laplace", scale, f"{factor}")
    reports = mechanism.randomise(np.full(200_000, 1), source) - 1
    width, q = max(1, scale // 20), math.exp(-1 / scale)
    # The distribution function at the bins' lower ends.
    starts = width * np.arange(-100, 101)
    tail = q ** np.where(starts <= 0, 1 - starts, starts) / (1 + q)
    below = np.where(starts <= 0, tail, 1 - tail)
    distribution = np.diff(np.concatenate([[0.0], below, [1.0]]))
    counts = np.bincount(
        np.searchsorted(starts, reports, side="right"), minlength=len(distribution)
    )
    assert (chi_square_p(counts, distribution) > FALSE_ALARM) is passes


@pytest.mark.statistical
@pytest.mark.parametrize(("factor", "passes"), [(1.0, True), (0.5, False)])
def test_the_estimate_lies_within_its_standard_error(
    factor: float, passes: bool, seed: int
) -> None:
    """1 000 estimates of n = 500: within one standard error as often as a normal distribution
    says."""
    mechanism = DiscreteLaplace(1.0, 0, 100)
    reports = mechanism.randomise(np.full(500_000, 40), SeededSource(seed, "within"))
    tallies = reports.reshape(1000, 500).sum(axis=1)
    estimates = [mechanism.estimate(np.array([tally]), 500) for tally in tallies]
    within = sum(abs(e.value[0] - 40) < factor * e.standard_error[0] for e in estimates)
    assert (binomial_p(within, 1000, 0.6827) > FALSE_ALARM) is passes


# Floating point.


def uniform_steps(words: Words) -> NDArray[np.int64]:
    """Return uniform integers in [1, 2**53), the numerators of a float's uniform draw."""
    steps: NDArray[np.int64] = np.maximum(words >> np.uint64(11), np.uint64(1)).astype(np.int64)
    return steps


def textbook_noise(steps: NDArray[np.int64]) -> Floats:
    """Return float Laplace noise of scale 1 by inversion, as textbooks write it."""
    u = steps * 2.0**-53 - 0.5
    return np.asarray(-np.sign(u) * np.log1p(-2 * np.abs(u)))


def is_attainable(outputs: Floats, value: float) -> NDArray[np.bool_]:
    """Whether value + noise(u) gives the output for any uniform draw u at all.

    The noise is monotone in u. So only the draws around the exact inverse have to be tried: the
    sum's rounding and the logarithm's spread over fewer than 32 of them on either side.
    """
    noise = outputs - value
    exact = np.where(noise < 0, np.exp(noise) / 2, 1 - np.exp(-noise) / 2)
    centre = np.rint(exact * 2.0**53).astype(np.int64)
    found = np.zeros(len(outputs), dtype=np.bool_)
    for offset in range(-32, 33):
        steps = np.clip(centre + offset, 1, (1 << 53) - 1)
        found |= value + textbook_noise(steps) == outputs
    return found


def test_of_a_million_reports_none_is_possible_under_one_input_only() -> None:
    mechanism = DiscreteLaplace(1.0, 0, 1)
    for value in (0, 1):
        reports = mechanism.randomise(np.full(1_000_000, value), SeededSource(1, "leak", value))
        assert reports.dtype == np.int64
        losses = mechanism.log_likelihood(reports, 0) - mechanism.log_likelihood(reports, 1)
        assert np.abs(losses).max() <= mechanism.guarantee().epsilon + 1e-11


def test_textbook_noise_leaks_its_input_through_floating_point() -> None:
    """The twin: of 100 000 outputs for 0, over half cannot come from 1 at all.

    After Mironov 2012. The share is near four fifths: half is 200 standard errors away.
    """
    steps = uniform_steps(SeededSource(1, "textbook").words(100_000))
    outputs = 0.0 + textbook_noise(steps)
    assert is_attainable(outputs, 0.0).all()
    assert np.count_nonzero(~is_attainable(outputs, 1.0)) > 50_000
