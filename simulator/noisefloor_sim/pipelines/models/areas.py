"""What a curve of an attack may be at most, and how one is told in metrics."""

import numpy as np

from noisefloor.accounting.bounds import true_positive_rate
from noisefloor.adversary.models.shadows import Attacked
from noisefloor.privacy import Guarantee
from noisefloor_sim.pipelines.base import Metric

POINTS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""False positive rates at which a curve is drawn."""

_GRID = np.linspace(0.0, 1.0, 4_001)


def area_bound(guarantee: Guarantee) -> float:
    """Return the largest area under a curve that the guarantee allows, for its own relation."""
    if not guarantee.is_finite:
        return 1.0
    return float(np.trapezoid(rate_bound(_GRID, guarantee), _GRID))


def rate_bound(rate: float | np.ndarray, guarantee: Guarantee) -> np.ndarray:
    """Return the largest true positive rate at a false positive rate."""
    return np.asarray(true_positive_rate(rate, guarantee.epsilon, guarantee.delta))


def area_metric(name: str, found: Attacked) -> Metric:
    """Tell the area under the curve, with an interval over models: they are independent."""
    n = len(found.roc.members) + len(found.roc.others)
    return Metric.normal(f"attack.{name}.auc", float(found.aucs.mean()), found.auc_error, n)


def area_metrics(
    name: str, found: Attacked, proved: Guarantee, claimed: Guarantee
) -> list[Metric]:
    """Tell area, advantage and curve of an attack, beside what is proved and what is claimed.

    A rate is left out where the sample does not resolve it.
    """
    roc = found.roc
    n = len(roc.members) + len(roc.others)
    metrics = [
        area_metric(name, found),
        Metric(f"attack.{name}.auc_bound", area_bound(proved), n=n),
        Metric(f"attack.{name}.claimed_auc", area_bound(claimed), n=n),
        Metric(f"attack.{name}.advantage", roc.advantage, n=n),
    ]
    told = roc.resolved(POINTS)
    for rate, true in told.items():
        if true is not None:
            bound = float(rate_bound(rate, proved))
            at = f"{rate:g}"
            metrics += [
                Metric.normal(f"attack.{name}.tpr.at_{at}", true, roc.at(rate)[1], n),
                Metric(f"attack.{name}.tpr_bound.at_{at}", bound, n=n),
            ]
    return metrics
