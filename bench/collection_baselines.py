"""Baselines of `bench/collection.py`: other ways to spend epsilon, LDP-SGD, and no noise at all.

Every baseline meets the same owners as ours, at the same proved epsilon. ``LADDER`` goes from
splitting epsilon over all attributes to ours by one change at a time, so that a gain is
attributed to what makes it. Settings of LDP-SGD were chosen on other tables
(``bench/gradient_settings.py``); the fixed class count is 4 on all data sets and at every epsilon.
``hindsight`` runs ours at every class count: the best of them, picked by the accuracy that is
reported, is an upper limit for a rule and never a result.
"""

from collections.abc import Iterator

import numpy as np
from bench.collection_methods import Answers, Fold, decision, joint_reports, rule_of
from bench.gradient_settings import MECHANISMS, descent_of, mechanism_of
from bench.private_gradients import features_of, fit_gradients, width_of
from bench.sampled_bayes import Answer, AttributeSurvey
from numpy.typing import NDArray

from noisefloor.collection.encoding.discretisation import Discretiser
from noisefloor.collection.encoding.sizing import joint_size
from noisefloor.collection.learners.naive_bayes import (
    Shrinkage,
    fit_counts,
    fit_tuples,
    model_from_counts,
)
from noisefloor.randomness import SeededSource
from noisefloor.tables.scaled_records import Labels

FIXED = 4
"""Classes of an attribute where the count is fixed beforehand."""

CLASS_COUNTS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 16)
"""Those that hindsight tries."""

PLAIN_CLASSES = 8

SURVEYS: dict[str, tuple[Answer, bool]] = {
    "split": ("separate", False),
    "split joint": ("joint", False),
    "sampled": ("separate", True),
    "sampled joint": ("joint", True),
    "sampled unary": ("unary", True),
}
"""How class and label are answered, and whether one attribute is drawn; all with 4 classes."""

LADDER = (
    ("split", "all attributes, each answered by itself"),
    ("sampled", "one sampled attribute"),
    ("sampled joint", "one answer for class and label"),
    ("several joint", "as many attributes in the answer as epsilon allows"),
    ("jNB", "the class count of the rule"),
    ("jNB+", "the likelihood of whole answers"),
)
"""From method to method one change; what it is."""


def baselines(fold: Fold, source: SeededSource) -> Iterator[tuple[str, Answers]]:
    """Run every baseline, and ours at every class count."""
    found = {
        name: survey(fold, FIXED, source.child(name), answer=answer, sampled=sampled)
        for name, (answer, sampled) in SURVEYS.items()
    }
    yield from found.items()
    most = rule_of(fold).classes
    yield "sampled joint, rule", survey(fold, most, source.child("rule"))
    chosen = joint_size(len(fold.schema), FIXED, fold.epsilon, fold.labels)
    # One attribute drawn is the sampled joint answer; other draws of it would only add noise.
    alone = found["sampled joint"] if chosen == 1 else None
    yield "several joint", alone or several(fold, chosen, source.child("several"))
    for name in MECHANISMS:
        yield name, descent(name, fold, source.child(name))
    for count in CLASS_COUNTS:
        yield f"jNB+ {count}", hindsight(count, fold, source.child("hindsight", count))


def survey(
    fold: Fold,
    most: int,
    source: SeededSource,
    *,
    answer: Answer = "joint",
    sampled: bool = True,
) -> Answers:
    """Naive Bayes from answers about attribute and label."""
    classes = Discretiser(fold.schema, most)
    asked = AttributeSurvey(classes.sizes, fold.labels, fold.epsilon, answer, sampled)
    codes = classes.codes(fold.train.values)
    shares = asked.shares(codes, _numbers(fold.train.labels), source.child("train"))
    predicted = shares.fit(classes).predict(fold.test.values)
    return _answers(fold, predicted, asked.guarantee().epsilon, source)


def several(fold: Fold, chosen: int, source: SeededSource) -> Answers:
    """jNB with the fixed class count, and several attributes in an answer."""
    response, classes, reports = joint_reports(fold, chosen, FIXED, source)
    model = fit_counts(response, response.tally(reports), classes)
    predicted = model.predict(fold.test.values)
    return _answers(fold, predicted, response.guarantee().epsilon, source)


def hindsight(most: int, fold: Fold, source: SeededSource) -> Answers:
    """Ours at a given class count."""
    chosen = joint_size(len(fold.schema), most, fold.epsilon, fold.labels)
    response, classes, reports = joint_reports(fold, chosen, most, source)
    model = fit_tuples(response, reports, Shrinkage(classes))
    predicted = model.predict(fold.test.values)
    return _answers(fold, predicted, response.guarantee().epsilon, source)


def descent(name: str, fold: Fold, source: SeededSource) -> Answers:
    """Logistic regression from one randomised gradient of each owner."""
    rows = 1 if fold.labels == 2 else fold.labels
    mechanism = mechanism_of(name, rows * width_of(fold.schema), fold.epsilon)
    model = fit_gradients(
        mechanism,
        descent_of(name, len(fold.train), fold.epsilon),
        fold.schema,
        fold.train.values,
        _numbers(fold.train.labels),
        source.child("train"),
        label_count=fold.labels,
    )
    predicted = model.predict(fold.test.values).astype(fold.test.labels.dtype)
    return _answers(fold, predicted, mechanism.guarantee().epsilon, source)


def without_privacy(fold: Fold) -> Iterator[tuple[str, Labels]]:
    """Naive Bayes from true counts, and logistic regression on true records."""
    from sklearn.linear_model import LogisticRegression  # lazy: main does not need it

    classes = Discretiser(fold.schema, PLAIN_CLASSES)
    labels, counts = _numbers(fold.train.labels), []
    for column, size in enumerate(classes.sizes):
        codes = classes.codes(fold.train.values[:, [column]], [column])[:, 0].astype(np.int64)
        cells = np.bincount(codes * fold.labels + labels, minlength=size * fold.labels)
        counts.append(cells.reshape(size, fold.labels))
    prior = np.bincount(labels, minlength=fold.labels) / len(labels)
    shares = Shrinkage(classes).shares(np.concatenate(counts).astype(np.float64), prior)
    yield "plain NB", model_from_counts(classes, shares, prior).predict(fold.test.values)
    machine = LogisticRegression(C=10.0, max_iter=2000)
    machine.fit(features_of(fold.schema, fold.train.values), fold.train.labels)
    yield "plain LR", machine.predict(features_of(fold.schema, fold.test.values))


def _answers(fold: Fold, predicted: Labels, spent: float, source: SeededSource) -> Answers:
    return Answers(decision(predicted, fold, source.child("decision")), predicted, spent)


def _numbers(labels: Labels) -> NDArray[np.int64]:
    return labels.astype(np.int64)
