"""How many attributes and how many classes: chosen from public figures alone.

Every rule here takes how many owners, attributes and labels there are, and epsilon: no record and
no report. What is chosen is therefore no release, costs nothing, and can be written down before
anybody reports.

The joint response. A report over M = C L^k symbols, C being the number of labels, is the truth
with probability lam = (e^eps - 1) / (e^eps + M - 1), and even noise otherwise. A debiased share
from N reports varies like 1 / (N lam^2): such a report is worth lam^2 plain ones. Each owner tells
k of d attributes, so that each attribute is reported by n k / d owners:

    n_eff = n k lam^2 / d     plain records' worth of what is known of one attribute,

and k is the one that makes k lam^2 largest. Cutting an attribute into L classes loses what differs
inside one of them; more of them have more shares to estimate, from fewer plain records' worth. So
L grows with n_eff, in steps (``joint_choice``). Of all rules with at most three steps that is the
one with the best mean accuracy on tables that judge nothing (``bench/class_counts.py``, which also
compares it with the best L in hindsight).

The unified response (the paper's, epsilon split over K attributes and the label). Each value has
v = epsilon / (K + 1), so that lam_v = (e^v - 1) / (e^v + L - 1) for a value of L classes and
lam_t = (e^v - 1) / (e^v + 1) for the label. Cutting keeps 1 - 1 / L^2 of the variance of an even
value. Of the effect of an attribute, n_eff / (n_eff + L) is estimated, n_eff = n (lam_v lam_t)^2:
signal over signal and noise of L figures. A protected query shows lam_v^2 of it. K and L make

    K (1 - 1 / L^2) n_eff / (n_eff + L) lam_v^2

largest, the last factor left out where queries stay on the device; both within the bounds in
which the paper looks, K in 1 to 10 and L in 2 to 5.

The same K attributes of everybody in one joint response (for the same classifier as the paper's):
the same figure, but a report is the truth with the share of 2 L^K symbols, and a query, which has
no label, with that of L^K.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Literal, TypeAlias

from noisefloor.checks import check_count, check_epsilon
from noisefloor.collection.encoding.joint_response import MOST_SYMBOLS
from noisefloor.tables import MOST_LABELS

MOST_OWNERS = 1 << 40

QueryMode: TypeAlias = Literal["protected", "on-device"]

STEPS = ((0.0, 2), (1.0, 5), (500.0, 12))
"""Plain records' worth of an attribute in five classes, and the classes from there on."""

_REFERENCE = 5

_MOST_FIXED = 10


@dataclass(frozen=True, slots=True)
class ReportSize:
    """What a rule chose.

    Attributes:
        chosen: Attributes that an owner tells of.
        classes: The most that an attribute is cut into.
        kept_share: How much of a report is the truth beyond chance.
        effective: Plain records' worth of what will be known of one attribute.
    """

    chosen: int
    classes: int
    kept_share: float
    effective: float


def joint_choice(owners: int, attributes: int, epsilon: float, labels: int = 2) -> ReportSize:
    """Choose for the joint response: how many attributes to draw, and how many classes.

    Args:
        owners: How many will report, as far as is publicly known; the order of size is enough.
        attributes: How many there are to draw from.
        epsilon: Of a report.
        labels: How many classes the label has.
    """
    _check(owners, attributes, epsilon)
    check_count(labels, "labels", least=2, most=MOST_LABELS)
    known = _joint(owners, attributes, epsilon, labels, _REFERENCE).effective
    classes = max(classes for least, classes in STEPS if known >= least)
    return _joint(owners, attributes, epsilon, labels, classes)


def _joint(owners: int, attributes: int, epsilon: float, labels: int, classes: int) -> ReportSize:
    """Return the sizes of the joint response for a number of classes."""
    chosen = joint_size(attributes, classes, epsilon, labels)
    kept = joint_kept_share(chosen, classes, epsilon, labels)
    return ReportSize(chosen, classes, kept, owners * chosen * kept**2 / attributes)


def unified_choice(
    owners: int, attributes: int, epsilon: float, queries: QueryMode = "protected"
) -> ReportSize:
    """Choose for the unified response: K attributes and L classes for a given epsilon.

    Args:
        owners: How many will report, as far as is publicly known.
        attributes: How many there are to choose from.
        epsilon: Of a whole record, label included.
        queries: Whether those who ask later send protected values, or ask their own device.
    """
    _check(owners, attributes, epsilon)

    def shares(chosen: int, classes: int) -> tuple[float, float]:
        each = epsilon / (chosen + 1)
        return _share(each, classes) * _share(each, 2), _share(each, classes)

    return _best(owners, attributes, shares, queries)


def tuple_choice(
    owners: int, attributes: int, epsilon: float, queries: QueryMode = "protected"
) -> ReportSize:
    """Choose for one joint response about the same K attributes of everybody.

    Args:
        owners: How many will report, as far as is publicly known.
        attributes: How many there are to choose from.
        epsilon: Of a report.
        queries: Whether those who ask later send protected values, or ask their own device.
    """
    _check(owners, attributes, epsilon)

    def shares(chosen: int, classes: int) -> tuple[float, float]:
        symbols = classes**chosen
        return _share(epsilon, 2 * symbols), _share(epsilon, symbols)

    return _best(owners, attributes, shares, queries)


def joint_size(attributes: int, classes: int, epsilon: float, labels: int = 2) -> int:
    """Return how many attributes to draw: what makes k lam^2 largest, the least if several do."""
    most = int(math.log(MOST_SYMBOLS / labels) / math.log(classes))
    worths = [
        one * joint_kept_share(one, classes, epsilon, labels) ** 2
        for one in range(1, min(attributes, most) + 1)
    ]
    return worths.index(max(worths)) + 1


def joint_kept_share(chosen: int, classes: int, epsilon: float, labels: int = 2) -> float:
    """Return how much of a joint response is the truth beyond chance."""
    return _share(epsilon, labels * classes**chosen)


def _best(
    owners: int,
    attributes: int,
    shares: Callable[[int, int], tuple[float, float]],
    queries: QueryMode,
) -> ReportSize:
    """Return the sizes that give the best model and, if need be, the best queries."""
    found, most = ReportSize(1, 2, 0.0, 0.0), 0.0
    for chosen, classes in product(range(1, min(attributes, _MOST_FIXED) + 1), range(2, 6)):
        kept, shown = shares(chosen, classes)
        effective = owners * kept**2
        worth = chosen * (1 - classes**-2) * effective / (effective + classes)
        worth *= shown**2 if queries == "protected" else 1.0
        if worth > most:
            found, most = ReportSize(chosen, classes, kept, effective), worth
    return found


def _share(epsilon: float, symbols: int) -> float:
    return math.expm1(epsilon) / (math.expm1(epsilon) + symbols)


def _check(owners: int, attributes: int, epsilon: float) -> None:
    check_count(owners, "owners", most=MOST_OWNERS)
    check_count(attributes, "attributes", most=1 << 12)
    check_epsilon(epsilon)
