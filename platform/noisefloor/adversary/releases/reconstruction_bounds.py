"""What no reconstruction can pass: bounds for a missing record, by guarantee and prior.

They hold for every attack, learned or exact. Candidates for one record are neighbours by
substitution; a guarantee for records added or removed reaches them in two steps.
"""

from dataclasses import replace

import numpy as np

from noisefloor.accounting import success
from noisefloor.checks import Floats, check_count
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee, Neighbours

_LARGEST = 700.0
"""e to the power of more overflows; a delta times it is above 1 long before."""


def group_guarantee(guarantee: Guarantee, size: int) -> Guarantee:
    """Return what is guaranteed to inputs that lie ``size`` neighbours apart.

    Formula: ``size epsilon`` and ``delta (1 + e^epsilon + ... + e^((size - 1) epsilon))``.
    Reference: Vadhan 2017, lemma 2.2 (group privacy), doi 10.1007/978-3-319-57048-8_7.
    """
    check_count(size, "size")
    if not guarantee.is_finite:
        return guarantee
    steps = np.minimum(np.arange(size) * guarantee.epsilon, _LARGEST)
    delta = min(1.0, guarantee.delta * float(np.exp(steps).sum())) if guarantee.delta else 0.0
    return replace(guarantee, epsilon=size * guarantee.epsilon, delta=delta)


def as_substitution(guarantee: Guarantee) -> Guarantee:
    """Return the guarantee for a record that becomes another: twice the one for a record added.

    Raises:
        BadParameter: The guarantee is for another relation than one of records.
    """
    if guarantee.neighbours is Neighbours.RECORD_SUBSTITUTE:
        return guarantee
    if guarantee.neighbours is not Neighbours.RECORD_ADD_REMOVE:
        raise BadParameter("neighbours", guarantee.neighbours.value, "a relation of records")
    return replace(group_guarantee(guarantee, 2), neighbours=Neighbours.RECORD_SUBSTITUTE)


def candidate_bound(guarantee: Guarantee, prior: Floats) -> float:
    """Bound how often the true one of several candidates is named, each two being neighbours.

    Formula: ``success(epsilon, 1 / p, delta)`` with p the share of the most likely candidate. For
    a prior that is not uniform: weigh P(named | c) <= e^epsilon P'(named | c) + delta by
    ``q q' (1 - p) / (1 - q)`` for shares q, q' of two candidates, and sum.
    """
    return float(success(guarantee.epsilon, 1 / float(np.max(prior)), guarantee.delta))
