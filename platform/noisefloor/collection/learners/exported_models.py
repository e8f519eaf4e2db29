"""Classifiers as they are published: numbers that anybody can evaluate, without scikit-learn.

A kernel machine is its support vectors, dual coefficients, intercept and gamma; a linear one its
weights. What has no such form is published as its decisions on every row of classes there is, so
that two models can be compared exactly. All of them are functions of reports alone.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from noisefloor.checks import Floats, blocks, check_finite
from noisefloor.collection.learners import classifiers
from noisefloor.errors import BadParameter
from noisefloor.tables import Labels

MOST_DECISIONS = 1 << 18
"""Rows of a table of decisions."""


class ExportedModel(classifiers.Classifier, Protocol):
    """A model with its numbers."""

    @property
    def form(self) -> str:
        """Its name, as ``model_from_arrays`` reads it."""
        ...

    def arrays(self) -> dict[str, Floats]:
        """Return its numbers by name."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class KernelModel:
    """A support vector machine with a Gaussian kernel.

    Attributes:
        vectors: Support vectors, a row each.
        weights: Their dual coefficients.
        intercept: Added to the weighted kernels.
        gamma: Of exp(-gamma distance^2), above 0.
    """

    vectors: Floats
    weights: Floats
    intercept: float
    gamma: float
    form = "kernel"

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or self.weights.shape != self.vectors.shape[:1]:
            raise BadParameter("weights", "<weights>", "one for each support vector")
        if check_finite(self.gamma, "gamma") <= 0:
            raise BadParameter("gamma", self.gamma, "> 0")
        check_finite(self.intercept, "intercept")

    def scores(self, features: Floats) -> Floats:
        """Return the decision values; above 0 is positive."""
        if features.ndim != 2 or features.shape[1] != self.vectors.shape[1]:
            raise BadParameter("features", features.shape, "as wide as the support vectors")
        scores = np.full(len(features), self.intercept)
        own = (self.vectors**2).sum(axis=1)
        for rows in blocks(len(features), max(1, len(self.vectors))):
            some = features[rows]
            apart = (some**2).sum(axis=1)[:, None] - 2 * some @ self.vectors.T + own
            scores[rows] += np.exp(-self.gamma * np.maximum(apart, 0.0)) @ self.weights
        return scores

    def predict(self, features: Floats) -> Labels:
        """Return whether each is positive; equal rows are looked at once."""
        kept, places = np.unique(features, axis=0, return_inverse=True)
        return np.asarray(self.scores(kept)[places.reshape(-1)] > 0)

    def arrays(self) -> dict[str, Floats]:
        """Return its numbers by name."""
        scale = np.array([self.intercept, self.gamma])
        return {"vectors": self.vectors, "weights": self.weights, "scale": scale}


@dataclass(frozen=True, slots=True, eq=False)
class LinearModel:
    """A weight for each feature, and an intercept."""

    weights: Floats
    intercept: float
    form = "linear"

    def __post_init__(self) -> None:
        check_finite(self.intercept, "intercept")
        if self.weights.ndim != 1:
            raise BadParameter("weights", "<weights>", "one for each feature")

    def predict(self, features: Floats) -> Labels:
        """Return whether each is positive."""
        if features.shape[1:] != self.weights.shape:
            raise BadParameter("features", features.shape, "as wide as the weights")
        return np.asarray(features @ self.weights + self.intercept > 0)

    def arrays(self) -> dict[str, Floats]:
        """Return its numbers by name."""
        return {"weights": self.weights, "scale": np.array([self.intercept])}


@dataclass(frozen=True, slots=True, eq=False)
class TableModel:
    """A decision for every row of classes.

    Attributes:
        centres: What the classes of each feature stand for, in rising order.
        decisions: 0 or 1, the last feature running fastest.
    """

    centres: tuple[Floats, ...]
    decisions: Floats
    form = "table"

    def __post_init__(self) -> None:
        rows = check_table_size([len(one) for one in self.centres])
        if self.decisions.shape != (rows,) or not np.isin(self.decisions, (0, 1)).all():
            raise BadParameter("decisions", "<decisions>", "0 or 1 for every row of classes")

    def predict(self, features: Floats) -> Labels:
        """Return the decision for the nearest classes."""
        if features.ndim != 2 or features.shape[1] != len(self.centres):
            raise BadParameter("features", features.shape, "as wide as the table")
        place = np.zeros(len(features), dtype=np.int64)
        for column, centres in zip(features.T, self.centres, strict=True):
            middles = (centres[1:] + centres[:-1]) / 2
            place = place * len(centres) + np.searchsorted(middles, column)
        return np.asarray(self.decisions[place] > 0)

    def arrays(self) -> dict[str, Floats]:
        """Return its numbers by name."""
        sizes = np.array([float(len(one)) for one in self.centres])
        return {
            "sizes": sizes,
            "centres": np.concatenate(self.centres),
            "decisions": self.decisions,
        }


@dataclass(frozen=True, slots=True)
class ConstantModel:
    """The only label that reports had, or negative where there was none."""

    label: bool
    form = "constant"

    def predict(self, features: Floats) -> Labels:
        """Return the same of everything."""
        return np.full(len(features), self.label)

    def arrays(self) -> dict[str, Floats]:
        """Return its numbers by name."""
        return {"label": np.array([float(self.label)])}


def export_model(model: classifiers.Classifier, centres: Sequence[Floats] | None) -> ExportedModel:
    """Return a fitted model in a form that needs no scikit-learn.

    Args:
        model: As ``classifiers.fit`` returns it.
        centres: What the classes of each feature stand for, or nothing where features are numbers.
    """
    if isinstance(model, classifiers.ConstantClassifier):
        return ConstantModel(model.label)
    if not isinstance(model, classifiers.SklearnClassifier):
        raise BadParameter("model", type(model).__name__, "to be one of scikit-learn")
    machine = model.estimator
    if hasattr(machine, "support_vectors_") and machine.kernel == "rbf":
        return export_svc(machine)
    if hasattr(machine, "coef_"):
        weights = np.asarray(machine.coef_, dtype=np.float64).reshape(-1)
        return LinearModel(weights, float(np.ravel(machine.intercept_)[0]))
    if centres is None:
        raise BadParameter(
            "classifier",
            type(machine).__name__,
            "to be svm, linear-svm or logistic where values are numbers: others have no form "
            "that can be published",
        )
    check_table_size([len(one) for one in centres])
    rows = np.stack(np.meshgrid(*centres, indexing="ij"), axis=-1).reshape(-1, len(centres))
    return TableModel(tuple(centres), model.predict(rows).astype(np.float64))


def export_svc(machine: Any) -> KernelModel:  # Any: scikit-learn has no types
    """Return the numbers of an SVC with a Gaussian kernel."""
    return KernelModel(
        np.asarray(machine.support_vectors_, dtype=np.float64),
        np.asarray(machine.dual_coef_, dtype=np.float64)[0],
        float(machine.intercept_[0]),
        float(machine._gamma),
    )


def check_table_size(sizes: Sequence[int]) -> int:
    """Return how many rows of classes there are, if a table can hold them."""
    rows = math.prod(sizes)
    if rows > MOST_DECISIONS:
        rule = f"at most {MOST_DECISIONS}: fewer attributes or classes, or the classifier svm"
        raise BadParameter("rows of classes", rows, rule)
    return rows


def model_from_arrays(form: str, arrays: Mapping[str, Floats]) -> ExportedModel:
    """Make a model of its numbers, or raise BadParameter or KeyError."""
    if form == "constant":
        return ConstantModel(bool(arrays["label"][0]))
    if form == "kernel":
        intercept, gamma = arrays["scale"].tolist()
        return KernelModel(arrays["vectors"], arrays["weights"], intercept, gamma)
    if form == "linear":
        return LinearModel(arrays["weights"], float(arrays["scale"][0]))
    if form != "table":
        raise BadParameter("form", form, "one of constant, kernel, linear, table")
    sizes = arrays["sizes"].astype(np.int64)
    if (sizes < 1).any() or sizes.sum() != len(arrays["centres"]):
        raise BadParameter("sizes", "<sizes>", "those of the centres")
    centres = np.split(arrays["centres"], np.cumsum(sizes)[:-1])
    return TableModel(tuple(centres), arrays["decisions"])
