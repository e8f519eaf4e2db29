"""Lower bounds from scores of independent games on two neighbouring inputs.

The first half of the games chooses the threshold, the second half says how well it does: so the
choice costs nothing, and the bound holds for any score. Games have to be independent: one run of
the mechanism each. Scores of many records under one model are not, and have ``one_run``.
"""

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from noisefloor.adversary.audit.intervals import Floats, lower_limit, upper_limit
from noisefloor.checks import check_probability
from noisefloor.errors import BadParameter
from noisefloor.privacy import LowerBound

FEWEST_GAMES = 8
"""On each input; far more are needed to prove anything."""

_CANDIDATES = 2_000

Measure: TypeAlias = Callable[[Floats, Floats], Floats]
"""What a true positive rate (from below) and a false one (from above) prove."""


def held_out_bound(
    inside: Floats, outside: Floats, *, alpha: float, delta: float = 0.0
) -> LowerBound:
    """Return the epsilon that the scores prove, by high ones or by low ones.

    Args:
        inside: Scores of games on the first input, which high ones stand for, as played.
        outside: Those on the second; their number may differ.
        alpha: The probability that the bound is wrong.
        delta: Audits (epsilon, delta) at this delta.
    """
    if not 0 <= delta < 1:
        raise BadParameter("delta", delta, "in [0, 1)")

    def epsilon(true: Floats, false: Floats) -> Floats:
        return _log_ratio(true - delta, false)

    return held_out(inside, outside, epsilon, alpha=alpha)


def held_out(inside: Floats, outside: Floats, measure: Measure, *, alpha: float) -> LowerBound:
    """Choose the event by the first half of the games, and measure it on the second."""
    check_probability(alpha, "alpha")
    for name, some in (("inside", inside), ("outside", outside)):
        if np.ndim(some) != 1 or len(some) < 2 * FEWEST_GAMES or np.isnan(some).any():
            rule = f"at least {2 * FEWEST_GAMES} scores, none of them NaN"
            raise BadParameter(name, np.shape(some), rule)
    sign, threshold = _best_event(
        inside[: len(inside) // 2], outside[: len(outside) // 2], measure, alpha
    )
    pair = inside[len(inside) // 2 :], outside[len(outside) // 2 :]
    hit, false = (sign * some >= threshold for some in pair[::sign])
    sizes = len(hit), len(false)
    bound = _measured(measure, np.array([hit.sum()]), np.array([false.sum()]), sizes, alpha)
    top = _measured(measure, np.array([sizes[0]]), np.array([0]), sizes, alpha)
    return LowerBound(max(0.0, bound.item()), 1 - alpha, min(sizes), max(0.0, top.item()))


def _best_event(
    inside: Floats, outside: Floats, measure: Measure, alpha: float
) -> tuple[int, float]:
    """Return sign and threshold: sign times score at least that, and for -1 sides are swapped."""
    levels = np.unique(np.concatenate([inside, outside]))
    if len(levels) > _CANDIDATES:
        levels = levels[np.linspace(0, len(levels) - 1, _CANDIDATES).astype(np.intp)]
    best = (-math.inf, 1, math.inf)
    for sign, first, second in ((1, inside, outside), (-1, outside, inside)):
        edges = np.sort(sign * levels)
        hits, false = (_at_least(sign * some, edges) for some in (first, second))
        found = _measured(measure, hits, false, (len(first), len(second)), alpha)
        place = int(found.argmax())
        best = max(best, (float(found[place]), sign, float(edges[place])))
    return best[1], best[2]


def _at_least(scores: Floats, edges: Floats) -> Floats:
    return np.asarray(len(scores) - np.searchsorted(np.sort(scores), edges))


def _measured(
    measure: Measure, hits: Floats, false: Floats, sizes: tuple[int, int], alpha: float
) -> Floats:
    """Apply the measure to limits that fail with alpha / 2 each."""
    low = lower_limit(hits.astype(np.int64), sizes[0], alpha / 2)
    high = upper_limit(false.astype(np.int64), sizes[1], alpha / 2)
    return np.nan_to_num(measure(low, high), nan=-math.inf, posinf=math.inf, neginf=-math.inf)


def _log_ratio(true: Floats, false: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.where(true > 0, np.log(np.maximum(true, 1e-300)) - np.log(false), -math.inf)
