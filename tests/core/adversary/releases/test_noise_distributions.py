"""Distributions of noise: those of the releases themselves, their differences, their draws."""

import math

import numpy as np
import pytest
from scipy import stats

from noisefloor.adversary.releases.noise_distributions import (
    CellNoiseDistribution,
    DifferenceDistribution,
    GaussianDistribution,
    NoiseDistribution,
    NoNoise,
    TabulatedDistribution,
)
from noisefloor.errors import BadParameter
from noisefloor.privacy import Neighbours
from noisefloor.publication.cell_noise import CellNoise, GaussianCells, LaplaceCells
from noisefloor.randomness import SeededSource
from statistics_of_tests import FALSE_ALARM, chi_square_p, ks_p

ADDED = Neighbours.RECORD_ADD_REMOVE
CELLS = [LaplaceCells(0.8, ADDED), GaussianCells(1.0, 1e-3, ADDED)]
N = 20_000


@pytest.mark.parametrize("cells", CELLS, ids=["laplace", "gaussian"])
def test_the_distribution_of_a_cell_is_that_of_the_release(cells: CellNoise) -> None:
    distribution = CellNoiseDistribution(cells)
    released, counts = np.array([[3, -2, 0], [7, 1, 1]]), np.array([[1, 0, 0], [9, 1, 2]])
    total = distribution.log_density(released - counts).sum()
    assert total == pytest.approx(cells.log_likelihood(released, counts), rel=1e-12)
    assert distribution.table.chances.sum() == pytest.approx(1.0, abs=1e-12)
    inside = np.arange(-3, 4)
    assert distribution.table.log_density(inside) == pytest.approx(
        distribution.log_density(inside)
    )


@pytest.mark.parametrize("cells", CELLS, ids=["laplace", "gaussian"])
def test_the_difference_of_counts_is_the_sum_over_all_pairs(cells: CellNoise) -> None:
    first, second = CellNoiseDistribution(LaplaceCells(1.5, ADDED)), CellNoiseDistribution(cells)
    distribution = DifferenceDistribution(first, second)
    noise = np.arange(-200, 201)
    for value in (-3, 0, 1, 8):
        pairs = np.exp(second.log_density(noise) + first.log_density(noise - value)).sum()
        assert math.exp(distribution.log_density(np.array([value]))[0]) == pytest.approx(
            pairs, rel=1e-9
        )


def test_the_difference_of_gaussians_adds_variances_and_unlike_distributions_are_refused() -> None:
    distribution = DifferenceDistribution(GaussianDistribution(3.0), GaussianDistribution(4.0))
    places = np.array([-2.0, 0.0, 7.0])
    assert np.array_equal(
        distribution.log_density(places), GaussianDistribution(5.0).log_density(places)
    )
    assert DifferenceDistribution(NoNoise(), NoNoise(0.5)).density == NoNoise(0.5)
    with pytest.raises(BadParameter, match="second"):
        DifferenceDistribution(GaussianDistribution(1.0), NoNoise())


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("distribution", "cdf"),
    [
        (GaussianDistribution(2.0), stats.norm(scale=2.0).cdf),
        (
            DifferenceDistribution(GaussianDistribution(3.0), GaussianDistribution(4.0)),
            stats.norm(scale=5.0).cdf,
        ),
    ],
    ids=["gaussian", "difference"],
)
def test_real_noise_is_drawn_by_its_distribution(
    distribution: NoiseDistribution, cdf: stats.rv_continuous, seed: int
) -> None:
    # n = 20,000, Kolmogorov-Smirnov, false alarm FALSE_ALARM. The twin: noise larger by 25 %.
    drawn = distribution.draw((N // 4, 4), SeededSource(seed, "real")).reshape(-1)
    assert ks_p(drawn, cdf) > FALSE_ALARM
    assert ks_p(1.25 * drawn, cdf) < FALSE_ALARM


@pytest.mark.statistical
def test_the_difference_of_counts_is_drawn_by_its_distribution(seed: int) -> None:
    # n = 20,000, chi-square, false alarm FALSE_ALARM. The twin: one week's distribution alone.
    first = CellNoiseDistribution(LaplaceCells(1.0, ADDED))
    distribution = DifferenceDistribution(first, first)
    assert isinstance(distribution.density, TabulatedDistribution)
    drawn = distribution.draw((N,), SeededSource(seed, "difference"))
    reach = distribution.density.reach
    counts = np.bincount(drawn + reach, minlength=2 * reach + 1)
    chances = distribution.density.chances / distribution.density.chances.sum()
    assert chi_square_p(counts, chances) > FALSE_ALARM
    alone = np.exp(first.log_density(np.arange(-reach, reach + 1)))
    assert chi_square_p(counts, alone / alone.sum()) < FALSE_ALARM


def test_bad_distributions_are_refused() -> None:
    with pytest.raises(BadParameter, match="sigma"):
        GaussianDistribution(0.0)
    for sigma in (-1.0, math.nan, np.array([1.0, 0.0])):
        with pytest.raises(BadParameter, match="sigma"):
            GaussianDistribution(sigma)
    with pytest.raises(BadParameter, match="chances"):
        TabulatedDistribution(np.full(2, 0.5))
    assert TabulatedDistribution(np.ones(1)).log_density(np.array([0, 1])).tolist() == [
        0.0,
        -math.inf,
    ]
