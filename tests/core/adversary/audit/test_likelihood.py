"""Bayes-optimal guesses against their closed forms."""

import math

import numpy as np
import pytest

from noisefloor.adversary.audit.bayes import bayes_guess, majority_success, vector_success
from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import BinaryResponse, KaryResponse, UnaryEncoding
from noisefloor.privacy import Neighbours
from noisefloor.randomness import SeededSource
from statistics_of_tests import FALSE_ALARM, binomial_p


@pytest.mark.parametrize(("reports", "success"), [(1, 0.731), (7, 0.911), (30, 0.996)])
def test_fresh_responses_give_the_bit_away_as_predicted(reports: int, success: float) -> None:
    keep = math.e / (1 + math.e)
    assert majority_success(reports, keep) == pytest.approx(success, abs=5e-4)


def test_majority_of_fair_bits_is_a_fair_bit() -> None:
    for reports in range(1, 12):
        assert majority_success(reports, 0.5) == pytest.approx(0.5)
    with pytest.raises(BadParameter, match="reports"):
        majority_success(0, 0.7)


@pytest.mark.statistical
def test_guessing_bits_over_periods_succeeds_as_often_as_the_closed_form(seed: int) -> None:
    # n = 40,000 users, 7 periods; false alarm FALSE_ALARM. The twin: one period fewer.
    mechanism, source = BinaryResponse(1.0), SeededSource(seed, "periods")
    truth = source.child("truth").bernoulli(ONE // 2, 40_000)
    periods = [mechanism.randomise(truth, source.child(day)) for day in range(7)]
    right = int(
        np.count_nonzero((bayes_guess(mechanism, periods, [False, True]).candidate == 1) == truth)
    )
    keep = 1 - mechanism.flip / ONE
    assert binomial_p(right, 40_000, majority_success(7, keep)) > FALSE_ALARM
    assert binomial_p(right, 40_000, majority_success(5, keep)) < FALSE_ALARM


@pytest.mark.statistical
def test_two_profiles_are_distinguished_as_their_distance_predicts(seed: int) -> None:
    # n = 40,000 users; false alarm FALSE_ALARM. Profiles at Hamming distance 3.
    mechanism = UnaryEncoding.symmetric(5, 1.0, neighbours=Neighbours.BIT)
    profiles = [np.array([1, 1, 1, 0, 0]) == 1, np.array([0, 0, 0, 0, 0]) == 1]
    source = SeededSource(seed, "profiles")
    which = source.child("truth").bernoulli(ONE // 2, 40_000).astype(np.intp)
    reports = mechanism.randomise(np.array(profiles)[which], source.child("reports"))
    right = int(np.count_nonzero(bayes_guess(mechanism, [reports], profiles).candidate == which))
    keep = mechanism.stay / ONE
    assert binomial_p(right, 40_000, majority_success(3, keep)) > FALSE_ALARM
    assert binomial_p(right, 40_000, majority_success(1, keep)) < FALSE_ALARM


def test_the_posterior_is_that_of_bayes() -> None:
    mechanism = KaryResponse(4, 2.0)
    found = bayes_guess(mechanism, [np.array([0, 3])], range(4), prior=[0.7, 0.1, 0.1, 0.1])
    keep, lie = mechanism.keep / ONE, mechanism.lie / ONE
    first = 0.7 * keep / (0.7 * keep + 0.3 * lie)
    assert found.candidate[0] == 0
    assert found.posterior[0] == pytest.approx(first)
    other = max(0.7 * lie, 0.1 * keep) / (0.7 * lie + 0.1 * keep + 0.2 * lie)
    assert found.posterior[1] == pytest.approx(other)


def test_a_strong_prior_wins_over_a_weak_report() -> None:
    # Only delivered ads can be clicked: a zero prior is never guessed.
    mechanism = BinaryResponse(1.0)
    found = bayes_guess(mechanism, [np.array([True, False])], [False, True], prior=[1.0, 0.0])
    assert found.candidate.tolist() == [0, 0]
    assert vector_success(3, 0.9) == pytest.approx(0.729)


@pytest.mark.parametrize("prior", [[0.5, 0.6], [1.0], [-0.5, 1.5]])
def test_a_prior_that_is_none_is_refused(prior: list[float]) -> None:
    with pytest.raises(BadParameter, match="prior"):
        bayes_guess(BinaryResponse(1.0), [np.array([True])], [False, True], prior=prior)
