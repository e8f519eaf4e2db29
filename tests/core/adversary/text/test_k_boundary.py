"""The boundary of k: without noise the k-th document is always seen, with noise it is not."""

import math

import numpy as np
import pytest

from noisefloor.adversary.text import Forms, attack_k_boundary, guess_presence
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import KaryResponse
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import SeededSource
from statistics_of_tests import FALSE_ALARM, binomial_p

CLAIMED = Guarantee(1.0, Neighbours.DOCUMENT)
K = 5


def forms(count: int) -> Forms:
    """Write a city as itself in k documents or more, else as its country; another city always."""
    return {"Oslo": "Oslo" if count >= K else "Norway", "Rome": "Rome"}


def test_the_kth_document_is_seen_whatever_k_is() -> None:
    truth = SeededSource(1, "truth").generator().random(200) < 0.5
    released = [forms(K - 1 + int(bit)) for bit in truth]
    inside, outside = [forms(K)] * 200, [forms(K - 1)] * 200
    found = attack_k_boundary(released, truth, inside, outside, CLAIMED)
    assert found.success == found.closed_form == 1.0
    assert found.interval[0] > found.bound == pytest.approx(math.e / (1 + math.e))


def test_far_from_the_boundary_nothing_is_seen() -> None:
    truth = np.array([True, False, False])
    away = [forms(9)] * 3
    found = attack_k_boundary(away, truth, away, away, CLAIMED)
    assert (found.right, found.closed_form) == (2, 0.5)


@pytest.mark.statistical
def test_forms_by_randomised_counts_keep_the_bound_and_reach_it(seed: int) -> None:
    # 3,000 games. The decision at the boundary is a binary response of epsilon 1, whose best
    # guess is right with probability e / (1 + e): exact binomial at FALSE_ALARM. The twin is
    # epsilon 1.5.
    truth = SeededSource(seed, "truth").generator().random(3000) < 0.5
    inside, outside = [forms(K)] * 3000, [forms(K - 1)] * 3000
    for epsilon, is_as_claimed in ((1.0, True), (1.5, False)):
        kept = KaryResponse(2, epsilon=epsilon).randomise(
            truth.astype(np.int64), SeededSource(seed, "noise", f"{epsilon:g}")
        )
        released = [forms(K if bit else K - 1) for bit in kept]
        found = attack_k_boundary(released, truth, inside, outside, CLAIMED, is_exact=False)
        p_value = binomial_p(found.right, found.n, found.bound)
        assert (p_value > FALSE_ALARM) == is_as_claimed
        assert found.closed_form is None


def test_the_score_counts_entities_that_differ() -> None:
    inside: Forms = {"a": "a", "b": "b", "c": "c"}
    outside: Forms = {"a": "*", "b": "*", "c": "c"}
    assert guess_presence(inside, inside, outside) == 2
    assert guess_presence(outside, inside, outside) == -2
    assert guess_presence({"a": "a", "b": "*"}, inside, outside) == 0
    assert guess_presence({}, {"a": "a"}, {}) == -1  # a form that is missing agrees with none


def test_games_of_unlike_number_are_refused() -> None:
    with pytest.raises(BadParameter, match="one for each game"):
        attack_k_boundary([], np.array([], dtype=np.bool_), [], [], CLAIMED)
    with pytest.raises(BadParameter, match="one for each game"):
        attack_k_boundary([forms(1)], np.array([True]), [forms(1)], [], CLAIMED)
