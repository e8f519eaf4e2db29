"""Outcomes: counts, intervals that cover, and truths drawn by their prior."""

import numpy as np
import pytest

from noisefloor.adversary.audit.outcome import AttackOutcome, draw_truth, score
from noisefloor.errors import BadParameter
from noisefloor.randomness import SeededSource
from statistics_of_tests import FALSE_ALARM, chi_square_p, tilted


def test_an_outcome_counts_what_was_right() -> None:
    outcome = score(np.array([0, 1, 1, 2]), np.array([0, 1, 0, 2]), baseline=0.5, bound=0.9)
    assert (outcome.right, outcome.n, outcome.success) == (3, 4, 0.75)
    low, high = outcome.interval
    # Clopper-Pearson for 3 of 4, from the binomial tails themselves.
    assert 4 * low**3 * (1 - low) + low**4 == pytest.approx(0.025)
    assert 1 - high**4 == pytest.approx(0.025)
    assert outcome.is_covered


def test_an_outcome_without_games_is_refused() -> None:
    with pytest.raises(BadParameter, match="right"):
        AttackOutcome(0, 0, 0.5, 1.0)
    with pytest.raises(BadParameter, match="right"):
        AttackOutcome(5, 4, 0.5, 1.0)
    with pytest.raises(BadParameter, match="guessed"):
        score(np.zeros(3, dtype=int), np.zeros(2, dtype=int), baseline=0.5, bound=1.0)


@pytest.mark.statistical
def test_truths_follow_their_prior(seed: int) -> None:
    # n = 100,000; false alarm FALSE_ALARM. The twin: a prior 10 % off.
    prior = np.array([0.1, 0.4, 0.0, 0.3, 0.2])
    drawn = draw_truth(prior, 100_000, SeededSource(seed, "truth"))
    counts = np.bincount(drawn, minlength=5)
    assert counts[2] == 0
    assert chi_square_p(counts, prior) > FALSE_ALARM
    assert chi_square_p(counts, tilted(prior, 1.1)) < FALSE_ALARM
