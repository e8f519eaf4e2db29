"""Laws of noise: their ratios and moments against sums and integrals, their draws against them."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import laplace, norm

from noisefloor.adversary.releases.noise_distributions import (
    DiscreteLaplaceDistribution,
    GaussianDistribution,
    LaplaceDistribution,
    LocationFamily,
)
from noisefloor.errors import BadParameter
from noisefloor.randomness import SeededSource
from statistics_of_tests import FALSE_ALARM, chi_square_p, ks_p


@pytest.mark.parametrize("shift", [0.1, 0.7, 3.0])
@pytest.mark.parametrize(
    "law", [LaplaceDistribution(0.8), GaussianDistribution(0.8)], ids=["laplace", "gauss"]
)
def test_moments_are_those_of_an_integral(law: LocationFamily, shift: float) -> None:
    density = (laplace if isinstance(law, LaplaceDistribution) else norm)(scale=0.8).pdf

    def moment(power: int) -> float:
        def at(noise: float) -> float:
            here, there = law.log_density(np.array([noise, noise - shift]))
            return float(density(noise) * (here - there) ** power)

        return float(quad(at, -30, 30, points=[0.0, shift], limit=200)[0])

    mean, variance = law.moments(np.array([shift]))
    assert mean[0] == pytest.approx(moment(1), rel=1e-6)
    assert variance[0] == pytest.approx(moment(2) - moment(1) ** 2, rel=1e-5)


@pytest.mark.parametrize("shift", [1, 4])
def test_moments_of_the_discrete_law_are_sums_over_its_weights(shift: int) -> None:
    law = DiscreteLaplaceDistribution(2.5)
    noise = np.arange(-200.0, 201.0)
    chance = np.exp(law.log_density(noise))
    loss = law.log_density(noise) - law.log_density(noise - shift)
    mean, variance = law.moments(np.array([0.0, shift, -shift]))
    assert chance.sum() == pytest.approx(1.0)
    assert mean == pytest.approx([0.0, chance @ loss, chance @ loss], abs=1e-9)
    assert variance[1] == pytest.approx(chance @ loss**2 - (chance @ loss) ** 2, abs=1e-9)
    assert law.epsilon(np.array([0.0, shift])) == pytest.approx(loss.max(), abs=1e-9)


def test_the_largest_ratio_is_reached_by_laplace_and_unbounded_for_gauss() -> None:
    shift = np.array([0.5, -1.0, 0.0])
    law = LaplaceDistribution(np.array([1.0, 2.0, 3.0]))
    outside = np.array([-50.0, 50.0, 0.0])
    ratio = law.log_density(outside).sum() - law.log_density(outside - shift).sum()
    assert law.epsilon(shift) == pytest.approx(abs(ratio)) == pytest.approx(1.0)
    assert GaussianDistribution(1.0).epsilon(shift) == math.inf
    assert GaussianDistribution(1.0).epsilon(np.zeros(3)) == 0.0


@pytest.mark.statistical
def test_draws_follow_their_laws() -> None:
    """50,000 draws of each: false alarm 1e-6; a scale a tenth off is found."""
    source = SeededSource(1, "draws")
    drawn = LaplaceDistribution(2.0).draw((100, 500), source.child("laplace")).ravel()
    assert ks_p(drawn, laplace(scale=2.0).cdf) > FALSE_ALARM
    assert ks_p(drawn, laplace(scale=2.2).cdf) < FALSE_ALARM
    drawn = GaussianDistribution(2.0).draw((100, 500), source.child("gauss")).ravel()
    assert ks_p(drawn, norm(scale=2.0).cdf) > FALSE_ALARM
    assert ks_p(drawn, norm(scale=2.2).cdf) < FALSE_ALARM
    whole = DiscreteLaplaceDistribution(2.0).draw((100, 500), source.child("whole")).ravel()
    cells = np.arange(-60, 61)
    counts = np.bincount(whole.astype(np.int64) + 60, minlength=121)
    for scale, is_right in ((2.0, True), (2.2, False)):
        chance = np.exp(-np.abs(cells) / scale)
        assert (chi_square_p(counts, chance / chance.sum()) > FALSE_ALARM) == is_right


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, np.array([1.0, 0.0])])
def test_scales_have_to_be_positive(scale: float) -> None:
    for law in (LaplaceDistribution, GaussianDistribution):
        with pytest.raises(BadParameter):
            law(scale)
