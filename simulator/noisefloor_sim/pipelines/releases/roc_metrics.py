"""What a curve of an attack may be at most, and its metrics."""

import numpy as np

from noisefloor.accounting import true_positive_rate
from noisefloor.adversary.models import MembershipCurve
from noisefloor.privacy import Guarantee
from noisefloor_sim.pipelines.api import Metric
from noisefloor_sim.pipelines.plotting import student_interval

FALSE_POSITIVE_RATES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""False positive rates at which a curve is drawn."""

_GRID = np.linspace(0.0, 1.0, 4_001)


def auc_bound(guarantee: Guarantee) -> float:
    """Return the largest area under a curve that the guarantee allows, for its own relation."""
    if not guarantee.is_finite:
        return 1.0
    return float(np.trapezoid(true_positive_bound(_GRID, guarantee), _GRID))


def true_positive_bound(rate: float | np.ndarray, guarantee: Guarantee) -> np.ndarray:
    """Return the largest true positive rate at a false positive rate."""
    return np.asarray(true_positive_rate(rate, guarantee.epsilon, guarantee.delta))


def auc_metric(name: str, found: MembershipCurve) -> Metric:
    """Tell the area under the curve, with Student's interval over models: they are independent."""
    n = len(found.roc.members) + len(found.roc.others)
    ends = student_interval(found.aucs.tolist())
    return Metric(f"attack.{name}.auc", float(found.aucs.mean()), *ends, n)


def roc_curve_metrics(
    name: str, found: MembershipCurve, proved: Guarantee, claimed: Guarantee
) -> list[Metric]:
    """Tell area, advantage and curve of an attack, beside what is proved and what is claimed.

    A rate is left out where the sample does not resolve it. True positive rates have no interval:
    scores of one model are not independent, and the threshold is itself estimated.
    """
    roc = found.roc
    n = len(roc.members) + len(roc.others)
    metrics = [
        auc_metric(name, found),
        Metric(f"attack.{name}.auc_bound", auc_bound(proved), n=n),
        Metric(f"attack.{name}.claimed_auc", auc_bound(claimed), n=n),
        Metric(f"attack.{name}.advantage", roc.advantage, n=n),
    ]
    resolved = roc.resolved(FALSE_POSITIVE_RATES)
    for rate, true in resolved.items():
        if true is not None:
            bound = float(true_positive_bound(rate, proved))
            at = f"{rate:g}"
            metrics += [
                Metric(f"attack.{name}.tpr.at_{at}", true, n=n),
                Metric(f"attack.{name}.tpr_bound.at_{at}", bound, n=n),
            ]
    return metrics
