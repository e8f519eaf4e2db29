"""Symmetric responses: Bayes' guess with a prior and ties, against other ways."""

import math

import numpy as np
import pytest

from noisefloor.adversary.audit.observations import likelihood_table, success_of
from noisefloor.adversary.records.channels import Channel, plurality
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import KaryResponse
from noisefloor.randomness import SeededSource
from statistics_of_tests import FALSE_ALARM, chi_square_p

PRIORS = [None, [0.7, 0.1, 0.15, 0.05], [0.97, 0.01, 0.01, 0.01], [0.5, 0.5, 0.0, 0.0]]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 30.0])
@pytest.mark.parametrize("prior", PRIORS, ids=["even", "skewed", "sure", "two"])
def test_the_success_is_the_sum_over_symbols_of_the_largest_joint_chance(
    epsilon: float, prior: list[float] | None
) -> None:
    response = KaryResponse(4, epsilon)
    found = Channel.of(response).success(prior)
    assert found == pytest.approx(
        success_of(likelihood_table(response, range(4)), prior), rel=1e-12
    )


@pytest.mark.parametrize("size", [2, 5, 60])
def test_without_a_prior_the_success_is_that_of_the_formula(size: int) -> None:
    e = math.exp(1.5)
    assert Channel.of(KaryResponse(size, 1.5)).success() == pytest.approx(e / (e + size - 1))


def test_a_guess_by_a_wrong_belief_is_right_less_often() -> None:
    channel, truth = Channel.of(KaryResponse(3, 0.5)), [0.8, 0.1, 0.1]
    assert channel.success([0.1, 0.8, 0.1], truth) < channel.success(truth)
    assert channel.success(truth, truth) == channel.success(truth)
    assert channel.hits(truth).tolist() == pytest.approx([1.0, 0.0, 0.0])


@pytest.mark.statistical
def test_ties_are_tossed_evenly(seed: int) -> None:
    # n = 30,000 ties of three; false alarm FALSE_ALARM. The twin: ties to the first.
    reports = np.tile([2, 0, 3], (30_000, 1))
    won = plurality(reports, 4, SeededSource(seed, "ties"))
    even = [1 / 3, 0.0, 1 / 3, 1 / 3]
    assert chi_square_p(np.bincount(won, minlength=4), even) > FALSE_ALARM
    assert chi_square_p([30_000, 0, 0, 0], even) < FALSE_ALARM


@pytest.mark.parametrize(("keep", "lie"), [(0.5, 0.5), (0.4, 0.6), (0.9, 0.3), (1.0, 0.0)])
def test_what_is_no_response_is_refused(keep: float, lie: float) -> None:
    with pytest.raises(BadParameter):
        Channel(2, keep, lie)
