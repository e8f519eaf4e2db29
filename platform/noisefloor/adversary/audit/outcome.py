"""How often an attack was right, beside what theory says of it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary.audit.intervals import lower_limit, upper_limit
from noisefloor.checks import Floats
from noisefloor.errors import BadParameter
from noisefloor.randomness import Source

_MISSED = 0.05
"""The probability that an interval misses the true rate, at most."""

Indices = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class AttackOutcome:
    """What an attack reached in n independent games.

    Attributes:
        right: Games in which the guess was the truth.
        n: Games.
        baseline: How often the best guess from the prior alone is right.
        bound: What no attack can pass if the guarantee holds; 1 if nothing is promised.
        closed_form: How often this attack is right by its distribution, where that is known.
        is_covered: Whether the guarantee speaks of what was attacked at all.
        candidates: Among how many values the adversary chooses.
    """

    right: int
    n: int
    baseline: float
    bound: float
    closed_form: float | None = None
    is_covered: bool = True
    candidates: int = 2

    def __post_init__(self) -> None:
        if not 0 <= self.right <= self.n or self.n < 1:
            raise BadParameter("right", self.right, f"in [0, n={self.n}], and n >= 1")

    @property
    def success(self) -> float:
        """The share of games in which the guess was the truth."""
        return self.right / self.n

    @property
    def advantage(self) -> float:
        """By how much the success exceeds that of a guess from the prior alone."""
        return self.success - self.baseline

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % Clopper-Pearson interval of the success."""
        low = lower_limit(self.right, self.n, _MISSED / 2)
        return float(low), float(upper_limit(self.right, self.n, _MISSED / 2))


def score(
    guessed: NDArray[np.integer],
    truth: NDArray[np.integer] | NDArray[np.bool_],
    *,
    baseline: float,
    bound: float,
    closed_form: float | None = None,
    is_covered: bool = True,
    candidates: int = 2,
) -> AttackOutcome:
    """Count the right guesses; only the game has the truth."""
    if guessed.shape != truth.shape:
        raise BadParameter("guessed", guessed.shape, f"of the shape of the truth, {truth.shape}")
    right = int(np.count_nonzero(guessed == truth))
    return AttackOutcome(
        right, truth.size, baseline, float(bound), closed_form, is_covered, candidates
    )


def draw_truth(prior: Floats, count: int, source: Source) -> Indices:
    """Return ``count`` candidates drawn by the prior, to play a game with."""
    below_one = np.nextafter(2.0**64, 0.0)
    ends = np.minimum(np.cumsum(prior)[:-1] * 2.0**64, below_one).astype(np.uint64)
    return np.searchsorted(ends, source.stage("truth").words(count), side="right")
