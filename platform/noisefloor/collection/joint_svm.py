"""The paper's classifier on joint responses (jSVM): nothing is changed but the response.

Everybody tells of the same K attributes, drawn without data, and the whole tuple is one response
with the whole epsilon. Its rows go to scikit-learn's SVC as they are; the model is a function of
them (post-processing). Reports are few different rows, many times over: they are weighted, not
repeated, which is the same problem and the same solution.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from noisefloor.checks import Floats
from noisefloor.collection.classes import Classes, Codes
from noisefloor.collection.classifiers import check_sklearn
from noisefloor.collection.schema import Labels
from noisefloor.errors import BadParameter
from noisefloor.mechanisms.base import Reports


@dataclass(frozen=True, slots=True, eq=False)
class JointSVM:
    """A support vector machine on the classes of some attributes.

    Attributes:
        classes: Of all attributes.
        columns: The attributes that everybody told of.
        machine: scikit-learn's, or the only label that reports had.
    """

    classes: Classes
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
        told = self.machine.predict(self.classes.values(kept, self.columns)) > 0
        return np.asarray(told[places.reshape(-1)])


def fit_svm(
    classes: Classes, columns: Sequence[int], reports: Reports, cost: float = 1.0
) -> JointSVM:
    """Fit the machine to labelled joint responses about the same columns.

    Args:
        classes: Of all attributes.
        columns: Those that everybody told of.
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
