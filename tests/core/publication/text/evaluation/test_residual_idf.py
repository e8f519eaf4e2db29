"""Residual IDF by its formula, cosines by hand, and a copied corpus beside an unrelated one."""

import math

import numpy as np
import pytest

from made_up_texts import SIZE, class_texts, documents_of
from noisefloor.errors import BadParameter
from noisefloor.publication.text.evaluation import (
    compare_cosines,
    cosines,
    residual_idf,
    ridf_vectors,
)
from noisefloor.randomness import SeededSource

ROWS = [[1, 1, 1, 2], [2, 3], [3, 2, 4], []]


def weight_by_hand(piece: int) -> float:
    documents = sum(piece in row for row in ROWS)
    occurrences = sum(row.count(piece) for row in ROWS)
    n = len(ROWS)
    return -math.log2(documents / n) + math.log2(1 - math.exp(-occurrences / n))


def test_the_weight_is_that_of_the_formula_and_0_for_pieces_that_are_nowhere() -> None:
    weights = residual_idf(documents_of(ROWS), 6)
    assert weights[1:5] == pytest.approx([weight_by_hand(piece) for piece in range(1, 5)])
    assert weights[0] == weights[5] == 0
    assert weights[1] > weights[4]  # three times in one document


def test_vectors_have_length_one_and_cosines_are_those_by_hand() -> None:
    texts = documents_of(ROWS)
    weights = residual_idf(texts, 6)
    vectors = ridf_vectors(texts, weights).toarray()
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1, 0])
    assert vectors[0, 1] / vectors[0, 2] == pytest.approx(3 * weights[1] / weights[2])
    found = cosines(texts, texts[:2], weights)
    assert found == pytest.approx(vectors @ vectors[:2].T, abs=1e-6)


def test_a_copy_is_at_cosine_one_and_unrelated_texts_are_far() -> None:
    real = class_texts(150, 1)
    copied = compare_cosines(real, real, SIZE, SeededSource(1, "copy"))
    assert copied.row_maxima == pytest.approx(np.ones(150), abs=1e-5)
    other = compare_cosines(real, class_texts(90, 2), SIZE, SeededSource(1, "other"))
    assert (other.rows, other.columns) == (150, 90)
    assert other.maximum < 0.99
    assert other.mean < other.row_maxima.mean() <= other.maximum
    assert other.heat_map.shape == (60, 60)
    assert set(other.as_json()) >= {"mean", "maximum", "row_maximum_mean"}


def test_as_many_texts_are_compared_as_were_asked_for() -> None:
    real = class_texts(30, 1)
    some = compare_cosines(real, real[:7], SIZE, SeededSource(1, "some"), most=20)
    assert (some.rows, some.columns, some.heat_map.shape) == (20, 7, (20, 7))
    with pytest.raises(BadParameter, match="published"):
        compare_cosines(real, real[:0], SIZE, SeededSource(1, "none"))
