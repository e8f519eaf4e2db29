"""Held-out bounds, checked exactly on a mechanism with two outputs, and on Gaussians."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import beta, binom

from noisefloor.adversary.audit.held_out import held_out_bound
from noisefloor.errors import BadParameter
from noisefloor.randomness import SeededSource

GAMES = 16


def ones(count: int, of: int) -> list[float]:
    return [1.0] * count + [0.0] * (of - count)


def chance_of_wronging(inside: float, outside: float, epsilon: float, alpha: float) -> float:
    """Sum over all counts of ones in the four halves, of a mechanism that gives ones and zeros."""
    half = GAMES // 2
    distributions = [binom.pmf(np.arange(half + 1), half, chance) for chance in (inside, outside)]
    total = 0.0
    for a, b, c, d in itertools.product(range(half + 1), repeat=4):
        first = np.array(ones(a, half) + ones(b, half))
        second = np.array(ones(c, half) + ones(d, half))
        if b in (0, half) or d in (0, half) or abs(b - d) > 3:  # all else proves nothing here
            if held_out_bound(first, second, alpha=alpha).epsilon > epsilon:
                total += (
                    distributions[0][a]
                    * distributions[0][b]
                    * distributions[1][c]
                    * distributions[1][d]
                )
    return float(total)


@pytest.mark.slow
def test_a_response_is_wronged_with_alpha_at_most_and_a_leak_more_often() -> None:
    epsilon, alpha = 0.4, 0.3
    chance = math.exp(epsilon) / (1 + math.exp(epsilon))
    wronged = chance_of_wronging(chance, 1 - chance, epsilon, alpha)
    assert wronged <= alpha
    assert chance_of_wronging(0.95, 0.05, epsilon, alpha) > alpha


def by_clopper_and_pearson(
    hits: int, games: int, false: int, others: int, delta: float
) -> tuple[float, float]:
    """Return what two counts prove with alpha 0.02, and the most that n games can."""

    def ratio(hits: int, false: int) -> float:
        low = beta.ppf(0.01, hits, games - hits + 1)
        return math.log((low - delta) / beta.ppf(0.99, false + 1, others - false))

    return ratio(hits, false), ratio(games, 0)


@pytest.mark.parametrize("delta", [0.0, 0.1])
def test_the_bound_is_that_of_the_second_half_by_clopper_and_pearson(delta: float) -> None:
    # Both halves are alike: the one chooses what the other counts. First high scores tell, which
    # are 60 of 100 and 20 of 300; then low ones do, which are 5 of 100 and 120 of 300.
    for inside, outside, counts in (
        (ones(60, 100), ones(20, 300), (60, 100, 20, 300)),
        (ones(95, 100), ones(180, 300), (120, 300, 5, 100)),
    ):
        games = np.array(2 * inside), np.array(2 * outside)
        found = held_out_bound(*games, alpha=0.02, delta=delta)
        expected = by_clopper_and_pearson(*counts, delta)
        assert (found.epsilon, found.ceiling) == pytest.approx(expected, rel=1e-9)
        assert (found.confidence, found.trials) == (0.98, 100)


def test_what_chooses_a_threshold_does_not_judge_it() -> None:
    # The first half of the games says the contrary of the second.
    inside, outside = np.array(ones(50, 100)), np.array(ones(50, 100)[::-1])
    assert held_out_bound(inside, outside, alpha=0.1).epsilon == 0
    assert held_out_bound(outside, inside, alpha=0.1).epsilon == 0


@pytest.mark.statistical
def test_a_response_is_bounded_from_below_and_nearly() -> None:
    """100,000 games a side; the bound is wrong with probability 1e-6."""
    chance = int(math.e / (1 + math.e) * 2**64)
    source = SeededSource(1, "response")
    inside = source.child("in").bernoulli(chance, 100_000).astype(np.float64)
    outside = (~source.child("out").bernoulli(chance, 100_000)).astype(np.float64)
    found = held_out_bound(inside, outside, alpha=1e-6)
    assert 0.9 < found.epsilon < 1.0 < found.ceiling
    assert found.trials == 50_000
    # High scores stand for the first input: a score that says the contrary proves nothing.
    assert held_out_bound(outside, inside, alpha=1e-6).epsilon == 0
    assert 0.9 < held_out_bound(-outside, -inside, alpha=1e-6).epsilon < 1.0
    assert held_out_bound(inside, inside[::-1], alpha=1e-6).epsilon == 0
    assert held_out_bound(inside, outside, alpha=1e-6, delta=0.7).epsilon < 0.4


def test_too_few_games_and_nan_are_refused() -> None:
    with pytest.raises(BadParameter, match="at least 16 scores"):
        held_out_bound(np.zeros(15), np.zeros(16), alpha=0.1)
    with pytest.raises(BadParameter, match="outside"):
        held_out_bound(np.zeros(16), np.full(16, np.nan), alpha=0.1)
    with pytest.raises(BadParameter, match="delta"):
        held_out_bound(np.zeros(16), np.zeros(16), alpha=0.1, delta=1.0)
