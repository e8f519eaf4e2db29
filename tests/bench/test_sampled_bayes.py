"""Answers about attribute and label: what they cost, what they estimate, what is learnt."""

import numpy as np
import pytest
from bench.sampled_bayes import Answer, AttributeSurvey

from noisefloor.collection.encoding.discretisation import Discretiser
from noisefloor.randomness import SeededSource
from record_worlds import accuracy, mixed_schema, two_groups

WAYS: list[tuple[Answer, bool]] = [
    ("separate", False),
    ("joint", False),
    ("separate", True),
    ("joint", True),
    ("unary", True),
]


@pytest.mark.parametrize(("answer", "sampled"), WAYS)
def test_all_answers_of_an_owner_cost_epsilon(answer: Answer, sampled: bool) -> None:
    for labels in (2, 3):
        survey = AttributeSurvey((4, 2, 3), labels, 3.0, answer, sampled)
        assert 3.0 - 1e-6 <= survey.guarantee().epsilon <= 3.0


def world(n: int) -> tuple[Discretiser, np.ndarray, np.ndarray, np.ndarray]:
    """Return classes, codes, three labels, and the true shares of class and label."""
    schema = mixed_schema()
    records, classes = two_groups(schema, n, "survey"), Discretiser(schema, 4)
    codes = classes.codes(records.values)
    labels = records.labels.astype(np.int64) + (codes[:, 0] == 3)
    tables = [
        np.bincount(codes[:, column].astype(np.int64) * 3 + labels, minlength=3 * size)
        for column, size in enumerate(classes.sizes)
    ]
    return classes, codes, labels, np.concatenate(tables).reshape(-1, 3) / n


@pytest.mark.statistical
@pytest.mark.parametrize(("answer", "sampled"), WAYS)
def test_shares_are_debiased(answer: Answer, sampled: bool, seed: int) -> None:
    """n = 60,000, three labels, epsilon 6.

    A share varies by at most 0.25 / effective about the truth; 36 of them at 7 standard errors:
    false alarm 1e-10. The twin reads answers as if they were made at 1.3 times the epsilon.
    """
    classes, codes, labels, true = world(60_000)
    survey = AttributeSurvey(classes.sizes, 3, 6.0, answer, sampled)
    found = survey.shares(codes, labels, SeededSource(seed, "survey", answer, int(sampled)))
    error = np.repeat(0.5 / np.sqrt(found.effective), classes.sizes)[:, None]
    assert (np.abs(found.shares - true) < 7 * error).all()
    assert (np.abs(found.shares - true.mean()) > 7 * error).any()


@pytest.mark.parametrize("answer", ["separate", "joint"])
def test_answers_without_noise_are_the_truth(answer: Answer) -> None:
    classes, codes, labels, true = world(500)
    survey = AttributeSurvey(classes.sizes, 3, 150.0, answer, sampled=False)
    found = survey.shares(codes, labels, SeededSource(6, "true", answer))
    assert np.allclose(found.shares, true, atol=1e-9)


def test_one_answer_for_class_and_label_teaches_more_than_two() -> None:
    schema = mixed_schema()
    records, queried = two_groups(schema, 3_000, "learn"), two_groups(schema, 3_000, "asked")
    classes = Discretiser(schema, 4)
    found = {}
    for answer, sampled in WAYS:
        survey = AttributeSurvey(classes.sizes, 2, 2.0, answer, sampled)
        source = SeededSource(6, "learn", answer, int(sampled))
        codes, labels = classes.codes(records.values), records.labels.astype(np.int64)
        model = survey.shares(codes, labels, source).fit(classes)
        found[answer, sampled] = accuracy(model.predict(queried.values), queried)
    assert found["joint", True] > 0.8
    assert found["joint", True] > found["separate", True]
    assert found["unary", True] > 0.8
