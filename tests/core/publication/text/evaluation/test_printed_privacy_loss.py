"""The paper's privacy loss as printed: what it shows, and that it is blind to copied texts."""

import math

import numpy as np
import pytest

from made_up_texts import SIZE, class_texts, documents_of
from noisefloor.errors import BadParameter
from noisefloor.publication.text.evaluation import largest_next, printed_privacy_loss


def test_the_loss_is_the_logarithm_of_the_ratio() -> None:
    found = printed_privacy_loss(np.array([0.5, 0.2, np.nan]), np.array([0.25, 0.4, 0.1]))
    assert found.losses == pytest.approx([math.log(2), -math.log(2)])
    assert found.mean == pytest.approx(0.0)
    assert found.mean_size == found.largest == pytest.approx(math.log(2))
    assert "no audit" in found.as_json()["label"]
    assert found.as_json()["inputs"] == 2


def test_the_largest_next_share_is_counted_within_texts() -> None:
    texts = documents_of([[1, 2, 1, 3, 1, 2], [1], [2]])
    found = largest_next(texts, 5)
    assert found[[1, 2, 3]] == pytest.approx([2 / 3, 1.0, 1.0])
    assert np.isnan(found[[0, 4]]).all()


def test_a_generator_that_copies_its_corpus_scores_zero() -> None:
    # Why it is no audit: all texts are published verbatim, and the loss against a neighbour that
    # lacks one of 300 texts is nearly nothing; a collapsed generator has none at all.
    corpus = class_texts(300, 1)
    copied = printed_privacy_loss(largest_next(corpus, SIZE), largest_next(corpus[1:], SIZE))
    assert copied.mean_size < 0.02
    collapsed = largest_next(documents_of([[1, 1, 1]] * 5), SIZE)
    assert printed_privacy_loss(collapsed, collapsed).largest == 0.0
    nothing = np.full(3, np.nan)
    assert printed_privacy_loss(nothing, nothing).as_json()["largest"] == 0.0


def test_what_is_no_probability_is_refused() -> None:
    with pytest.raises(BadParameter, match="of the shape"):
        printed_privacy_loss(np.ones(2), np.ones(3))
    for wrong in (0.0, 1.5):
        with pytest.raises(BadParameter, match="probabilities above 0"):
            printed_privacy_loss(np.array([0.5]), np.array([wrong]))
