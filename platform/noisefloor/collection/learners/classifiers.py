"""Classifiers of scikit-learn by name, with the one parameter that the paper tunes.

scikit-learn is an extra and is imported when a classifier is made. What is fitted on reports is
post-processing: it costs nothing.

The paper's classifier on joint responses (jSVM): nothing is changed but the response.

Everybody tells of the same K attributes, drawn without data, and the whole tuple is one response
with the whole epsilon. Its rows go to scikit-learn's SVC as they are; the model is a function of
them (post-processing). Reports are few different rows, many times over: they are weighted, not
repeated, which is the same problem and the same solution.
"""

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from noisefloor.checks import Floats, check_extra, check_finite
from noisefloor.collection.encoding import Codes, Discretiser
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import Reports
from noisefloor.tables import Labels


def check_sklearn(what: str) -> None:
    """Refuse something that learns by scikit-learn where it is not installed."""
    check_extra(what, "collection", "scikit-learn")


class Classifier(Protocol):
    """Something fitted that tells the class of features."""

    def predict(self, features: Floats) -> Labels:
        """Return whether each is positive."""
        ...


@dataclass(frozen=True, slots=True)
class ConstantClassifier:
    """Tells the same of everything: what reports of one class alone can teach."""

    label: bool

    def predict(self, features: Floats) -> Labels:
        """Return the one class that was seen."""
        return np.full(len(features), self.label)


@dataclass(frozen=True, slots=True)
class SklearnClassifier:
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
) -> Classifier:
    """Fit a classifier to what was collected.

    Reports of one class alone teach that class: the model is then a ``ConstantClassifier``.

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
        return ConstantClassifier(bool(labels[0]))
    check_sklearn(f"The classifier {name}")
    return SklearnClassifier(CLASSIFIERS[name](weight, seed).fit(features, labels))


@dataclass(frozen=True, slots=True, eq=False)
class JointSVM:
    """A support vector machine on the classes of some attributes.

    Attributes:
        classes: Of all attributes.
        columns: The attributes that every owner reports.
        machine: scikit-learn's, or the only label that reports had.
    """

    classes: Discretiser
    columns: tuple[int, ...]
    machine: Any  # scikit-learn has no types

    def predict(self, values: Floats) -> Labels:
        """Return the labels of whole records, on their device: nothing is sent."""
        codes = self.classes.codes(values[:, self.columns], self.columns)
        return self.predict_codes(codes)

    def predict_codes(self, codes: Codes) -> Labels:
        """Return the labels of queries, the classes of the columns, protected or not."""
        if isinstance(self.machine, bool):
            return np.full(len(codes), self.machine)
        kept, places = np.unique(codes, axis=0, return_inverse=True)
        predicted = self.machine.predict(self.classes.values(kept, self.columns)) > 0
        return np.asarray(predicted[places.reshape(-1)])


def fit_svm(
    classes: Discretiser, columns: Sequence[int], reports: Reports, cost: float = 1.0
) -> JointSVM:
    """Fit the machine to labelled joint responses about the same columns.

    Args:
        classes: Of all attributes.
        columns: Those that every owner reports.
        reports: Rows of ``JointResponse`` over these columns alone, all of them drawn.
        cost: The C of the machine, above 0.
    """
    chosen = len(columns)
    if reports.ndim != 2 or reports.shape[1] != 2 * chosen + 1:
        raise BadParameter("reports", reports.shape, f"rows of {2 * chosen + 1}")
    values = classes.values(np.asarray(reports[:, chosen:-1], dtype=np.uint16), columns)
    machine = machine_of(values, np.asarray(reports[:, -1] > 0), cost)
    return JointSVM(classes, tuple(columns), machine)


def machine_of(values: Floats, labels: Labels, cost: float) -> Any:  # Any: no types
    """Return SVC (RBF, gamma "scale") on rows that come many times, or the only label."""
    if labels.all() or not labels.any():
        return bool(labels.all())
    check_sklearn("A support vector machine")
    from sklearn.svm import SVC

    rows = np.column_stack([values, labels])
    kept, times = np.unique(rows, axis=0, return_counts=True)
    variance = float(values.var())
    gamma = 1 / (values.shape[1] * variance) if variance > 0 else 1.0
    machine = SVC(C=cost, kernel="rbf", gamma=gamma)
    return machine.fit(kept[:, :-1], np.where(kept[:, -1] > 0, 1, -1), sample_weight=times)
