"""Randomised response on a set: name one of the best few, or one of the others, at random."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Array, Floats, blocks, check_count, check_epsilon
from noisefloor.laws import ONE
from noisefloor.mechanisms.base import (
    Estimate,
    Tally,
    check_reports_counted,
    response_estimate,
    unsupported,
)
from noisefloor.mechanisms.holding import hold_epsilon, hold_weight
from noisefloor.mechanisms.scores import Chooser, Scores
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source

_FEW = 8
"""Up to so many places are found by one argmax after the other; more by sorting."""


@dataclass(frozen=True, slots=True)
class TopSetResponse(Chooser):
    """Name one of the ``top`` best candidates, each e**epsilon times as likely as each other one.

    Guarantee:  pure DP, epsilon = ln(hold (size - top) / ((2**64 - hold) top)). Every row has a
                top set of the same size, so this ratio is met and never passed. Per request:
                requests add up.
    Neighbours: item = user: any row of scores to any other (local model).
    Domain:     rows of ``size`` reals in [low, high]; others are refused. Ties go to the first.
    Reference:  Kairouz, Oh, Viswanath 2014, arXiv 1407.1338 (``top`` = 1, ArgmaxResponse); the
                set in place of the best is our own derivation.

    Two steps, because candidates of equal 64-bit weights may not sum to 2**64 (3 of 6 do not): a
    coin says whether the report is of the top set, and a fair choice names one of its side.

    Attributes:
        size: Number of candidates.
        epsilon: What was asked for.
        top: Candidates in the top set.
        hold: Weight, out of 2**64, with which the report is of the top set.
    """

    size: int
    epsilon: float
    top: int
    low: float = 0.0
    high: float = 1.0
    hold: int = field(init=False)

    def __post_init__(self) -> None:
        size = self.scores.size
        top = check_count(self.top, "top", least=1, most=size - 1)
        object.__setattr__(self, "hold", hold_weight(check_epsilon(self.epsilon), top, size))

    @property
    def scores(self) -> Scores:  # type: ignore[override]  # follows from the parameters
        """The declared range of the scores."""
        return Scores(self.size, self.low, self.high)

    def randomise(self, values: object, source: Source) -> NDArray[np.unsignedinteger]:
        """Return the index of the candidate each user asks for."""
        rows = self.scores.check(values)
        coins, members, others = (source.stage(name) for name in ("hold", "member", "other"))
        reports = np.empty(len(rows), dtype=np.min_scalar_type(self.size - 1))
        for some in blocks(len(rows), self.size):
            best, answered = top_places(rows[some], self.top), reports[some]
            held = coins.bernoulli(self.hold, len(best))
            inside, outside = np.flatnonzero(held), np.flatnonzero(~held)
            answered[inside] = best[inside, members.below(self.top, inside.size)]
            other = others.below(self.size - self.top, outside.size).astype(np.intp)
            answered[outside] = _skipping(other, best[outside])
        return reports

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return the guarantee of the weight as rounded."""
        if neighbours not in (Neighbours.ITEM, Neighbours.USER):
            return unsupported(self, neighbours)
        return Guarantee(hold_epsilon(self.hold, self.top, self.size), neighbours)

    @property
    def _member(self) -> float:
        return self.hold / ONE / self.top

    @property
    def _other(self) -> float:
        return (ONE - self.hold) / ONE / (self.size - self.top)

    def chances(self, value: object) -> Floats:
        """Return the chance of each candidate."""
        row = self.scores.check(np.asarray(value, dtype=np.float64)[None])
        result = np.full(self.size, self._other)
        result[top_places(row, self.top)] = self._member
        return result

    def estimate(self, tally: Tally, n: int) -> Estimate:
        """Return the share of users for whom each candidate is in the top set."""
        count = check_reports_counted(n)
        return response_estimate(tally, count, hold=self._member, lack=self._other)

    def worst_pairs(
        self, neighbours: Neighbours = Neighbours.USER
    ) -> Sequence[tuple[object, object]]:
        """Return rows whose top sets are the first and the last; by symmetry that is enough."""
        first, last = np.full(self.size, self.low), np.full(self.size, self.low)
        first[: self.top], last[-self.top :] = self.high, self.high
        return [(first, last)]


def top_places(rows: Array, top: int) -> NDArray[np.intp]:
    """Return the places of the ``top`` largest of each row, largest first; ties by place."""
    left = rows.astype(rows.dtype if rows.dtype.kind == "f" else np.float64)
    if top > _FEW:
        return np.argsort(-left, axis=1, kind="stable")[:, :top]
    places, every = np.empty((len(left), top), dtype=np.intp), np.arange(len(left))
    for rank in range(top):
        places[:, rank] = left.argmax(axis=1)
        left[every, places[:, rank]] = -np.inf
    return places


def _skipping(others: NDArray[np.intp], members: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return candidate number ``others`` of those that are not members, row by row."""
    for member in np.sort(members, axis=1).T:
        others = others + (others >= member)
    return others
