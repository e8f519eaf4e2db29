"""How well classes were told: accuracy, and the mean F of the classes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.errors import BadParameter


@dataclass(frozen=True, slots=True)
class ClassificationScores:
    """What a model reached on examples.

    Attributes:
        accuracy: Share of examples whose class was told.
        macro_f1: Mean over the classes of the harmonic mean of precision and recall; that of a
            class that was never told is 0.
        n: Examples.
    """

    accuracy: float
    macro_f1: float
    n: int


def classification_scores(
    predicted: NDArray[np.integer], labels: NDArray[np.integer], classes: int
) -> ClassificationScores:
    """Compare what was told with what is so."""
    if np.shape(predicted) != np.shape(labels) or not len(labels):
        raise BadParameter("predicted", np.shape(predicted), "one for each label, at least one")
    pairs = np.bincount(labels * classes + predicted, minlength=classes**2).reshape(
        classes, classes
    )
    hits, sides = np.diag(pairs), pairs.sum(axis=0) + pairs.sum(axis=1)
    f1 = np.divide(2.0 * hits, sides, out=np.zeros(classes), where=sides > 0)
    return ClassificationScores(float(hits.sum() / len(labels)), float(f1.mean()), len(labels))
