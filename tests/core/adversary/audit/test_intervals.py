"""Intervals: exact against the binomial distribution itself, and honest about what a sample
resolves."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from noisefloor.adversary.audit.intervals import (
    ceiling,
    epsilon_bound,
    lower_limit,
    true_positive_rate,
    upper_limit,
)
from noisefloor.errors import BadParameter, UnresolvedRate
from noisefloor.randomness import SeededSource


def binomial_tail(successes: int, trials: int, rate: float) -> float:
    """P(at least n successes), summed term by term: no beta function is involved."""
    return math.fsum(
        math.comb(trials, k) * rate**k * (1 - rate) ** (trials - k)
        for k in range(successes, trials + 1)
    )


@pytest.mark.parametrize("successes", [1, 3, 10, 19, 20])
def test_the_lower_limit_is_the_rate_at_which_so_many_successes_are_this_rare(
    successes: int,
) -> None:
    limit = float(lower_limit(successes, 20, 0.01))
    assert binomial_tail(successes, 20, limit) == pytest.approx(0.01, rel=1e-9)


def test_limits_cover_the_true_rate_as_often_as_they_say() -> None:
    # Exact coverage over all outcomes of 30 trials, not a simulation.
    for rate in (0.02, 0.3, 0.77):
        missed = sum(
            math.comb(30, k) * rate**k * (1 - rate) ** (30 - k)
            for k in range(31)
            if float(lower_limit(k, 30, 0.05)) > rate
        )
        assert missed <= 0.05
    assert float(upper_limit(0, 30, 0.05)) == pytest.approx(1 - 0.05 ** (1 / 30))
    assert float(lower_limit(0, 30, 0.05)) == 0.0


def test_the_ceiling_is_what_a_perfect_attack_would_reach() -> None:
    # For small alpha and many trials: ln(N / ln(2 / alpha)).
    assert ceiling(100_000, alpha=0.01) == pytest.approx(
        math.log(100_000 / math.log(200)), abs=1e-3
    )
    assert ceiling(100_000, alpha=0.01) == float(epsilon_bound(100_000, 0, 100_000, alpha=0.01))
    assert ceiling(1_000, alpha=0.01) < ceiling(10_000, alpha=0.01)


@pytest.mark.parametrize(("hits", "false_hits"), [(1, 0), (40, 3), (99, 50), (100, 0)])
@pytest.mark.parametrize("delta", [0.0, 0.005])
def test_the_epsilon_of_two_counts_takes_half_of_alpha_for_each(
    hits: int, false_hits: int, delta: float
) -> None:
    trials, alpha = 100, 0.02
    low = binomtest(hits, trials).proportion_ci(1 - alpha, "exact").low
    high = binomtest(false_hits, trials).proportion_ci(1 - alpha, "exact").high
    expected = math.log((low - delta) / high) if low > delta else -math.inf
    found = float(epsilon_bound(hits, false_hits, trials, alpha=alpha, delta=delta))
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("rate", [0.1, 0.25, 1 / 3])
def test_no_more_of_the_others_are_called_members_than_the_rate_allows(rate: float) -> None:
    for count in range(100, 140):
        others = np.arange(float(count))
        called, _ = true_positive_rate(others, others, rate)
        assert called <= rate < called + 2 / count
    # Members that tie with the threshold are not called, nor are the others there.
    tied = np.repeat([0.0, 1.0], 60)
    assert true_positive_rate(tied, tied, rate)[0] == 0


def test_the_error_of_a_rate_is_that_of_the_members() -> None:
    hit, error = true_positive_rate(np.array([5.0, 5.0, 5.0, -40.0]), np.arange(-50.0, 4.0), 0.2)
    assert (hit, error) == pytest.approx((0.75, math.sqrt(0.75 * 0.25 / 4)))


def test_delta_is_taken_off_before_the_ratio() -> None:
    without = float(epsilon_bound(500, 100, 1000, alpha=0.01))
    assert float(epsilon_bound(500, 100, 1000, alpha=0.01, delta=0.1)) < without
    assert float(epsilon_bound(50, 10, 1000, alpha=0.01, delta=0.5)) == -math.inf


def test_a_rate_below_what_the_sample_resolves_is_refused() -> None:
    scores = np.arange(1000.0)
    hit, error = true_positive_rate(scores + 500, scores, 0.1)
    assert hit == pytest.approx(0.6, abs=0.01)
    assert error == pytest.approx(math.sqrt(hit * (1 - hit) / 1000))
    with pytest.raises(UnresolvedRate, match="10000 trials"):
        true_positive_rate(scores, scores, 0.001)


def test_equal_scores_give_no_advantage() -> None:
    scores = SeededSource(5, "null").words(10_000).astype(np.float64)
    hit, _ = true_positive_rate(scores, scores, 0.05)
    assert hit <= 0.05


@pytest.mark.parametrize("alpha", [0.0, 1.0, -1.0, math.nan])
def test_a_confidence_that_is_none_is_refused(alpha: float) -> None:
    with pytest.raises(BadParameter, match="alpha"):
        ceiling(1000, alpha=alpha)
