"""What is scored of a published classifier: right labels, and how sure it is of the true ones."""

import numpy as np
from numpy.typing import NDArray

from noisefloor_sim.pipelines.api import Metric
from noisefloor_sim.pipelines.scoring import proportion_metric


def label_log_odds(logits: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return ln p / (1 - p) of the true label of each record."""
    rows = np.arange(len(labels))
    true = logits[rows, labels].copy()
    others = logits.copy()
    others[rows, labels] = -np.inf
    return np.asarray(true - np.logaddexp.reduce(others, axis=1))


def accuracy_metric(name: str, is_right: NDArray[np.bool_]) -> Metric:
    """Return an accuracy with its 95 % interval over the people who are asked about."""
    right = int(np.count_nonzero(is_right))
    return proportion_metric(f"accuracy.{name}", right, len(is_right))
