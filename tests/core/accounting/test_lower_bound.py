"""Epsilons for accusations lie below those for promises, and close to them."""

import pytest

from noisefloor.accounting import SampledGaussian, epsilon_at, epsilon_at_least, gaussian_delta
from noisefloor.errors import IncompatibleGuarantees
from noisefloor.privacy import Neighbours

ADD, SWAP = Neighbours.RECORD_ADD_REMOVE, Neighbours.RECORD_SUBSTITUTE


@pytest.mark.parametrize("neighbours", [ADD, SWAP])
@pytest.mark.parametrize(
    "event",
    [
        SampledGaussian(2.0, 0.3, 10),
        SampledGaussian(0.9, 0.05, 100),
        SampledGaussian(12.0, 1.0, 20),
    ],
    ids=repr,
)
def test_it_is_a_little_below_the_upper_bound(
    event: SampledGaussian, neighbours: Neighbours
) -> None:
    upper = epsilon_at([event], 1e-5, neighbours=neighbours).epsilon
    assert 0.95 * upper < epsilon_at_least(event, 1e-5, neighbours) <= upper
    assert epsilon_at_least(event, 1e-5, neighbours, slack=0.05) <= upper


def test_that_of_the_full_batch_is_the_analytic_one() -> None:
    found = epsilon_at_least(SampledGaussian(4.0, 1.0, 10), 1e-5)
    mu = 10**0.5 / 4
    assert gaussian_delta(found * (1 + 1e-9), mu) <= 1e-5 < gaussian_delta(found * (1 - 1e-9), mu)


def test_it_does_not_pass_what_a_coarser_look_at_the_steps_shows() -> None:
    """Oracle: the sum of all steps is a coarser look, so its delta is a lower bound as well."""
    import numpy as np
    from scipy.special import ndtr
    from scipy.stats import binom

    rate, noise, steps = 0.1, 3.0, 50
    moved = np.arange(steps + 1)
    weights = binom.pmf(moved, steps, rate)
    found = epsilon_at_least(SampledGaussian(noise, rate, steps), 1e-5)
    places = np.linspace(0, 40 * noise, 4_001)[:, None]
    spread = noise * steps**0.5
    true, false = ndtr((moved - places) / spread) @ weights, ndtr(-places[:, 0] / spread)
    assert (true - np.exp(1.1 * found) * false).max() < 1e-5
    assert (true - np.exp(0.8 * found) * false).max() > 1e-5


def test_noise_so_small_that_losses_are_no_floats_has_some_bound() -> None:
    assert epsilon_at_least(SampledGaussian(0.05, 0.01, 5), 1e-5) >= 0


def test_relations_of_users_are_refused() -> None:
    with pytest.raises(IncompatibleGuarantees):
        epsilon_at_least(SampledGaussian(1.0, 0.5, 2), 1e-5, Neighbours.USER)
