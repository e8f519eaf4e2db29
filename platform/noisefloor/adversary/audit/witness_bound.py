"""A lower bound of epsilon from guesses of random bits, some of which may be left out.

A witness holds one of two inputs, by a fair random bit that nobody else uses. Whatever the guess
is made from, under epsilon-differential privacy it is right with probability at most
e^epsilon / (1 + e^epsilon), also given that it was made at all: so the number of right guesses is
stochastically below a binomial, and Clopper and Pearson's lower limit of the share of right ones,
as a logit, is a lower bound of epsilon. Which guesses are left out must follow from the reports
and the declared distribution alone, never from the bits.

Reference: Steinke, Nasr, Jagielski 2023, arXiv 2305.08846, theorem 3.1 (pure privacy).
"""

import math

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary.audit.intervals import lower_limit
from noisefloor.checks import Floats
from noisefloor.privacy import LowerBound

WITNESS_ALPHA = 1e-7
"""The probability that a bound from witnesses is wrong.

With ten claims at a point and a thousand points it is at most 1e-3 for a whole run.
"""


def bound_from_guesses(right: int, guesses: int, alpha: float = WITNESS_ALPHA) -> LowerBound:
    """Return the epsilon that a number of right guesses proves."""
    if guesses == 0:
        return LowerBound(0.0, 1 - alpha, 0, 0.0)
    return LowerBound(
        _logit(right, guesses, alpha), 1 - alpha, guesses, _logit(guesses, guesses, alpha)
    )


def guesses_of(scores: Floats, bits: NDArray[np.bool_], least: float) -> tuple[int, int]:
    """Return how many guesses are right, and how many are made.

    Args:
        scores: ln P(report | bit 1) - ln P(report | bit 0), of each witness.
        bits: Of each witness.
        least: Guess only where the score is at least so far from 0.
    """
    is_made = (np.abs(scores) >= least) & (scores != 0)
    right = np.count_nonzero((scores > 0)[is_made] == bits[is_made])
    return int(right), int(np.count_nonzero(is_made))


def _logit(right: int, guesses: int, alpha: float) -> float:
    share = float(lower_limit(right, guesses, alpha))
    return max(0.0, math.log(share / (1 - share))) if 0 < share < 1 else 0.0
