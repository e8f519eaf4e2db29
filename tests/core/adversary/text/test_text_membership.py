"""Membership: copied texts are found, unrelated ones are not, private ones keep to the curve."""

import numpy as np
import pytest

from made_up_texts import SIZE, class_texts, shuffled
from noisefloor.accounting import true_positive_rate
from noisefloor.adversary.text import (
    attack_membership,
    likelihood_scores,
    nearest_scores,
    occurrence_scores,
)
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.publication.text.evaluation import residual_idf
from noisefloor.randomness import SeededSource

N = 600
PROMISED = Guarantee(1.0, Neighbours.DOCUMENT)


@pytest.mark.statistical
@pytest.mark.parametrize("score", ["nearest", "runs"])
def test_copied_texts_are_found_and_a_null_is_not(seed: int, score: str) -> None:
    # 600 targets, each a member by a fair random bit. Of a null the one-run bound is above 0
    # with probability 1e-6 at most.
    targets = class_texts(N, seed, "targets")
    members = SeededSource(seed, "members").generator().random(N) < 0.5
    reference = class_texts(N, seed, "reference")
    weights = residual_idf(reference, SIZE)
    for is_copied in (True, False):
        # The null: texts of the same population that nobody owns.
        released = targets[members] if is_copied else class_texts(N // 2, seed, "null")
        scores = (
            nearest_scores(targets, released, weights, reference)
            if score == "nearest"
            else occurrence_scores(targets, released, reference=reference)
        )
        found = attack_membership(scores, members, PROMISED, is_fair=True, alpha=1e-6)
        assert found.bound is not None
        if is_copied:
            assert found.auc > 0.9
            assert found.bound.epsilon > PROMISED.epsilon
            assert (found.roc.true_positive_rate > found.allowed).any()
            assert found.interval[0] > found.area_bound
        else:
            assert found.bound.epsilon == 0.0
            assert abs(found.auc - 0.5) < np.sqrt(np.log(2e6) / (2 * 250))


def test_likelihoods_are_a_piece_and_less_those_of_a_reference() -> None:
    lengths = np.array([2, 4, 0])
    found = likelihood_scores(np.array([-2.0, -8.0, 0.0]), lengths)
    assert found.tolist() == [-1.0, -2.0, 0.0]
    found = likelihood_scores(np.array([-2.0, -8.0, 0.0]), lengths, np.array([-4.0, -4.0, 0.0]))
    assert found.tolist() == [1.0, -1.0, 0.0]


def test_the_curve_stands_beside_what_is_allowed() -> None:
    scores = np.arange(40.0)
    members = scores >= 20
    found = attack_membership(scores, members, PROMISED)
    assert found.bound is None
    assert found.auc == 1.0
    rates = found.roc.false_positive_rate
    assert found.allowed == pytest.approx(true_positive_rate(rates, 1.0))
    # Two documents that change places are two steps.
    assert found.area_bound == pytest.approx(np.exp(2) / (1 + np.exp(2)))
    written = found.as_json()
    assert written["tpr_at_0.01"] is None  # 20 others do not resolve it
    assert written["allowed_at_0.01"] == pytest.approx(0.01 * np.e)


def test_nearness_to_the_text_itself_is_one() -> None:
    texts = class_texts(20, 1)
    weights = residual_idf(texts, SIZE)
    assert nearest_scores(texts, texts, weights) == pytest.approx(np.ones(20), abs=1e-6)
    assert nearest_scores(texts, shuffled(texts, 1), weights).max() < 1
    with pytest.raises(BadParameter, match="published"):
        nearest_scores(texts, texts[:0], weights)
    with pytest.raises(BadParameter, match="a boolean for each score"):
        attack_membership(np.zeros(3), np.zeros(3), PROMISED)  # type: ignore[arg-type]
