"""Linking devices: the closed form, its null, a planted leak, and the bound."""

import math

import numpy as np
import pytest

from noisefloor.adversary.ads.linking import (
    LinkingGame,
    assignment,
    best_match,
    linking_success,
    pair_ratios,
)
from noisefloor.adversary.audit.observations import likelihood_table
from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import KaryResponse, NoisyMax, UnaryEncoding
from noisefloor.randomness import SeededSource
from statistics_of_tests import FALSE_ALARM, binomial_p

GROUPS = 20_000


def kary_success(mechanism: KaryResponse, devices: int) -> float:
    """One request each: match if the reports are equal, else toss. Derived for this alone."""
    keep, lie = mechanism.keep / ONE, float(mechanism.lie / ONE)
    equal, chance = keep**2 + (mechanism.size - 1) * lie**2, 1 / mechanism.size
    hit = equal * (1 - (1 - chance) ** devices) / (devices * chance)
    return hit + (1 - equal) * (1 - chance) ** (devices - 1) / devices


@pytest.mark.parametrize("devices", [2, 5, 50])
def test_the_closed_form_is_that_of_one_request(devices: int) -> None:
    mechanism = KaryResponse(7, 2.0)
    table = likelihood_table(mechanism, range(7))
    found = linking_success(table, None, devices)
    assert found == pytest.approx(kary_success(mechanism, devices), rel=1e-9)
    assert linking_success(table, None, devices, table) == pytest.approx(found)
    # Without noise and with profiles enough, it tends to 1; without any information, 1 / N.
    assert linking_success(np.eye(1000), None, 2) == pytest.approx(1, abs=1e-3)
    assert linking_success(np.full((3, 4), 0.25), None, devices) == pytest.approx(1 / devices)


@pytest.mark.statistical
@pytest.mark.parametrize("requests", [1, 4])
def test_devices_are_linked_as_often_as_the_closed_form_says(requests: int, seed: int) -> None:
    # 20,000 groups of 4; false alarm FALSE_ALARM. The twin: chance.
    game = LinkingGame(KaryResponse(5, 1.5), range(5), 4, requests)
    outcome = game.play(GROUPS, SeededSource(seed, "link", requests))
    assert outcome.closed_form is not None
    assert binomial_p(outcome.right, outcome.n, outcome.closed_form) > FALSE_ALARM
    assert binomial_p(outcome.right, outcome.n, 1 / 4) < FALSE_ALARM
    assert outcome.closed_form <= outcome.bound


@pytest.mark.statistical
def test_rows_of_scores_and_click_vectors_link_too(seed: int) -> None:
    # 10,000 groups of 3; false alarm FALSE_ALARM. The twin: chance.
    rows = np.where(np.eye(4, dtype=np.bool_), 1.0, 0.0)
    requests = LinkingGame(NoisyMax.laplace(4, 4.0), rows, 3, 2, prior=[0.4, 0.3, 0.2, 0.1])
    clicks = LinkingGame(UnaryEncoding.optimised(4, 3.0), np.eye(4, dtype=np.bool_), 3)
    for name, game in (("requests", requests), ("clicks", clicks)):
        outcome = game.play(10_000, SeededSource(seed, name))
        assert outcome.closed_form is not None
        assert binomial_p(outcome.right, outcome.n, outcome.closed_form) > FALSE_ALARM
        assert binomial_p(outcome.right, outcome.n, 1 / 3) < FALSE_ALARM
        assert outcome.interval[0] <= outcome.bound


@pytest.mark.statistical
def test_independent_profiles_cannot_be_linked(seed: int) -> None:
    # The null. 20,000 groups of 5; false alarm FALSE_ALARM; both ways of matching.
    game = LinkingGame(KaryResponse(5, 3.0), range(5), 5, 3, is_null=True)
    source = SeededSource(seed, "null")
    best = game.play(GROUPS, source.child("best"))
    assert best.closed_form == 1 / 5
    assert binomial_p(best.right, best.n, 1 / 5) > FALSE_ALARM
    whole = game.play(GROUPS, source.child("whole"), is_assigned=True)
    assert binomial_p(whole.right, whole.n, 1 / 5) > FALSE_ALARM


def test_without_noise_nearly_all_are_linked_and_assignment_links_more(seed: int) -> None:
    # The planted leak: epsilon 30, 2,000 profiles, groups of 10: a tie is rare.
    game = LinkingGame(KaryResponse(2_000, 30.0), range(2_000), 10)
    source = SeededSource(seed, "leak")
    outcome = game.play(1_000, source.child("leak"))
    assert outcome.interval[0] > 0.98 and outcome.closed_form == pytest.approx(0.998, abs=1e-3)
    noisy = LinkingGame(KaryResponse(40, 4.0), range(40), 10, 2)
    best = noisy.play(2_000, source.child("some"))
    with_all = noisy.play(2_000, source.child("others"), is_assigned=True)
    assert with_all.interval[0] > best.success - 0.01
    assert with_all.bound == 1.0 and with_all.closed_form is None


def test_ratios_are_those_of_bayes_and_assignment_names_nobody_twice() -> None:
    mechanism, prior = KaryResponse(3, 1.0), np.array([0.5, 0.3, 0.2])
    first, second = np.array([[[0], [0]]]), np.array([[[0], [2]]])
    ratios = pair_ratios(mechanism, first, second, range(3), prior)
    table = likelihood_table(mechanism, range(3))
    both = (prior * table[:, 0] * table[:, 2]).sum()
    alone = (prior @ table[:, 0]) * (prior @ table[:, 2])
    assert ratios[0, 0, 1] == pytest.approx(both / alone)
    assert best_match(ratios).tolist() == [[0, 0]]
    assert sorted(assignment(ratios)[0].tolist()) == [0, 1]
    assert math.isfinite(float(assignment(np.zeros((1, 2, 2)))[0, 0]))
    with pytest.raises(BadParameter, match="prior"):
        pair_ratios(mechanism, first, second, range(3), [0.5, 0.5, 0.0])
