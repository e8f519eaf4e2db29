"""Discrete Gaussian: the table, delta against the closed form, guarantees."""

import itertools
import math
from decimal import Decimal

import numpy as np
import pytest
from scipy.special import ndtr

from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import DiscreteGaussian, DiscreteLaplace
from noisefloor.mechanisms.gaussian import GaussianTable, excess
from noisefloor.privacy import Neighbours, TrustModel
from noisefloor.randomness import SeededSource
from statistics_of_tests import FALSE_ALARM, chi_square_p

REQUESTS = list(itertools.product((0.1, 0.5, 1.0, 4.0, 8.0), (1e-3, 1e-6, 1e-9)))


@pytest.mark.parametrize("sigma", [0.2, 1.0, 3.7, 50.0, 1000.0])
def test_weights_sum_to_two_to_the_64_and_are_even(sigma: float) -> None:
    table = GaussianTable(sigma)
    weights = table.distribution.weights
    assert sum(weights) == ONE
    assert len(weights) == 2 * table.reach + 1
    assert weights == weights[::-1]
    assert min(weights) >= 1


@pytest.mark.parametrize("sigma", [0.2, 1.0, 3.7, 50.0, 1000.0])
def test_weights_are_those_of_the_bell(sigma: float) -> None:
    table = GaussianTable(sigma)
    noise = np.arange(-table.reach, table.reach + 1)
    bell = np.exp(-((noise / sigma) ** 2) / 2)
    assert np.array(table.distribution.weights) / ONE == pytest.approx(
        bell / bell.sum(), abs=1e-15
    )


@pytest.mark.parametrize(("sigma", "shift"), [(1.0, 1), (3.7, 1), (3.7, 5), (50.0, 20)])
def test_delta_is_the_exact_sum_and_a_margin_for_the_floats(sigma: float, shift: int) -> None:
    table, power = GaussianTable(sigma), Decimal(1).exp()
    weights = table.distribution.weights
    moved = [*([0] * shift), *weights]
    padded = [*weights, *([0] * shift)]
    exact = sum(
        max(Decimal(one) - power * other, Decimal(0))
        for one, other in zip(padded, moved, strict=True)
    )
    assert 5e-13 < table.delta(1.0, shift) - float(exact / ONE) < 2e-12


@pytest.mark.parametrize("sigma", [1.0, 3.7, 50.0, 1000.0])
def test_what_lies_beyond_the_reach_is_too_rare_for_64_bits(sigma: float) -> None:
    table = GaussianTable(sigma)
    beyond = np.exp(-(((table.reach + 1) / sigma) ** 2) / 2) / (sigma * math.sqrt(2 * math.pi))
    assert beyond * ONE < 1


def balle_wang(sigma: float, epsilon: float, shift: float) -> float:
    """Return delta of the continuous Gaussian mechanism (Balle and Wang 2018, theorem 8)."""
    mu = shift / sigma
    return float(ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu))


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("ratio", [0.5, 1.0, 2.0])
def test_delta_of_a_wide_table_is_the_closed_form(epsilon: float, ratio: float) -> None:
    """At sigma 2 000 the grid moves delta by less than one part in a thousand of itself."""
    sigma, shift = 2000.0, round(2000 * ratio)
    delta = GaussianTable(sigma).delta(epsilon, shift)
    assert delta == pytest.approx(balle_wang(sigma, epsilon, shift), rel=1e-3, abs=2e-12)


@pytest.mark.parametrize(("epsilon", "delta"), REQUESTS)
@pytest.mark.parametrize("high", [1, 3, 40])
def test_the_guarantee_meets_the_request_and_wastes_little(
    epsilon: float, delta: float, high: int
) -> None:
    mechanism = DiscreteGaussian(epsilon, delta, 0, high)
    guarantee = mechanism.guarantee()
    assert guarantee.delta == delta
    assert epsilon - 1e-5 <= guarantee.epsilon <= epsilon
    assert mechanism.noise.delta(epsilon, high) <= delta


@pytest.mark.parametrize(("epsilon", "delta"), REQUESTS)
def test_delta_by_the_definition_is_within_the_request_for_every_pair(
    epsilon: float, delta: float
) -> None:
    """Sum of max(P - e**eps Q, 0) over all reports, for all pairs of inputs, both ways."""
    mechanism = DiscreteGaussian(epsilon, delta, 0, 3)
    reports = np.arange(-mechanism.noise.reach - 1, mechanism.noise.reach + 5)
    distributions = [np.exp(mechanism.log_likelihood(reports, value)) for value in range(4)]
    promised = mechanism.guarantee().epsilon
    for one, other in itertools.permutations(distributions, 2):
        assert np.maximum(one - math.exp(promised) * other, 0).sum() <= delta
    worst = np.maximum(distributions[0] - math.exp(promised - 1e-4) * distributions[3], 0).sum()
    assert worst > delta * 0.999 - 2e-12


@pytest.mark.parametrize("sigma_factor", [0.99, 0.9])
def test_a_sigma_too_small_is_caught(sigma_factor: float) -> None:
    mechanism = DiscreteGaussian(1.0, 1e-6, 0, 10)
    small = GaussianTable(mechanism.noise.sigma * sigma_factor)
    assert small.delta(1.0, 10) > 1e-6
    assert small.epsilon(1e-6, 10) > 1.0


@pytest.mark.parametrize("sigma", [1.0, 3.7])
def test_likelihoods_sum_to_one_and_end_where_the_table_ends(sigma: float) -> None:
    mechanism = DiscreteGaussian(1.0, 1e-6, 0, 1)
    reach = mechanism.noise.reach
    logs = mechanism.log_likelihood(np.arange(-reach - 3, reach + 4), 0)
    assert np.isneginf(logs[[0, 2, -3, -1]]).all()
    assert np.isfinite(logs[3:-3]).all()
    assert np.exp(logs).sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(
    "epsilon",
    [
        0.1,
        1.0,
        16.0,
    ],
)
def test_the_standard_error_is_that_of_the_table(epsilon: float) -> None:
    mechanism = DiscreteGaussian(epsilon, 1e-6, 0, 1)
    noise = np.arange(-mechanism.noise.reach, mechanism.noise.reach + 1)
    variance = mechanism.noise.chances @ noise.astype(float) ** 2
    error = mechanism.estimate(np.array([3]), 7).standard_error[0]
    assert error == pytest.approx(math.sqrt(variance / 7), rel=1e-6)


def test_no_shift_costs_nothing_and_disjoint_tables_cost_everything() -> None:
    chances = GaussianTable(1.0).chances
    assert excess(chances, 0.0, 0) == pytest.approx(0, abs=1e-11)
    assert excess(chances, 1.0, 1000) == 1.0
    assert math.isinf(GaussianTable(1.0).epsilon(1e-6, 1000))
    assert GaussianTable(1.0).epsilon(0.9, 1) == 0.0


def test_a_curators_sum_has_a_sensitivity_of_its_own() -> None:
    record = Neighbours.RECORD_SUBSTITUTE
    mechanism = DiscreteGaussian(1.0, 1e-6, 0, 10_000, sensitivity=2, neighbours=record)
    assert mechanism.guarantee(record).model is TrustModel.CENTRAL
    assert mechanism.noise.sigma == pytest.approx(DiscreteGaussian(1.0, 1e-6, 0, 2).noise.sigma)
    assert not mechanism.guarantee().is_finite


@pytest.mark.parametrize("delta", [0, -1e-6, 1.0, 1e-13, math.nan, True])
def test_a_bad_delta_is_refused(delta: float) -> None:
    with pytest.raises(BadParameter, match="delta"):
        DiscreteGaussian(1.0, delta, 0, 1)


def test_a_table_that_would_be_too_long_is_refused() -> None:
    with pytest.raises(BadParameter, match="coarsen the grid"):
        DiscreteGaussian(0.01, 1e-6, 0, 1000)


@pytest.mark.statistical
@pytest.mark.parametrize("high", [1, 30])
@pytest.mark.parametrize(("factor", "passes"), [(1.0, True), (1.1, False), (0.9, False)])
def test_reports_follow_the_bell(high: int, factor: float, passes: bool, seed: int) -> None:
    """n = 200 000; false alarm FALSE_ALARM. The twin's sigma is a tenth off."""
    mechanism = DiscreteGaussian(2.0, 1e-6, 0, high)
    sigma = mechanism.noise.sigma
    object.__setattr__(mechanism, "noise", GaussianTable(sigma * factor))
    source = SeededSource(seed, "bell", high, f"{factor}")
    noise = mechanism.randomise(np.ones(200_000, dtype=np.int64), source) - 1
    edge = math.ceil(5 * sigma)
    bell = np.exp(-((np.arange(-20 * edge, 20 * edge + 1) / sigma) ** 2) / 2)
    places = np.clip(np.arange(-20 * edge, 20 * edge + 1), -edge, edge) + edge
    distribution = np.bincount(places, bell / bell.sum())
    counts = np.bincount(np.clip(noise, -edge, edge) + edge, minlength=2 * edge + 1)
    assert (chi_square_p(counts, distribution) > FALSE_ALARM) is passes


def test_sums_of_large_reports_are_exact() -> None:
    """Beyond 32 bits, for reports on either grid."""
    low = 1 << 39
    for mechanism in (
        DiscreteGaussian(1.0, 1e-6, low, low + 1),
        DiscreteLaplace(1.0, low, low + 1),
    ):
        assert mechanism.tally(np.full(4, low)).tolist() == [4 * low]
