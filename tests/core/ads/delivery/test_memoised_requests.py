"""Kept requests: drawn once, used again, ranked by the scores of the day."""

import numpy as np
import pytest

from noisefloor.ads.delivery.ad_request import AdDelivery, AdSelection, MemoisedRequests
from noisefloor.errors import StreamReopened
from noisefloor.randomness import SeededSource


def test_a_kept_slate_is_ranked_by_the_scores_of_the_day() -> None:
    delivery = AdDelivery(6, 1.0, AdSelection.SLATE, slate=3)
    drawn = SeededSource(1, "scores").generator()
    today, tomorrow = drawn.random((200, 6)), drawn.random((200, 6))
    kept = MemoisedRequests.draw(delivery, today, SeededSource(1, "coins"))
    before = kept.requests.copy()
    for scores in (today, tomorrow):
        shown = kept.shown(scores)
        assert (kept.requests == shown[:, None]).any(axis=1).all()
        assert np.array_equal(kept.ranked(scores, 2)[:, 0], shown)
    assert not np.array_equal(kept.shown(today), kept.shown(tomorrow))
    assert np.array_equal(kept.requests, before)
    assert kept.guarantee() == delivery.guarantee()


def test_a_kept_ad_is_the_same_whatever_the_scores_become() -> None:
    delivery = AdDelivery(6, 1.0, AdSelection.ARGMAX)
    scores = SeededSource(1, "scores").generator().random((50, 6))
    kept = MemoisedRequests.draw(delivery, scores, SeededSource(1, "coins"))
    assert np.array_equal(kept.shown(scores), kept.shown(1 - scores))


def test_each_user_keeps_the_request_that_was_drawn_for_that_user() -> None:
    delivery = AdDelivery(6, 20.0, AdSelection.ARGMAX)  # the favourite, but once in 10**8 times
    scores = np.eye(6)[[3, 0, 5, 2]]
    kept = MemoisedRequests.draw(delivery, scores, SeededSource(1, "coins"))
    assert kept.requests.tolist() == [3, 0, 5, 2]


def test_drawing_again_needs_draws_of_its_own() -> None:
    delivery, source = AdDelivery(6, 1.0, AdSelection.TOP_SET), SeededSource(1, "coins")
    scores = np.zeros((5, 6))
    MemoisedRequests.draw(delivery, scores, source)
    with pytest.raises(StreamReopened):
        MemoisedRequests.draw(delivery, scores, source)
