"""The best of a random number of trials: its cost against exact distributions, and its draws."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from noisefloor.accounting import (
    NANO,
    GaussianNoise,
    ReleaseLoss,
    TrialCount,
    TrialSelection,
    epsilon_at,
)
from noisefloor.accounting.trial_selection import ORDERS
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import SeededSource
from properties import examples
from statistics_of_tests import FALSE_ALARM, chi_square_p

ADDED = Neighbours.RECORD_ADD_REMOVE
COUNTS = (TrialCount(0, 0.1), TrialCount(1, 0.2), TrialCount(-0.5, 0.05), TrialCount(2.5, 0.5))
Floats = NDArray[np.float64]


def generating(count: TrialCount, x: Floats) -> Floats:
    """Return E[x**K] in closed form: an oracle that does not know the probabilities."""
    eta, rest = count.eta, 1 - (1 - count.gamma) * x
    if eta == 0:
        return np.asarray(np.log(rest) / math.log(count.gamma))
    return np.asarray((rest**-eta - 1) / (count.gamma**-eta - 1))


def best(count: TrialCount, chances: Floats) -> Floats:
    """Return the exact distribution of the largest outcome of all trials."""
    return np.diff(generating(count, np.concatenate([[0.0], np.cumsum(chances)])))


def divergence(first: Floats, second: Floats, order: int) -> float:
    return float(np.log(np.sum(first**order * second ** (1 - order))) / (order - 1))


def pure(epsilon: float) -> ReleaseLoss:
    return ReleaseLoss.of(Guarantee(epsilon, ADDED))


def response(epsilon: float, names_best: bool) -> Floats:
    """Return the outcomes of a randomised response about which of two is the best."""
    odds = math.exp(epsilon)
    chances = np.array([odds, 1.0]) / (1 + odds)
    return chances[::-1] if names_best else chances


@pytest.mark.parametrize("count", COUNTS)
def test_the_drawn_distribution_is_that_of_the_proof(count: TrialCount) -> None:
    weights = np.array(count.distribution.weights) / 2.0**64
    numbers = np.arange(1, len(weights) + 1)
    for x in (0.0, 0.3, 0.9, 0.999, 1.0):
        assert np.sum(weights * x**numbers) == pytest.approx(
            float(generating(count, np.array(x))), abs=1e-12
        )
    assert np.sum(weights * numbers) == pytest.approx(count.mean, rel=1e-9)
    assert 0 < count.variation < 1e-14


@pytest.mark.parametrize("count", COUNTS)
@examples(40)
@given(
    epsilon=st.floats(0.01, 3),
    tilt=st.lists(st.floats(0, 1), min_size=2, max_size=6),
    raw=st.lists(st.floats(0.01, 1), min_size=6, max_size=6),
    order=st.sampled_from(ORDERS[:30]),
)
def test_no_pure_trial_diverges_by_more_than_the_bound(
    count: TrialCount, epsilon: float, tilt: list[float], raw: list[float], order: int
) -> None:
    first = np.array(raw[: len(tilt)])
    second = first * np.exp((epsilon / 2) * (2 * np.array(tilt) - 1))
    first, second = first / first.sum(), second / second.sum()
    worst = float(np.abs(np.log(first / second)).max())
    bound = TrialSelection((pure(worst),), count, ADDED).renyi(order) / NANO
    for one, other in ((first, second), (second, first)):
        assert divergence(best(count, one), best(count, other), order) <= bound + 1e-9


def test_a_bound_that_forgets_the_choice_is_exceeded() -> None:
    """The twin: what one trial costs, with nothing for the choice among them."""
    count, epsilon, order = TrialCount(1, 0.01), 1.0, 32
    first, second = best(count, response(epsilon, True)), best(count, response(epsilon, False))
    found = max(divergence(first, second, order), divergence(second, first, order))
    assert found > 1.2 * pure(epsilon).renyi(order, ADDED) / NANO
    assert found <= TrialSelection((pure(epsilon),), count, ADDED).renyi(order) / NANO


@pytest.mark.parametrize("eta", [0, 1])
def test_pure_trials_come_to_two_and_eta_times_their_epsilon(eta: float) -> None:
    """Corollary 3 of the paper, for large orders."""
    epsilon, count = 0.5, TrialCount(eta, 0.01)
    limit = TrialSelection((pure(epsilon),), count, ADDED).renyi(512) / NANO
    assert (2 + eta) * epsilon <= limit < (2 + eta) * epsilon + 0.05


def test_gaussian_trials_cost_more_than_one_and_less_than_their_sum() -> None:
    count, noise, delta = TrialCount(0, 0.05), 4.0, 1e-6
    selection = TrialSelection((ReleaseLoss((GaussianNoise(noise),)),), count, ADDED)
    found = selection.guarantee(delta)
    alone = epsilon_at([GaussianNoise(noise)], delta, neighbours=ADDED).epsilon
    expected = epsilon_at(
        [GaussianNoise(noise, count=math.ceil(count.mean))], delta, neighbours=ADDED
    )
    assert alone < found.epsilon < 2 * expected.epsilon
    assert (found.delta, found.neighbours) == (delta, ADDED)


def test_a_trial_costs_what_its_dearest_part_does() -> None:
    small, large = ReleaseLoss((GaussianNoise(5.0),)), ReleaseLoss((GaussianNoise(3.0),))
    count = COUNTS[0]
    both = TrialSelection((small, large), count, ADDED)
    assert both.renyi(8) == TrialSelection((large,), count, ADDED).renyi(8)
    assert both.renyi(8) > TrialSelection((small,), count, ADDED).renyi(8)


def number_p(count: TrialCount, of: TrialCount, seed: int) -> float:
    """Return the p-value of 20,000 drawn numbers of trials; ten trials and more are one cell."""
    drawn = SeededSource(seed, "trials").draw(count.distribution, 20_000)
    weights = np.array(of.distribution.weights) / 2.0**64
    cells = np.append(weights[:9], weights[9:].sum())
    return chi_square_p(np.bincount(np.minimum(drawn, 9), minlength=10), cells)


@pytest.mark.statistical
def test_numbers_of_trials_are_drawn_as_declared(seed: int) -> None:
    """n = 20,000; false alarm FALSE_ALARM."""
    assert number_p(COUNTS[0], COUNTS[0], seed) > FALSE_ALARM


@pytest.mark.statistical
def test_a_gamma_that_is_a_fifth_larger_is_found(seed: int) -> None:
    assert number_p(TrialCount(0, 0.12), COUNTS[0], seed) < FALSE_ALARM


@pytest.mark.parametrize(
    ("eta", "gamma"), [(-1, 0.5), (math.nan, 0.5), (0, 0), (0, 1), (0, -0.1), (0, 1e-4)]
)
def test_counts_without_a_distribution_are_refused(eta: float, gamma: float) -> None:
    with pytest.raises(BadParameter):
        TrialCount(eta, gamma)


def test_trials_with_a_delta_of_their_own_and_too_small_deltas_are_refused() -> None:
    with pytest.raises(BadParameter, match="losses"):
        TrialSelection((), COUNTS[0], ADDED)
    with pytest.raises(BadParameter, match="losses"):
        TrialSelection((ReleaseLoss(epsilon=1, delta=1e-6),), COUNTS[0], ADDED)
    with pytest.raises(BadParameter, match="delta"):
        TrialSelection((pure(1.0),), COUNTS[0], ADDED).guarantee(1e-16)
