"""Examples follow from the public schema, folds are even, scores are those of everybody."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score

from noisefloor.errors import BadParameter
from noisefloor.publication.published_model import classification_scores
from noisefloor.randomness import SeededSource
from noisefloor.tables.one_hot import Examples, OneHot, folds
from noisefloor.tables.records import Records
from noisefloor.tables.schema import Bins, Categories, Schema

SCHEMA = Schema(
    "one row",
    {"a": Categories(("x", "y", "z")), "label": Categories((0, 1)), "b": Bins((0, 1, 2))},
)


def test_a_row_has_a_one_for_each_column_but_the_label() -> None:
    columns = {"a": np.array(["z", "x"]), "label": np.array([1, 0]), "b": np.array([0.5, 2.0])}
    encoding = OneHot(SCHEMA, "label")
    made = encoding.examples(Records.of(columns, SCHEMA, "rows"))
    assert (encoding.columns, encoding.sizes, encoding.width) == (("a", "b"), (3, 2), 5)
    np.testing.assert_array_equal(made.features, [[0, 0, 1, 1, 0], [1, 0, 0, 0, 1]])
    np.testing.assert_array_equal(made.labels, [1, 0])
    assert (len(made), made.classes, made[:1].labels.tolist()) == (2, 2, [1])


def test_bad_encodings_are_refused() -> None:
    with pytest.raises(BadParameter):
        OneHot(SCHEMA, "nothing")
    with pytest.raises(BadParameter, match="other column"):
        OneHot(Schema("row", {"label": Categories((0, 1))}), "label")
    with pytest.raises(BadParameter, match="a row for each label"):
        Examples(np.zeros((2, 3), np.float32), np.zeros(3, np.int64), 2)


@given(count=st.integers(1, 60), parts=st.integers(1, 60), seed=st.integers(0, 99))
def test_folds_differ_by_one_at_most(count: int, parts: int, seed: int) -> None:
    if parts > count:
        with pytest.raises(BadParameter):
            folds(count, parts, SeededSource(seed, "folds", count, parts))
        return
    sizes = np.bincount(folds(count, parts, SeededSource(seed, count, parts)), minlength=parts)
    assert sizes.sum() == count
    assert sizes.max() - sizes.min() <= 1


@given(classes=st.integers(2, 4), count=st.integers(1, 40), seed=st.integers(0, 10_000))
def test_scores_are_those_of_scikit_learn(classes: int, count: int, seed: int) -> None:
    draw = SeededSource(seed, "scores").generator()
    predicted, labels = draw.integers(0, classes, (2, count))
    mine = classification_scores(predicted, labels, classes)
    theirs = f1_score(labels, predicted, labels=range(classes), average="macro", zero_division=0.0)
    assert mine.accuracy == pytest.approx(accuracy_score(labels, predicted))
    assert mine.macro_f1 == pytest.approx(theirs)
    assert mine.n == count


def test_scores_of_nothing_are_refused() -> None:
    with pytest.raises(BadParameter):
        classification_scores(np.zeros(0, np.int64), np.zeros(0, np.int64), 2)
