"""How many attributes and how many classes: chosen from public figures alone.

Every rule here takes how many owners and attributes there are, and epsilon: no record and no
report. What is chosen is therefore no release, costs nothing, and can be written down before
anybody reports.

The joint response. A report over M = 2 L^k symbols is the truth with probability
lam = (e^eps - 1) / (e^eps + M - 1), and even noise otherwise. A debiased share from N reports
varies like 1 / (N lam^2): such a report is worth lam^2 plain ones. Each owner tells k of d
attributes, so that each attribute is reported by n k / d owners:

    n_eff = n k lam^2 / d     plain records' worth of what is known of one attribute,

and k is the one that makes k lam^2 largest. Cutting an attribute into L classes loses what
differs inside one of them, of the order of 1 / L in a density, so 1 / L^2 in the square; L
shares from n_eff records have a total variance of the order of L / n_eff. Their sum is smallest
at L ~ n_eff^(1/3), the rate of every histogram. Hence the odd number nearest to
2 + n_eff^(1/3), within 3 to 5: two classes cannot show a middle, an even number cuts it in two,
and on small tables more than five gained nothing that the noise would leave.

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

MOST_OWNERS = 1 << 40

QueryMode: TypeAlias = Literal["protected", "on-device"]

_MOST_FIXED = 10
_STARTING_CLASSES = 4
"""At which the size of a tuple is tried out before the number of classes is known."""


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


def joint_choice(owners: int, attributes: int, epsilon: float) -> ReportSize:
    """Choose for the joint response: how many attributes to draw, and how many classes.

    Args:
        owners: How many will report, as far as is publicly known; the order of size is enough.
        attributes: How many there are to draw from.
        epsilon: Of a report.
    """
    _check(owners, attributes, epsilon)
    first = joint_size(attributes, _STARTING_CLASSES, epsilon)
    rough = owners * _worth(first, _STARTING_CLASSES, epsilon) / attributes
    classes = 3 if 2 + math.cbrt(rough) < 4 else 5
    chosen = joint_size(attributes, classes, epsilon)
    kept = joint_kept_share(chosen, classes, epsilon)
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


def joint_size(attributes: int, classes: int, epsilon: float) -> int:
    """Return how many attributes to draw: what makes k lam^2 largest, the least if several do."""
    most = int(math.log(MOST_SYMBOLS / 2) / math.log(classes))
    worths = [_worth(one, classes, epsilon) for one in range(1, min(attributes, most) + 1)]
    return worths.index(max(worths)) + 1


def joint_kept_share(chosen: int, classes: int, epsilon: float) -> float:
    """Return how much of a joint response is the truth beyond chance."""
    return _share(epsilon, 2 * classes**chosen)


def _worth(chosen: int, classes: int, epsilon: float) -> float:
    """Return k lam^2: what one owner's report is worth, over all attributes."""
    return chosen * joint_kept_share(chosen, classes, epsilon) ** 2


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
