"""The bound of one run, checked exactly: against distributions that are known, over all their
outcomes."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from noisefloor.adversary.audit.one_run import (
    MembershipGuesses,
    guess_members,
    has_power,
    one_run_bound,
)
from noisefloor.errors import BadParameter
from noisefloor.randomness import SeededSource

ALPHA = 0.05


def response_chance(epsilon: float) -> float:
    return math.exp(epsilon) / (1 + math.exp(epsilon))


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("made", [1, 7, 40])
def test_the_p_value_of_pure_privacy_is_the_binomial_tail(epsilon: float, made: int) -> None:
    for right in range(made + 1):
        tail = binom.sf(right - 1, made, response_chance(epsilon))
        assert MembershipGuesses(right, made, 50).p_value(epsilon) == pytest.approx(tail, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0, 5.0])
@pytest.mark.parametrize("made", [10, 100])
def test_randomised_response_is_wronged_with_alpha_at_most(epsilon: float, made: int) -> None:
    distribution = binom.pmf(np.arange(made + 1), made, response_chance(epsilon))
    bounds = np.array([MembershipGuesses(v, made, made).epsilon(ALPHA) for v in range(made + 1)])
    wronged = distribution[bounds > epsilon + 1e-5].sum()
    assert wronged <= ALPHA
    # The twin: who always is right is found out, where so few guesses can prove so much.
    assert (bounds[-1] > epsilon) == (response_chance(epsilon) ** made < ALPHA)


@pytest.mark.parametrize("delta", [1e-4, 1e-2])
@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_delta_covers_a_mechanism_that_at_times_tells_all(epsilon: float, delta: float) -> None:
    made = 30
    chance = response_chance(epsilon)
    for right in range(1, made + 1):
        p_value = MembershipGuesses(right, made, made).p_value(epsilon, delta)
        # With delta everything is told: (epsilon, delta) in each draw.
        assert p_value >= delta + (1 - delta) * binom.sf(right - 1, made, chance) - 1e-12
        # With delta each draw by itself is told.
        apart = binom.sf(right - 1, made, delta + (1 - delta) * chance)
        assert p_value >= apart - 1e-12
        if binom.sf(right - 1, made, chance) < delta / 2:
            # Without the term the first of the two would be wronged.
            assert MembershipGuesses(right, made, made).p_value(epsilon) < delta


def test_the_term_in_delta_is_that_of_the_theorem() -> None:
    right, made, canaries, epsilon, delta = 17, 20, 60, 0.7, 1e-4
    tails = binom.sf(np.arange(-1, made), made, response_chance(epsilon))
    worst = max((tails[right - i] - tails[right]) / i for i in range(1, right + 1))
    expected = tails[right] + 2 * canaries * delta * worst
    assert MembershipGuesses(right, made, canaries).p_value(epsilon, delta) == pytest.approx(
        expected
    )


def test_the_bound_rises_with_the_canaries_and_stays_below_the_truth() -> None:
    epsilon = 1.5
    found = []
    for canaries in (50, 500, 5_000, 50_000):
        right = math.floor(canaries * response_chance(epsilon))
        found.append(MembershipGuesses(right, canaries, canaries).epsilon(ALPHA))
    assert found == sorted(found)
    assert found[-1] < epsilon < found[-1] + 0.05


def test_a_bound_comes_with_its_ceiling() -> None:
    bound = MembershipGuesses(90, 100, 400).bound(ALPHA, 1e-6)
    assert 0 < bound.epsilon < bound.ceiling
    assert (bound.confidence, bound.trials) == (0.95, 100)
    assert MembershipGuesses(100, 100, 400).bound(ALPHA, 1e-6).epsilon == bound.ceiling


def test_highest_and_lowest_scores_are_guessed() -> None:
    scores = np.array([0.1, 5.0, -3.0, 0.2, 4.0, -2.0])
    members = np.array([False, True, False, True, False, True])
    assert guess_members(scores, members, 4) == MembershipGuesses(2, 4, 6)
    assert guess_members(scores, members, 1) == MembershipGuesses(1, 1, 6)
    assert guess_members(scores, members, 6).made == 6


def test_half_of_the_canaries_choose_the_number_of_guesses_and_the_others_are_guessed() -> None:
    # In the first half only the eight highest and the eight lowest scores are right, between them
    # every second one; in the second half all are.
    scores = np.arange(64.0)
    weak = np.arange(64) % 2 == 1
    weak[:8], weak[-8:] = False, True
    perfect = scores >= 32
    found = one_run_bound(np.tile(scores, 2), np.append(weak, perfect), alpha=ALPHA)
    assert found.trials < 24
    assert (
        found.epsilon
        == found.ceiling
        == MembershipGuesses(found.trials, found.trials, 64).epsilon(ALPHA)
    )
    twin = one_run_bound(np.tile(scores, 2), np.append(perfect, weak), alpha=ALPHA)
    # All 64 are guessed: the 16 at the ends are right, and half of the 48 between them.
    assert twin == MembershipGuesses(40, 64, 64).bound(ALPHA)


def test_of_numbers_that_prove_as_much_the_largest_is_chosen() -> None:
    scores, members = np.arange(128.0), np.arange(128) % 2 == 1
    assert one_run_bound(scores, members, alpha=ALPHA).trials == 64


@pytest.mark.statistical
def test_no_leak_means_no_bound_and_a_leak_is_found() -> None:
    """A null of 20,000 canaries is wronged with probability 1e-6; a response at 1 is found."""
    source = SeededSource(3, "null")
    members = source.child("coins").bernoulli(1 << 63, 20_000)
    scores = source.child("scores").normals(20_000).astype(np.float64)
    assert one_run_bound(scores, members, alpha=1e-6).epsilon == 0
    is_right = source.child("told").bernoulli(int(response_chance(1.0) * 2**64), 20_000)
    found = one_run_bound((members == is_right).astype(np.float64), members, alpha=1e-6)
    assert 0.7 < found.epsilon < 1.0
    assert found.trials <= 10_000


def test_counts_that_cannot_be_are_refused() -> None:
    for right, made, canaries in ((5, 4, 10), (-1, 4, 10), (1, 11, 10), (0, 0, 10)):
        with pytest.raises(BadParameter):
            MembershipGuesses(right, made, canaries)
    with pytest.raises(BadParameter, match="scores"):
        one_run_bound(np.array([np.nan, 1.0]), np.array([True, False]), alpha=0.1)
    with pytest.raises(BadParameter, match="members"):
        guess_members(np.zeros(3), np.array([True, False]), 1)


@pytest.mark.parametrize(
    ("alpha", "delta", "expected"),
    [(1e-5, 0.0, True), (1e-5, 1e-6, False), (1e-5, 1e-7, True), (1e-6, 1e-6, False)],
)
def test_an_audit_has_power_where_delta_is_zero_or_far_below_alpha(
    alpha: float, delta: float, expected: bool
) -> None:
    assert has_power(alpha, delta) is expected


def test_without_power_many_guesses_that_are_mostly_right_prove_nothing() -> None:
    """11,000 right of 20,000 is epsilon 0.2: found at delta 0, and not at a tenth of alpha."""
    guesses = MembershipGuesses(11_000, 20_000, 20_000)
    assert guesses.epsilon(1e-5) > 0.1
    assert guesses.epsilon(1e-5, 1e-6) == 0
    assert guesses.epsilon(1e-5, 1e-8) > 0.05
