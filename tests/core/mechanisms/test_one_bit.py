"""One bit for a mean: closed forms, the grid, and sampled coordinates."""

import math

import numpy as np
import pytest

from enumeration import enumerate_distribution
from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter, OutOfDomain
from noisefloor.mechanisms import OneBitMean, SampledBit
from noisefloor.mechanisms.one_bit import GRID
from noisefloor.randomness import SeededSource, new_run
from statistics_of_tests import FALSE_ALARM, binomial_p

EPSILONS = (0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("value", [-1.0, -0.25, 0.0, 0.5, 1.0])
def test_the_chance_of_a_one_is_the_papers(epsilon: float, value: float) -> None:
    """T ~ Bern((x (e**eps - 1) + e**eps + 1) / (2 (e**eps + 1))), spec 003, section 2.2."""
    power = math.exp(epsilon)
    one = math.exp(OneBitMean(epsilon).log_likelihood(np.array([True]), value)[0])
    assert one == pytest.approx((value * (power - 1) + power + 1) / (2 * (power + 1)), rel=1e-7)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("one", "other"), [(-1.0, 1.0), (0.0, 0.5), (-0.75, -0.25), (0.3, 0.3)])
def test_total_variation_is_the_closed_form(epsilon: float, one: float, other: float) -> None:
    """(|x - x'| / 2) tanh(eps / 2), to the grid."""
    mechanism, bits = OneBitMean(epsilon), np.array([False, True])
    first = np.exp(mechanism.log_likelihood(bits, one))
    second = np.exp(mechanism.log_likelihood(bits, other))
    closed = abs(one - other) / 2 * math.tanh(epsilon / 2)
    assert np.abs(first - second).sum() / 2 == pytest.approx(closed, abs=1 / GRID)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_report_stands_for_the_papers_number(epsilon: float) -> None:
    assert OneBitMean(epsilon).size == pytest.approx(1 / math.tanh(epsilon / 2), rel=1e-7)


@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 1.0, 16.0, 40.0])
def test_thresholds_are_linear_in_the_grid_point_and_symmetric(epsilon: float) -> None:
    mechanism = OneBitMean(epsilon)
    points = np.array([-GRID, -GRID + 1, -1, 0, 1, 17, GRID]) / GRID
    thresholds = [int(threshold) for threshold in mechanism.thresholds(points)]
    assert thresholds == [ONE // 2 + round(point * GRID) * mechanism.slope for point in points]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 16.0, 36.0, 40.0])
def test_likelihoods_of_a_sampled_bit_are_those_of_the_bit(epsilon: float) -> None:
    sampled, one_bit = SampledBit(3, epsilon), OneBitMean(epsilon)
    vector = np.array([1.0, -0.3, -1.0])
    logs = sampled.log_likelihood(np.arange(6), vector).reshape(3, 2)
    for coordinate, value in enumerate(vector):
        expected = one_bit.log_likelihood(np.array([False, True]), value) - math.log(3)
        assert logs[coordinate] == pytest.approx(expected, abs=1e-10)


def test_every_coordinate_is_as_likely_and_tells_its_own_value() -> None:
    mechanism = SampledBit(3, 1.0)
    vector = np.array([[1.0, 0.0, -1.0]])
    distribution = enumerate_distribution(lambda source: mechanism.randomise(vector, source))
    for coordinate in range(3):
        assert (
            distribution[2 * coordinate] + distribution[2 * coordinate + 1]
            == distribution[2] + distribution[3]
        )
    assert distribution[2] == distribution[3]
    assert distribution[1] == distribution[4]


def test_answering_for_a_chosen_coordinate_is_the_whole_vectors_report() -> None:
    mechanism = SampledBit(4, 1.0)
    rows = np.linspace(-1, 1, 4000).reshape(1000, 4)
    with new_run():
        whole = mechanism.randomise(rows, SeededSource(1, "device"))
    with new_run():
        source = SeededSource(1, "device")
        chosen = mechanism.choose(1000, source)
        picked = rows[np.arange(1000), chosen]
        parts = mechanism.answer(chosen, picked, source)
    assert np.array_equal(whole, parts)


def test_a_coordinate_that_is_not_there_is_refused() -> None:
    with pytest.raises(OutOfDomain):
        SampledBit(2, 1.0).answer(np.array([2]), np.array([0.0]), SeededSource(1, "none"))


@pytest.mark.parametrize("dimension", [0, -1, 1.5, True])
def test_a_bad_dimension_is_refused(dimension: int) -> None:
    with pytest.raises(BadParameter, match="dimension"):
        SampledBit(dimension, 1.0)


@pytest.mark.parametrize("value", [1.01, -1.01, math.nan])
def test_a_likelihood_outside_the_domain_is_refused(value: float) -> None:
    with pytest.raises(OutOfDomain):
        OneBitMean(1.0).log_likelihood(np.array([True]), value)
    with pytest.raises(OutOfDomain):
        SampledBit(1, 1.0).log_likelihood(np.array([1]), np.array([value]))


@pytest.mark.statistical
@pytest.mark.parametrize(("factor", "passes"), [(1.0, True), (1.1, False)])
def test_bits_come_as_often_as_the_threshold_says(factor: float, passes: bool, seed: int) -> None:
    """n = 400 000; false alarm FALSE_ALARM. The twin has 1.1 times the epsilon."""
    values = np.full(400_000, 0.6)
    source = SeededSource(seed, "bits", f"{factor}")
    ones = int(OneBitMean(2.0 * factor).randomise(values, source).sum())
    chance = math.exp(OneBitMean(2.0).log_likelihood(np.array([True]), 0.6)[0])
    assert (binomial_p(ones, 400_000, chance) > FALSE_ALARM) is passes
