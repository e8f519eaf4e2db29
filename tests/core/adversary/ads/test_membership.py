"""Membership in training: exact ratio, exact and Gaussian success, leak, null, bound."""

import math

import numpy as np
import pytest

from noisefloor.adversary.ads.membership import (
    MembershipGame,
    exact_success,
    expected_success,
    log_ratios,
)
from noisefloor.adversary.audit.observations import (
    compositions,
    counts_distribution,
    likelihood_table,
)
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import KaryResponse, SampledBit
from noisefloor.randomness import SeededSource
from statistics_of_tests import FALSE_ALARM, binomial_p

GAMES = 30_000
MEMBER, POPULATION = np.array([0.5, 0.2, 0.2, 0.1]), np.array([0.1, 0.4, 0.3, 0.2])


def test_the_ratio_is_that_of_the_two_distributions_of_tallies() -> None:
    # Listed: four others and one report of the member, against five others.
    tallies = compositions(5, 4)
    absent = counts_distribution(POPULATION[None], tallies)[0]
    present = np.zeros(len(tallies))
    for kind in range(4):
        others = tallies.copy()
        others[:, kind] -= 1
        possible = others[:, kind] >= 0
        chance = counts_distribution(POPULATION[None], others[possible])[0]
        present[possible] += MEMBER[kind] * chance
    assert present.sum() == pytest.approx(1.0)
    found = log_ratios(tallies[:, None], MEMBER[None], POPULATION[None])
    assert np.exp(found) == pytest.approx(present / absent, rel=1e-9)
    exact = exact_success(MEMBER, POPULATION, 5)
    assert exact == pytest.approx(np.maximum(present, absent).sum() / 2, rel=1e-9)


def test_alone_the_member_is_identified_by_the_total_variation() -> None:
    distance = np.abs(MEMBER - POPULATION).sum() / 2
    assert exact_success(MEMBER, POPULATION, 1) == pytest.approx((1 + distance) / 2)
    assert exact_success(POPULATION, POPULATION, 3) == pytest.approx(0.5)
    with pytest.raises(BadParameter, match="population"):
        log_ratios(np.ones((1, 2)), np.array([[0.5, 0.5]]), np.array([[1.0, 0.0]]))


def test_the_gaussian_form_is_the_limit_of_the_exact_one() -> None:
    member, population = np.array([0.7, 0.3]), np.array([0.5, 0.5])
    gaps = []
    for n in (10, 100, 1_000, 10_000):
        exact = exact_success(member, population, n)
        assert exact is not None
        gaps.append(abs((exact - 0.5) / (expected_success(member, population, n) - 0.5) - 1))
    assert gaps[-1] < 0.01
    # The advantage falls as 1 / sqrt(n).
    far = expected_success(member, population, 10**8) - 0.5
    assert far == pytest.approx((expected_success(member, population, 10**6) - 0.5) / 10, rel=1e-3)


@pytest.mark.statistical
def test_members_are_identified_as_often_as_the_exact_form_says(seed: int) -> None:
    # 30,000 games of 5 reports, one round; false alarm FALSE_ALARM. The twin: 50 reports.
    people = np.array([[-1.0, -0.5], [-1.0, 0.5], [-0.5, -1.0]])
    game = MembershipGame(SampledBit(2, 3.0), np.ones((1, 2)), people, 5)
    outcome = game.play(GAMES, SeededSource(seed, "members"))
    assert outcome.closed_form is not None
    assert binomial_p(outcome.right, outcome.n, outcome.closed_form) > FALSE_ALARM
    crowd = MembershipGame(game.mechanism, game.target, people, 50)
    assert binomial_p(outcome.right, outcome.n, crowd.closed_form) < FALSE_ALARM
    assert outcome.closed_form <= outcome.bound


@pytest.mark.statistical
def test_rounds_add_up_as_the_gaussian_form_says(seed: int) -> None:
    # 20,000 games of 40 reports, 4 rounds; the approximation is good to 1 point.
    people = np.array([[-1.0, 0.0], [0.0, -1.0]])
    game = MembershipGame(SampledBit(2, 2.0), np.ones((4, 2)), people, 40)
    outcome = game.play(20_000, SeededSource(seed, "rounds"))
    low, high = outcome.interval
    assert low - 0.01 < game.closed_form < high + 0.01
    once = MembershipGame(game.mechanism, game.target[:1], people, 40)
    assert outcome.interval[0] > once.closed_form
    assert outcome.interval[0] <= outcome.bound


@pytest.mark.statistical
def test_few_people_without_noise_give_a_member_away_and_a_twin_does_not(seed: int) -> None:
    # The planted leak: epsilon 30, three people. The null: the target is like everybody.
    source, people = SeededSource(seed, "leak"), np.array([[-1.0]])
    leak = MembershipGame(SampledBit(1, 30.0), np.ones((1, 1)), people, 3)
    assert leak.play(2_000, source.child("leak")).interval[0] > 0.99
    null = MembershipGame(SampledBit(1, 1.0), people, people, 3)
    outcome = null.play(GAMES, source.child("null"))
    assert null.closed_form == pytest.approx(0.5)
    assert binomial_p(outcome.right, outcome.n, 0.5) > FALSE_ALARM


@pytest.mark.statistical
def test_impressions_tell_membership_too(seed: int) -> None:
    # 30,000 games; false alarm FALSE_ALARM. The twin: a draw.
    game = MembershipGame(KaryResponse(4, 2.0), np.array([0]), np.array([1, 2, 3]), 4)
    outcome = game.play(GAMES, SeededSource(seed, "impressions"))
    assert outcome.closed_form is not None
    assert binomial_p(outcome.right, outcome.n, outcome.closed_form) > FALSE_ALARM
    assert binomial_p(outcome.right, outcome.n, 0.5) < FALSE_ALARM


def test_in_a_crowd_the_expected_advantage_is_tiny() -> None:
    mechanism = SampledBit(60, 0.8)
    member = np.repeat(likelihood_table(mechanism, [np.ones(60)]), 10, axis=0)
    population = np.repeat(likelihood_table(mechanism, [np.zeros(60)]), 10, axis=0)
    advantage = 2 * expected_success(member, population, 1_000_000) - 1
    # chi-square of one round is tanh(epsilon / 2)**2: the coordinate says nothing.
    d = math.sqrt(10 * math.tanh(0.4) ** 2 / 1e6)
    assert advantage == pytest.approx(math.erf(d / 2 / math.sqrt(2)), rel=1e-6)
    assert advantage < 1e-3
