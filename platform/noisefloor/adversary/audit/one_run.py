"""Audit in one training run: many canaries, a fair coin for each, and a bound that knows they met.

Guesses about canaries of one run are not independent trials. Under (epsilon, delta) the number of
right ones is still no larger, in distribution, than that of independent responses with chance
e^epsilon / (1 + e^epsilon), but for a term in delta. Several runs are one: whatever a draw
decides, it touches one run only, so that all runs together are (epsilon, delta) in each draw.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary.audit.intervals import Floats
from noisefloor.checks import check_count, check_finite, check_probability
from noisefloor.errors import BadParameter
from noisefloor.privacy import LowerBound

LARGEST_EPSILON = 30.0
"""No number of guesses that fits in memory proves more."""

WELL_ABOVE = 100
"""How many times delta the probability of a wrong bound has to be. If 1/2 + x of the guesses are
right, delta adds about 2 delta / x to the p-value, however many guesses there are: at a hundred
times delta an x of 0.02 can be seen, at ten times delta it has to be 0.2."""

_TOLERANCE = 1e-6
_CHOICES = 24
"""How many numbers of guesses are tried on the half that chooses."""


@dataclass(frozen=True, slots=True)
class MembershipGuesses:
    """What one audit counted.

    Attributes:
        right: Guesses that were right.
        made: Canaries on which a guess was made; the others were passed over.
        canaries: All canaries whose membership was drawn, one or more runs together.
    """

    right: int
    made: int
    canaries: int

    def __post_init__(self) -> None:
        check_count(self.canaries, "canaries")
        check_count(self.made, "made", least=1, most=self.canaries)
        check_count(self.right, "right", least=0, most=self.made)

    def p_value(self, epsilon: float, delta: float = 0.0) -> float:
        """Bound the chance of n right guesses if (epsilon, delta) privacy holds.

        Formula: ``P(B >= v) + 2 m delta max_i P(v - i <= B < v) / i``, B binomial(r, q), q =
        ``e^epsilon / (1 + e^epsilon)``, for v right of r guesses on m canaries.
        Reference: Steinke, Nasr and Jagielski 2023, arXiv 2305.08846 (theorem 5.2).
        """
        if not 0 <= check_finite(epsilon, "epsilon") <= LARGEST_EPSILON:
            raise BadParameter("epsilon", epsilon, f"in [0, {LARGEST_EPSILON:g}]")
        if not 0 <= check_finite(delta, "delta") < 1:
            raise BadParameter("delta", delta, "in [0, 1)")
        tail = _tail(self.right, self.made, epsilon)
        if not delta:
            return tail
        below = _distribution(self.right, self.made, epsilon)[::-1].cumsum()
        worst = (below / np.arange(1, len(below) + 1)).max() if len(below) else 0.0
        return min(1.0, tail + 2 * self.canaries * delta * float(worst))

    def epsilon(self, alpha: float, delta: float = 0.0) -> float:
        """Return the largest epsilon that the count refutes, wrongly with alpha at most.

        A mechanism of a smaller epsilon is one of a larger as well, so any epsilon whose p-value
        is below alpha is refuted with all below it; the search need not find the largest.
        """
        check_probability(alpha, "alpha")
        if self.p_value(0.0, delta) >= alpha:
            return 0.0
        low, high = 0.0, LARGEST_EPSILON
        while high - low > _TOLERANCE:
            middle = (low + high) / 2
            is_refuted = self.p_value(middle, delta) < alpha
            low, high = (middle, high) if is_refuted else (low, middle)
        return low

    def bound(self, alpha: float, delta: float = 0.0) -> LowerBound:
        """Return the bound with its confidence; the trials are the guesses."""
        most = MembershipGuesses(self.made, self.made, self.canaries).epsilon(alpha, delta)
        return LowerBound(self.epsilon(alpha, delta), 1 - alpha, self.made, most)


def has_power(alpha: float, delta: float) -> bool:
    """Tell whether a one-run audit can find anything: delta is 0, or alpha is well above it."""
    check_probability(alpha, "alpha")
    return delta == 0 or alpha >= WELL_ABOVE * delta


def guess_members(scores: Floats, members: NDArray[np.bool_], made: int) -> MembershipGuesses:
    """Call the highest scores members and the lowest none, half of the guesses each.

    Args:
        scores: Of each canary, from the output of the run and anything but its draws.
        members: The draws: independent and fair, or the bound is void.
        made: How many guesses, fixed before the draws are seen.
    """
    _check(scores, members)
    check_count(made, "made", most=len(scores))
    order = np.argsort(scores, kind="stable")
    lows = made // 2
    highs = order[len(order) - (made - lows) :]
    right = np.count_nonzero(members[highs]) + np.count_nonzero(~members[order[:lows]])
    return MembershipGuesses(int(right), made, len(scores))


def one_run_bound(
    scores: Floats,
    members: NDArray[np.bool_],
    *,
    alpha: float,
    delta: float = 0.0,
    made: int | None = None,
) -> LowerBound:
    """Return the epsilon that one run (or several, joined) proves.

    Sees:      whatever the scores were computed from, the draws excepted.
    Knows:     the canaries; for choosing the number of guesses, the draws of half of them.
    Guesses:   which canaries were in.
    Reference: Steinke, Nasr and Jagielski 2023, arXiv 2305.08846.

    Args:
        scores: Of each canary, higher for members.
        members: Which canaries were in, by a fair coin each.
        alpha: The probability that the bound is wrong.
        delta: Audits (epsilon, delta) at this delta.
        made: How many guesses; if not given, the first half of the canaries chooses and the other
            half is guessed. Given the draws of the first half, the rest are as fair as before.
    """
    _check(scores, members)
    if made is not None:
        return guess_members(scores, members, made).bound(alpha, delta)
    half = len(scores) // 2
    check_count(half, "half of the canaries")
    chosen = _best_number(scores[:half], members[:half], alpha=alpha, delta=delta)
    made = max(1, round(chosen * (len(scores) - half) / half))
    return guess_members(scores[half:], members[half:], made).bound(alpha, delta)


def _best_number(scores: Floats, members: NDArray[np.bool_], *, alpha: float, delta: float) -> int:
    """Return the number of guesses that proves most; of equals, the largest."""
    numbers = np.unique(np.geomspace(1, len(scores), _CHOICES).round().astype(np.int64))
    found = [guess_members(scores, members, int(made)).epsilon(alpha, delta) for made in numbers]
    return int(numbers[len(numbers) - 1 - int(np.argmax(found[::-1]))])


def _tail(right: int, made: int, epsilon: float) -> float:
    """Return P(B >= right), exactly as the incomplete beta function has it."""
    from scipy.special import betainc  # lazy: scipy is slow to import

    if not right:
        return 1.0
    return float(betainc(right, made - right + 1, 1 / (1 + math.exp(-epsilon))))


def _distribution(stop: int, made: int, epsilon: float) -> Floats:
    """Return P(B = b) for b below ``stop``."""
    from scipy.special import gammaln  # lazy: scipy is slow to import

    count = np.arange(stop, dtype=np.float64)
    ways = gammaln(made + 1) - gammaln(count + 1) - gammaln(made - count + 1)
    # ln q = -ln(1 + e^-epsilon), and ln(1 - q) is epsilon below it.
    return np.asarray(np.exp(ways - made * np.log1p(np.exp(-epsilon)) - (made - count) * epsilon))


def _check(scores: Floats, members: NDArray[np.bool_]) -> None:
    if np.ndim(scores) != 1 or not len(scores) or np.isnan(scores).any():
        raise BadParameter("scores", np.shape(scores), "one or more, none of them NaN")
    if np.shape(members) != np.shape(scores) or members.dtype != np.bool_:
        raise BadParameter("members", np.shape(members), "a boolean for each score")
