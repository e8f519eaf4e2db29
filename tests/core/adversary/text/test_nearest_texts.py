"""Linkage by nearness: rewritten texts are linked, independent ones alarm as often as stated."""

import numpy as np
import pytest

from made_up_texts import SIZE, class_texts, documents_of, shuffled
from noisefloor.adversary.text import link_nearest
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.publication.text import Documents
from noisefloor.publication.text.evaluation import residual_idf
from noisefloor.randomness import SeededSource
from statistics_of_tests import FALSE_ALARM

CLAIMED = Guarantee(1.0, Neighbours.DOCUMENT)


def partly_copied(texts: Documents, seed: int, share: float) -> Documents:
    """Return texts with a share of their pieces as they are, the rest from other texts."""
    draw = SeededSource(seed, "rewritten").generator()
    kept = draw.random(len(texts.pieces)) < share
    pieces = np.where(kept, texts.pieces, shuffled(texts, seed).pieces).astype(np.int32)
    return Documents(pieces, texts.offsets, texts.labels)


def test_texts_that_share_half_of_their_pieces_are_linked() -> None:
    texts = class_texts(200, 1)
    weights = residual_idf(texts, SIZE)
    source = SeededSource(1, "links")
    found = link_nearest(texts, partly_copied(texts, 1, 0.5), weights, CLAIMED, source, 199)
    assert found.p_value == 1 / 200
    assert found.links.success > 0.3
    assert found.links.baseline == 2 / 200
    assert found.links.bound == pytest.approx(np.exp(4) / (np.exp(4) + 99))
    assert found.paired > found.unpaired
    assert found.as_json()["linked"] == found.links.success


@pytest.mark.parametrize("counts", [(4, 4, 4), (1, 2, 30), (1, 1, 1)])
def test_the_bound_is_never_below_chance_and_equals_it_at_no_loss(counts: tuple[int, ...]) -> None:
    """Labels are known: of a text there are as many candidates as originals of its label."""
    labels = np.repeat(np.arange(len(counts)), counts).tolist()
    texts = documents_of([[1, 2]] * len(labels), labels)
    for place, epsilon in enumerate((0.0, 0.01, 1.0)):
        claimed, source = Guarantee(epsilon, Neighbours.DOCUMENT), SeededSource(1, "chance", place)
        links = link_nearest(texts, texts, np.ones(SIZE), claimed, source, 1).links
        assert links.baseline == pytest.approx(len(counts) / len(labels))
        grown = np.exp(4 * epsilon)
        expected = np.repeat([grown / (grown + one - 1) for one in counts], counts).mean()
        assert links.bound == pytest.approx(expected)
        assert links.bound >= links.baseline - 1e-12


def test_a_link_is_found_where_no_text_is_named() -> None:
    # A tenth of the pieces: too few to name the original, enough for the test.
    texts = class_texts(200, 2)
    weights = residual_idf(texts, SIZE)
    source = SeededSource(2, "faint")
    found = link_nearest(texts, partly_copied(texts, 2, 0.1), weights, CLAIMED, source, 199)
    assert found.p_value <= 0.01


@pytest.mark.statistical
def test_independent_texts_alarm_as_often_as_stated(seed: int) -> None:
    # 300 corpora of 12 pairs, 19 pairings each: the p-value is at most 0.1 with probability 0.1
    # at most; exact binomial, one-sided, false alarm 1e-6. Labels are shared: they alarm nobody.
    # The twin has texts that depend.
    from scipy.stats import binom

    alarms = []
    for kind, share in (("null", 0.0), ("twin", 0.3)):
        count = 0
        for game in range(300):
            texts = class_texts(12, seed, kind, str(game))
            released = class_texts(12, seed, kind, "other", str(game))
            if share:
                released = partly_copied(texts, seed + game, share)
            weights = np.ones(SIZE)
            source = SeededSource(seed, kind, game)
            found = link_nearest(texts, released, weights, CLAIMED, source, 19)
            count += found.p_value <= 0.1
        alarms.append(count)
    assert binom.sf(alarms[0] - 1, 300, 0.1) > FALSE_ALARM
    assert binom.sf(alarms[1] - 1, 300, 0.1) < FALSE_ALARM


def test_equal_texts_are_named_in_a_random_order() -> None:
    # All cosines are equal: every text is given one name, which is right for one of them.
    texts = class_texts(1, 1)[np.zeros(60, dtype=np.int64)]
    for game in range(5):
        source = SeededSource(1, "equal", game)
        found = link_nearest(texts, texts, np.ones(SIZE), CLAIMED, source, 1)
        assert (found.p_value, found.links.right) == (1.0, 1)


def test_unlike_numbers_and_labels_are_refused() -> None:
    texts = class_texts(3, 1)
    for other in (texts[:2], texts[:0]):
        with pytest.raises(BadParameter, match="as many as the originals"):
            link_nearest(texts, other, np.ones(SIZE), CLAIMED, SeededSource(1, "x"))
    with pytest.raises(BadParameter, match="label of its original"):
        link_nearest(
            texts, texts[np.array([1, 0, 0])], np.ones(SIZE), CLAIMED, SeededSource(1, "x")
        )


def test_texts_of_another_label_are_neither_named_nor_paired() -> None:
    # Nearest of all is the original of the other label, which is no candidate.
    originals = documents_of([[1, 1, 9], [2, 2, 2, 2]], [0, 1])
    published = documents_of([[2, 2, 2, 1], [1, 1, 9, 2]], [0, 1])
    found = link_nearest(originals, published, np.ones(SIZE), CLAIMED, SeededSource(7, "x"), 9)
    assert found.links.right == 2
    assert found.links.baseline == 1.0
    assert found.p_value == 1.0  # one pairing within labels
    assert found.unpaired == found.paired
