"""How guarantees add up: in sequence, in parallel, and over groups.

Every sum is rounded upwards, so no order of adding and no float error understates a loss. Only
like is added to like: another relation or another model of trust has to be converted first. Tight
accounting of many noisy releases is the business of ``accountant``.
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

from noisefloor.checks import check_count
from noisefloor.errors import BadParameter, IncompatibleGuarantees
from noisefloor.privacy import Guarantee, Neighbours

_BEYOND_FLOATS = "the epsilons add up beyond what a float can hold"
_SAFETY = 1 + 2.0**-48
"""Above the rounding of two expm1 and a division, each good to a unit or so in the last place."""


def sequential(guarantees: Iterable[Guarantee]) -> Guarantee:
    """Add guarantees of releases about the same subjects, chosen adaptively or not.

    Args:
        guarantees: At least one; all under one relation and one model.

    Returns:
        The sums of epsilon and of delta (at most 1), rounded upwards. If one is infinite, so is
        the sum. Reasons are kept, each once.

    Raises:
        UnlikeNeighbours: The guarantees do not speak of the same relation or model.

    Reference: Dwork and Roth 2014, chapter 3 (basic composition), doi 10.1561/0400000042.
    """
    parts = _alike(guarantees)
    return _combined(
        parts,
        epsilon=sum_up([part.epsilon for part in parts]),
        delta=sum_up([part.delta for part in parts]),
    )


def parallel(guarantees: Iterable[Guarantee]) -> Guarantee:
    """Take the worst of guarantees about disjoint parts of the subjects.

    The partition has to be fixed beforehand and must not depend on the data: a neighbour then
    touches one part only. If a changed record may move from one part to another (a partition by
    value under substitution), it touches two: use ``sequential`` on those two.

    Args:
        guarantees: One for each part; all under one relation and one model.

    Returns:
        The largest epsilon with the largest delta; reasons are kept, each once.

    Raises:
        UnlikeNeighbours: The guarantees do not speak of the same relation or model.

    Reference: McSherry 2009 (parallel composition), doi 10.1145/1559845.1559850.
    """
    parts = _alike(guarantees)
    return _combined(
        parts,
        epsilon=max(part.epsilon for part in parts),
        delta=max(part.delta for part in parts),
    )


def group(guarantee: Guarantee, size: int, neighbours: Neighbours) -> Guarantee:
    """Convert a guarantee to a relation whose neighbours are ``size`` steps apart.

    A user who holds 20 items is 20 item steps away from any other: ``group(g, 20, USER)``. That
    ``size`` steps are enough is the caller's promise; it cannot be checked here.

    Args:
        guarantee: What holds for one step.
        size: Steps between neighbours of the new relation, at least 1.
        neighbours: The new relation.

    Returns:
        ``size * epsilon``; delta times ``(e^(size epsilon) - 1) / (e^epsilon - 1)``, at most 1.

    Reference: Vadhan 2017 (group privacy; delta here as the exact geometric sum),
    doi 10.1007/978-3-319-57048-8_7.
    """
    steps = check_count(size, "size")
    epsilon = product_up(guarantee.epsilon, steps)
    delta = min(1.0, _group_delta(guarantee.epsilon, guarantee.delta, steps))
    reason = guarantee.reason or (_BEYOND_FLOATS if math.isinf(epsilon) else "")
    return Guarantee(epsilon, neighbours, delta=delta, model=guarantee.model, reason=reason)


def sum_up(values: Sequence[float]) -> float:
    """Add floats that are not negative; the result is never below the true sum."""
    try:
        total = math.fsum(values)
    except OverflowError:
        return math.inf
    if math.isinf(total):
        return total
    # fsum rounds correctly, so the sign of what is left over tells on which side it fell.
    left_over = math.fsum([*values, -total])
    return math.nextafter(total, math.inf) if left_over > 0 else total


def product_up(value: float, times: int) -> float:
    """Multiply a float that is not negative; the result is never below the true product."""
    return value if math.isinf(value) else float_up(Fraction(value) * times)


def float_up(exact: Fraction) -> float:
    """Return the least float that is not below a rational number, or infinity."""
    try:
        nearest = float(exact)
    except OverflowError:
        return math.inf
    return math.nextafter(nearest, math.inf) if Fraction(nearest) < exact else nearest


def _alike(guarantees: Iterable[Guarantee]) -> list[Guarantee]:
    """Return the guarantees as a list of at least one, all of one kind."""
    parts = list(guarantees)
    if not parts:
        raise BadParameter("guarantees", "<none>", "to hold at least one")
    for part in parts[1:]:
        check_compatible(parts[0], part)
    return parts


def check_compatible(first: Guarantee, other: Guarantee) -> None:
    """Refuse two guarantees that do not speak of the same relation and model."""
    if first.neighbours is not other.neighbours:
        raise IncompatibleGuarantees(
            f"A guarantee for {other.neighbours.value} neighbours cannot be added to one for "
            f"{first.neighbours.value} neighbours. Convert it first: group(guarantee, size, "
            f"Neighbours.{first.neighbours.name}), size being the steps between two neighbours."
        )
    if first.model is not other.model:
        raise IncompatibleGuarantees(
            f"A guarantee in the {other.model.value} model cannot be added to one in the "
            f"{first.model.value} model: different parties are trusted, and group() converts "
            "relations, not trust. Keep one ledger for each model."
        )


def _combined(parts: Sequence[Guarantee], *, epsilon: float, delta: float) -> Guarantee:
    """Make the combined guarantee; reasons are sorted, so that order does not matter."""
    reason = "; ".join(sorted({part.reason for part in parts if part.reason}))
    if math.isinf(epsilon) and all(part.is_finite for part in parts):
        reason = "; ".join(filter(None, [reason, _BEYOND_FLOATS]))
    first = parts[0]
    return Guarantee(
        epsilon, first.neighbours, delta=min(1.0, delta), model=first.model, reason=reason
    )


def _group_delta(epsilon: float, delta: float, steps: int) -> float:
    """Return delta for n steps, not below the true value (it may pass 1)."""
    if delta == 0 or steps == 1:
        return delta
    if epsilon == 0:
        return product_up(delta, steps)
    exponent = product_up(epsilon, steps)
    if exponent > 700:  # e^700 times the smallest useful delta is far above 1
        return 1.0
    return delta * (math.expm1(exponent) / math.expm1(epsilon)) * _SAFETY
