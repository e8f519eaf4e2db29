"""Membership: copied texts are found, unrelated ones are not, private ones keep to the curve."""

import numpy as np
import pytest
from scipy.stats import norm

from made_up_texts import LENGTH, SIZE, class_texts, documents_of, shuffled
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


def test_gaussian_privacy_allows_less_where_both_are_known() -> None:
    members = np.arange(40) >= 20
    found = attack_membership(np.arange(40.0), members, PROMISED, mu=0.5)
    rates = np.array([0.0, 0.01, 0.3, 1.0])
    expected = np.minimum(true_positive_rate(rates, 1.0), norm.cdf(norm.ppf(rates) + 0.5))
    assert found.allowed_at(rates) == pytest.approx(expected)
    assert found.as_json()["allowed_at_0.01"] < 0.01 * np.e + 1e-12
    assert found.allowed_at(0.3) < true_positive_rate(0.3, 1.0)


def test_common_texts_are_near_to_everything_unless_a_reference_says_so() -> None:
    # Half of all texts are one and the same: near to what was published, members or not.
    targets, reference = class_texts(40, 1), class_texts(40, 2)
    common = np.where(np.arange(40) < 20, 0, np.arange(40))
    targets = targets[common]
    weights = residual_idf(reference, SIZE)
    bare = nearest_scores(targets, targets[19:30], weights)
    assert bare[:30] == pytest.approx(np.ones(30), abs=1e-6)
    both = reference[np.arange(39)]
    known = documents_of(
        [*both.pieces.reshape(-1, LENGTH).tolist(), targets.pieces[:LENGTH].tolist()]
    )
    calibrated = nearest_scores(targets, targets[19:30], weights, known)
    assert calibrated[:20] == pytest.approx(np.zeros(20), abs=1e-6)
    assert calibrated[20:30].min() > 0.05


def test_nearness_to_the_text_itself_is_one() -> None:
    texts = class_texts(20, 1)
    weights = residual_idf(texts, SIZE)
    assert nearest_scores(texts, texts, weights) == pytest.approx(np.ones(20), abs=1e-6)
    assert nearest_scores(texts, shuffled(texts, 1), weights).max() < 1
    with pytest.raises(BadParameter, match="published"):
        nearest_scores(texts, texts[:0], weights)
    with pytest.raises(BadParameter, match="a boolean for each score"):
        attack_membership(np.zeros(3), np.zeros(3), PROMISED)  # type: ignore[arg-type]
