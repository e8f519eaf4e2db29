"""Classifiers of scikit-learn by name, with the one parameter that the paper tunes.

scikit-learn is an extra and is imported when a classifier is made. What is fitted on reports is
post-processing: it costs nothing.
"""

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from noisefloor.checks import Floats, check_extra, check_finite
from noisefloor.collection.schema import Labels
from noisefloor.errors import BadParameter


def check_sklearn(what: str) -> None:
    """Refuse something that learns by scikit-learn where it is not installed."""
    check_extra(what, "collection", "scikit-learn")


class Model(Protocol):
    """Something fitted that tells the class of features."""

    def predict(self, features: Floats) -> Labels:
        """Return whether each is positive."""
        ...


@dataclass(frozen=True, slots=True)
class Constant:
    """Tells the same of everything: what reports of one class alone can teach."""

    label: bool

    def predict(self, features: Floats) -> Labels:
        """Return the one class that was seen."""
        return np.full(len(features), self.label)


@dataclass(frozen=True, slots=True)
class Fitted:
    """A fitted estimator of scikit-learn.

    Attributes:
        estimator: As scikit-learn left it; a support vector machine holds its support vectors.
    """

    estimator: Any  # of scikit-learn

    def predict(self, features: Floats) -> Labels:
        """Return whether each is positive."""
        return np.asarray(self.estimator.predict(features), dtype=np.bool_)


def _svm(weight: float, seed: int) -> Any:
    from sklearn.svm import SVC

    return SVC(kernel="rbf", gamma="scale", C=weight)


def _linear_svm(weight: float, seed: int) -> Any:
    from sklearn.svm import SVC

    return SVC(kernel="linear", C=weight)


def _logistic(weight: float, seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=weight, max_iter=1000)


def _forest(weight: float, seed: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(100, random_state=seed)


def _boosting(weight: float, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=seed)


def _tree(weight: float, seed: int) -> Any:
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(min_samples_leaf=5, random_state=seed)


def _neighbours(weight: float, seed: int) -> Any:
    from sklearn.neighbors import KNeighborsClassifier

    return KNeighborsClassifier(15)


def _naive_bayes(weight: float, seed: int) -> Any:
    from sklearn.naive_bayes import GaussianNB

    return GaussianNB()


CLASSIFIERS: dict[str, Callable[[float, int], Any]] = {
    "svm": _svm,
    "linear-svm": _linear_svm,
    "logistic": _logistic,
    "forest": _forest,
    "boosting": _boosting,
    "tree": _tree,
    "neighbours": _neighbours,
    "naive-bayes": _naive_bayes,
}
"""All that can be named; the weight C counts for the first three."""


def check_classifier(name: str, weight: float) -> None:
    """Refuse a name that is not listed, and a weight that is not positive."""
    if name not in CLASSIFIERS:
        close = difflib.get_close_matches(name, CLASSIFIERS, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise BadParameter("classifier", name, f"to be one of {', '.join(CLASSIFIERS)}{hint}")
    if check_finite(weight, "weight") <= 0:
        raise BadParameter("weight", weight, "> 0")


def fit(
    name: str, features: Floats, labels: Labels, *, weight: float = 1.0, seed: int = 0
) -> Model:
    """Fit a classifier to what was collected.

    Reports of one class alone teach that class: the model is then a ``Constant``.

    Args:
        name: A key of ``CLASSIFIERS``.
        features: A row for each record.
        labels: As many.
        weight: C of support vector machines and of logistic regression.
        seed: For classifiers that draw.
    """
    check_classifier(name, weight)
    if not len(labels) or features.shape[:1] != labels.shape:
        raise BadParameter("labels", f"<{len(labels)}>", f"one a row of features, {len(features)}")
    if labels.all() or not labels.any():
        return Constant(bool(labels[0]))
    check_sklearn(f"The classifier {name}")
    return Fitted(CLASSIFIERS[name](weight, seed).fit(features, labels))
