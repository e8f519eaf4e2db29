"""Authorship: style is learned and linked; texts without it are linked by chance."""

import math

import numpy as np
import pytest

from made_up_texts import SIZE, class_texts, same_length
from noisefloor.adversary.text import link_authors, train_stylometry
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import KaryResponse
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.publication.text import Documents
from noisefloor.randomness import SeededSource
from statistics_of_tests import FALSE_ALARM, binomial_p

A = 10
CLAIMED = Guarantee(0.1, Neighbours.USER)


def written(count: int, seed: int, *path: str) -> Documents:
    return class_texts(count, seed, *path, classes=A)


@pytest.mark.statistical
def test_authors_are_linked_by_style_and_strangers_are_not(seed: int) -> None:
    # 400 texts of 10 authors against texts of one and the same style, whose truth is drawn: exact
    # binomial at FALSE_ALARM.
    style = train_stylometry(written(400, seed, "known"), A, SIZE)
    texts = written(400, seed, "published")
    found = link_authors(style, texts, texts.labels, CLAIMED)
    assert found.success > 0.6
    assert found.baseline == 1 / A
    assert found.bound == pytest.approx(math.exp(0.1) / (math.exp(0.1) + A - 1))
    assert found.interval[0] > found.bound
    alike = class_texts(400, seed, "alike", pull=0.0)
    truth = SeededSource(seed, "truth").generator().integers(0, A, 400)
    null = link_authors(style, alike, truth, CLAIMED)
    assert binomial_p(null.right, null.n, 1 / A) > FALSE_ALARM


@pytest.mark.statistical
def test_a_randomised_author_is_named_as_often_as_the_bound_says(seed: int) -> None:
    # 2,000 games. k-ary response of epsilon 1 decides whose text is published, and style gives
    # that one away nearly always: exact binomial at FALSE_ALARM against the bound, which holds
    # with equality for it. The twin is epsilon 1.4.
    style = train_stylometry(class_texts(400, seed, "known", classes=A, pull=0.9), A, SIZE)
    claimed = Guarantee(1.0, Neighbours.USER)
    truth = np.arange(2000) % A
    texts = class_texts(2000, seed, "texts", classes=A, pull=0.9)
    for epsilon, is_as_claimed in ((1.0, True), (1.4, False)):
        shown = KaryResponse(A, epsilon).randomise(truth, SeededSource(seed, f"{epsilon:g}"))
        rows = A * (np.arange(2000) // A) + shown
        found = link_authors(style, texts[rows], truth, claimed)
        assert found.bound == pytest.approx(math.e / (math.e + A - 1))
        p_value = binomial_p(found.right, found.n, found.bound)
        assert (p_value > FALSE_ALARM) == is_as_claimed


def test_texts_of_one_pseudonym_add_up() -> None:
    style = train_stylometry(class_texts(200, 1, classes=A, pull=0.1), A, SIZE)
    texts = class_texts(500, 2, classes=A, pull=0.1)
    order = np.argsort(texts.labels, kind="stable")
    texts = texts[order]
    alone = link_authors(style, texts, texts.labels, CLAIMED)
    groups = np.arange(500) // 10
    joined = link_authors(style, texts, texts.labels[::10], CLAIMED, pseudonyms=groups)
    assert (alone.n, joined.n) == (500, 50)
    assert joined.success > alone.success + 0.2


def test_more_texts_of_an_author_make_the_bound_weaker() -> None:
    style = train_stylometry(written(40, 1), A, SIZE)
    texts = written(20, 2)
    one = Guarantee(0.1, Neighbours.DOCUMENT)
    bounds = [link_authors(style, texts, texts.labels, one, texts=count).bound for count in (1, 8)]
    for count, bound in zip((1, 8), bounds, strict=True):
        grown = math.exp(0.2 * count)
        assert bound == pytest.approx(grown / (grown + A - 1))


def test_frequent_pieces_alone_leave_style_without_topics() -> None:
    # Topics: a rare piece for each author. Style: which of two frequent pieces follow each other.
    draw = SeededSource(5, "style").generator()
    labels = np.arange(200) % 2
    function = np.where(labels[:, None] == 1, [[1, 2] * 5], [[1] * 5 + [2] * 5])
    topics = draw.integers(20, 190, (200, 3))
    texts = same_length(np.hstack([function, topics]), labels)
    style = train_stylometry(texts[:100], 2, SIZE, frequent=2)
    assert style.kept is not None
    assert style.kept.tolist() == [1, 2]
    assert link_authors(style, texts[100:], labels[100:], CLAIMED).success == 1.0
    changed = same_length(np.hstack([function, topics[::-1]]), labels)
    assert (style.features(texts) != style.features(changed)).nnz == 0


def test_a_background_takes_off_what_is_usual() -> None:
    known = written(200, 1)
    style = train_stylometry(known, A, SIZE)
    # Every published corpus is mostly by author 0; the tenth that is not decides.
    crowd = known[known.labels == 0]
    secrets = np.arange(1, A)
    parts = [np.concatenate([np.flatnonzero(known.labels == one)[:4]]) for one in secrets]
    rows = np.concatenate(
        [np.concatenate([np.flatnonzero(known.labels == 0), part]) for part in parts]
    )
    groups = np.repeat(np.arange(A - 1), crowd.count + 4)
    plain = link_authors(style, known[rows], secrets, CLAIMED, pseudonyms=groups)
    better = link_authors(
        style, known[rows], secrets, CLAIMED, pseudonyms=groups, background=crowd
    )
    assert plain.success == 0.0
    assert better.success == 1.0


def test_scores_are_those_of_naive_bayes() -> None:
    from sklearn.naive_bayes import MultinomialNB

    known, texts = written(60, 1), written(30, 2)
    style = train_stylometry(known, A, SIZE)
    model = MultinomialNB(alpha=0.1, fit_prior=False)
    model.fit(style.features(known), known.labels)
    expected = model.predict_joint_log_proba(style.features(texts))
    assert style.scores(texts) == pytest.approx(expected - expected.mean(axis=1, keepdims=True))


def test_authors_without_a_known_text_are_refused() -> None:
    texts = written(5, 1)
    with pytest.raises(BadParameter, match="of each of 10 authors"):
        train_stylometry(texts, A, SIZE)
    style = train_stylometry(written(20, 1), A, SIZE)
    with pytest.raises(BadParameter, match="one for each of 5 texts"):
        link_authors(style, texts, np.array([1]), CLAIMED, pseudonyms=np.array([0]))
