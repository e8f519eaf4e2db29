"""Classifiers learn what is there: classes with words of their own, and nothing from a null."""

import numpy as np
import pytest
from sklearn.metrics import f1_score

from made_up_texts import SIZE, class_texts, documents_of
from noisefloor.errors import BadParameter
from noisefloor.publication.text import Documents
from noisefloor.publication.text.evaluation import (
    BENCHMARK,
    PAPER,
    ClassScores,
    class_f1,
    classifier_names,
    evaluate_utility,
    mean_scores,
)
from noisefloor.randomness import SeededSource


def test_f1_is_that_of_scikit_learn() -> None:
    draw = SeededSource(3, "classes").generator()
    guessed, truth = draw.integers(0, 4, (2, 60))
    expected = f1_score(truth, guessed, average=None)
    assert class_f1(guessed, truth, 4) == pytest.approx(expected, rel=1e-12)
    assert class_f1(np.array([0]), np.array([0]), 2) == (1.0, 0.0)


def test_classes_with_words_of_their_own_are_learned() -> None:
    scores = evaluate_utility(class_texts(600, 1), class_texts(300, 2), SIZE, 2)
    assert set(scores) == {*PAPER, *BENCHMARK} == set(classifier_names())
    for name, one in scores.items():
        assert one.macro_f1 > 0.8, name
        assert (one.trained, one.tested, len(one.f1)) == (600, 300, 2)
        assert one.note


@pytest.mark.statistical
def test_labels_at_random_teach_nothing(seed: int) -> None:
    # 2,000 tested texts of two equal classes: accuracy strays by 0.055 from a half with
    # probability 1e-6 (Hoeffding: 0.0602); macro F1 is at most accuracy + 0.01 near one half.
    corpus, held_out = class_texts(600, seed, "in"), class_texts(2000, seed, "out")
    fair = SeededSource(seed, "labels").generator().integers(0, 2, 600)
    null = Documents(corpus.pieces, corpus.offsets, fair.astype(np.int64))
    apart = held_out[np.flatnonzero(SeededSource(seed, "mixed").generator().random(2000) < 2)]
    truth = SeededSource(seed, "truth").generator().integers(0, 2, 2000).astype(np.int64)
    apart = Documents(apart.pieces, apart.offsets, truth)
    for name, one in evaluate_utility(null, apart, SIZE, 2, BENCHMARK).items():
        assert one.macro_f1 < 0.5 + 0.061 + 0.01, name
    # The twin: the true labels.
    twin = evaluate_utility(corpus, held_out, SIZE, 2, BENCHMARK)
    assert all(one.macro_f1 > 0.571 for one in twin.values())


def test_a_corpus_of_one_class_names_it_always() -> None:
    corpus = class_texts(40, 1)
    one = corpus[corpus.labels == 1]
    for scores in evaluate_utility(one, class_texts(40, 2), SIZE, 2).values():
        assert scores.f1 == pytest.approx((0.0, 2 / 3))
        assert scores.note == "one class in the corpus"


def test_three_classes_and_empty_texts_are_fine() -> None:
    corpus = class_texts(300, 1, classes=3)
    held_out = class_texts(90, 2, classes=3)
    found = evaluate_utility(corpus, held_out, SIZE, 3, ("naive-bayes", "tree"))
    assert all(len(one.f1) == 3 and one.macro_f1 > 0.6 for one in found.values())
    empty = documents_of([[], [], []], [0, 1, 0])
    assert all(one.tested == 3 for one in evaluate_utility(corpus, empty, SIZE, 3).values())
    assert all(one.trained == 3 for one in evaluate_utility(empty, corpus, SIZE, 3).values())


def test_the_mean_over_splits_is_of_macro_f1() -> None:
    splits = [{"tree": ClassScores((0.2, 0.4), 1, 1)}, {"tree": ClassScores((0.6, 1.0), 1, 1)}]
    assert mean_scores(splits) == pytest.approx({"tree": 0.55})
    assert splits[0]["tree"].as_json()["macro_f1"] == pytest.approx(0.3)
    with pytest.raises(BadParameter, match="splits"):
        mean_scores([])


def test_unknown_names_no_texts_and_strange_labels_are_refused() -> None:
    texts = class_texts(10, 1)
    with pytest.raises(BadParameter, match="naive-bayes"):
        evaluate_utility(texts, texts, SIZE, 2, ["forest"])
    with pytest.raises(BadParameter, match="at least 1"):
        evaluate_utility(texts[:0], texts, SIZE, 2)
    with pytest.raises(BadParameter, match="classes below 1"):
        evaluate_utility(texts, texts, SIZE, 1)
    with pytest.raises(BadParameter, match="a guess for each"):
        class_f1(np.array([0]), np.array([0, 1]), 2)
