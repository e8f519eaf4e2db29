"""Square wave: density, width, response matrix and the smoothed estimate."""

import math

import numpy as np
import pytest

from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import SquareWave
from noisefloor.mechanisms.piecewise import STEPS
from noisefloor.mechanisms.square_wave import half_width, smoothing
from noisefloor.randomness import SeededSource
from statistics_of_tests import FALSE_ALARM

EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_width_is_the_papers(epsilon: float) -> None:
    """b = (eps e**eps - e**eps + 1) / (2 e**eps (e**eps - 1 - eps)), window 2 b of 1 + 2 b."""
    power = math.exp(epsilon)
    b = (epsilon * power - power + 1) / (2 * power * (power - 1 - epsilon))
    mechanism = SquareWave(epsilon)
    assert float(half_width(epsilon)) == pytest.approx(b, rel=1e-9)
    assert mechanism.window.width / STEPS == pytest.approx(2 * b, abs=1 / STEPS)


@pytest.mark.parametrize("epsilon", [1e-9, 9.9e-7, 1.1e-6, 1e-5, 1e-3])
def test_the_width_tends_to_the_whole_line(epsilon: float) -> None:
    """b = 1/2 - eps / 3 + ... by Taylor, where the closed form cancels; a cell is 1.5e-5 wide."""
    assert float(half_width(epsilon)) == pytest.approx(0.5 - epsilon / 3, abs=epsilon**2 + 1e-6)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_density_ratio_is_e_to_the_epsilon(epsilon: float) -> None:
    """p = e**eps / (2 b e**eps + 1) near, q = 1 / (2 b e**eps + 1) far."""
    mechanism, b = SquareWave(epsilon), float(half_width(epsilon))
    logs = mechanism.log_likelihood(mechanism.outputs(), 0.4)
    far = 1 / (2 * b * math.exp(epsilon) + 1)
    assert logs.max() - logs.min() == pytest.approx(epsilon, abs=1e-6)
    # Cells are 1 / STEPS wide; the window's width is rounded to one of them.
    rel = 4 / mechanism.window.width
    assert math.exp(logs.min()) * STEPS == pytest.approx(far, rel=rel)
    assert math.exp(logs.max()) * STEPS == pytest.approx(far * math.exp(epsilon), rel=rel)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("bins", [2, 16, 64, 1024])
def test_columns_of_the_response_sum_to_one(epsilon: float, bins: int) -> None:
    response = SquareWave(epsilon, bins).response()
    assert response.sum(axis=0) == pytest.approx(1, abs=1e-12)
    assert (response > 0).all()


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_the_response_is_the_average_of_the_distribution_over_a_bin(epsilon: float) -> None:
    """Values of a bin are rounded to its grid points; half of the outer ones' are its own."""
    mechanism = SquareWave(epsilon, 1024)
    cells, group = mechanism.outputs(), STEPS // 1024
    rows = [
        np.bincount(cells // group, np.exp(mechanism.window.log_likelihood(cells, place)))
        for place in range(3 * group, 4 * group + 1)
    ]
    average = (np.sum(rows, axis=0) - (rows[0] + rows[-1]) / 2) / group
    assert mechanism.response()[:, 3] == pytest.approx(average, abs=1e-12)


def test_smoothing_keeps_the_total_and_weighs_one_two_one() -> None:
    matrix = smoothing(8)
    assert matrix.sum(axis=0) == pytest.approx(1)
    assert matrix[3, 2:5] == pytest.approx([0.25, 0.5, 0.25])


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_an_even_population_is_estimated_as_even(epsilon: float) -> None:
    mechanism = SquareWave(epsilon, 64)
    tally = np.rint(10**12 * mechanism.response().mean(axis=1)).astype(np.int64)
    estimate = mechanism.estimate(tally, 10**12)
    assert estimate.value == pytest.approx(1 / 64, rel=1e-3)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_estimates_are_shares(epsilon: float) -> None:
    mechanism = SquareWave(epsilon, 16)
    values = SeededSource(1, "beta").generator().beta(2, 5, 20_000)
    reports = mechanism.randomise(values, SeededSource(1, "wave", f"{epsilon}"))
    estimate = mechanism.estimate(mechanism.tally(reports), 20_000)
    assert estimate.value.sum() == pytest.approx(1, abs=1e-9)
    assert (estimate.value >= 0).all()
    assert estimate.standard_error.shape == (16,)


def test_expected_reports_of_a_smooth_distribution_give_it_back() -> None:
    """No noise of sampling: what is left is the bias of smoothing, and it is at the edges."""
    mechanism = SquareWave(4.0, 16)
    edges = np.linspace(0, 1, 17)
    truth = np.diff(3 * edges**2 - 2 * edges**3)  # a beta(2, 2)
    tally = np.rint(10**12 * mechanism.response() @ truth).astype(np.int64)
    estimate = mechanism.estimate(tally, 10**12)
    assert np.abs(estimate.value - truth)[1:-1].max() < 0.003
    # An outer bin counts as its own neighbour: where the density falls to zero it takes about a
    # quarter of the next bin's lead, here 0.02 / 2 after the fixed point has settled.
    assert np.abs(estimate.value - truth).max() < 0.012


@pytest.mark.statistical
@pytest.mark.parametrize(("factor", "passes"), [(1.0, True), (1.6, False)])
def test_the_standard_error_is_the_spread_of_repeated_estimates(
    factor: float, passes: bool, seed: int
) -> None:
    """400 repetitions of n = 200 000, four bins; false alarm FALSE_ALARM. The twin is 1.6 times.

    The variance of a bin's estimates over the squared standard error is chi-square with 399
    degrees of freedom; with bins this is taken four times (Bonferroni).
    """
    from scipy import stats

    mechanism, n = SquareWave(2.0, 4), 200_000
    distribution = mechanism.response() @ np.array([0.1, 0.4, 0.3, 0.2])
    generator = SeededSource(seed, "repeated").generator()
    estimates = [
        mechanism.estimate(tally, n) for tally in generator.multinomial(n, distribution, size=400)
    ]
    spread = np.var([estimate.value for estimate in estimates], axis=0, ddof=1)
    claimed = factor * np.mean([estimate.standard_error for estimate in estimates], axis=0)
    statistic = 399 * spread / claimed**2
    tails = np.minimum(stats.chi2.cdf(statistic, 399), stats.chi2.sf(statistic, 399))
    assert bool((2 * 4 * tails > FALSE_ALARM).all()) is passes


@pytest.mark.parametrize("bins", [1, 3, 48, 2048, True, 4.0])
def test_bad_bins_are_refused(bins: int) -> None:
    with pytest.raises(BadParameter, match="bins"):
        SquareWave(1.0, bins)


def test_the_near_weight_is_a_64_bit_integer() -> None:
    assert 0 < SquareWave(1.0).window.inside < ONE
