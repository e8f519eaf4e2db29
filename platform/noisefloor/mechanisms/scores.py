"""Rows of scores on a declared integer grid: what mechanisms that pick one of many take."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Array, Floats, check_count, check_finite, check_reals
from noisefloor.errors import BadParameter
from noisefloor.mechanisms.base import Estimate, Reports, Tally, check_reports_counted
from noisefloor.mechanisms.randomised_response import count_symbols
from noisefloor.privacy import Neighbours


@dataclass(frozen=True, slots=True)
class ScoreGrid:
    """Users score ``size`` candidates in [low, high]; scores are taken to ``steps`` grid steps.

    In the local model any two rows are neighbours: every score may move, each its own way, by the
    whole range. That is why the range, and not some sensitivity of 1, sets the noise.
    """

    size: int
    low: float = 0.0
    high: float = 1.0
    steps: int = 64

    def __post_init__(self) -> None:
        check_count(self.size, "size", least=2, most=1 << 16)
        check_count(self.steps, "steps", least=1, most=1 << 12)
        if not check_finite(self.low, "low") < check_finite(self.high, "high"):
            raise BadParameter("high", self.high, f"> low={self.low!r}")

    def check(self, values: object) -> Array:
        """Return the rows if every score lies in the range; refuse, never clip."""
        return check_reals(values, self.low, self.high, width=self.size)

    def grid(self, rows: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the nearest grid integers, 0 for low and ``steps`` for high."""
        scaled = np.subtract(rows, self.low, dtype=np.float64)
        scaled *= self.steps / (self.high - self.low)
        return np.rint(scaled, out=scaled).astype(np.int64)

    def row(self, value: object) -> NDArray[np.int64]:
        """Return the grid integers of one user's row."""
        return self.grid(self.check(np.asarray(value, dtype=np.float64)[None])).reshape(-1)

    def corner_pairs(self) -> Sequence[tuple[object, object]]:
        """Return, for each candidate, the rows that make it most and least likely.

        The chance to be picked rises in one's own score and falls in all others: so no pair of
        rows has a larger ratio than these.
        """
        best = np.full((self.size, self.size), self.low)
        np.fill_diagonal(best, self.high)
        worst = self.high + self.low - best
        return list(zip(best, worst, strict=True))


class SelectionMechanism(ABC):
    """What all mechanisms share that pick one of many by chances that follow from the scores."""

    __slots__ = ()

    scores: ScoreGrid

    @abstractmethod
    def chances(self, value: object) -> Floats:
        """Return the chance of each candidate, given one row of scores."""

    def log_likelihood(self, reports: Reports, value: object) -> Floats:
        """Return ln P(index | row of scores)."""
        return np.asarray(np.log(self.chances(value))[np.asarray(reports, dtype=np.intp)])

    def tally(self, reports: Reports) -> Tally:
        """Return how often each candidate was asked for."""
        return count_symbols(reports, self.scores.size)

    def estimate(self, tally: Tally, n: int) -> Estimate:
        """Return the share of requests for each candidate, as an estimate of its chance."""
        share = np.asarray(tally) / check_reports_counted(n)
        return Estimate(share, np.sqrt(share * (1 - share) / n))

    def outputs(self) -> Reports:
        """Return every index."""
        return np.arange(self.scores.size)

    def worst_pairs(
        self, neighbours: Neighbours = Neighbours.USER
    ) -> Sequence[tuple[object, object]]:
        """Return the corners of the score range, for each candidate."""
        return self.scores.corner_pairs()


def aim_below(epsilon: float) -> float:
    """Return what to calibrate to, so that the rounding of weights stays within the request."""
    return epsilon - min(2e-7, 1e-5 * epsilon)


def add_margin(epsilon: float) -> float:
    """Return an epsilon that was summed in floating point, plus more than its rounding error."""
    return epsilon + min(1e-9, 1e-6 * epsilon)
