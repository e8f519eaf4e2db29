"""How well scores tell members from others: the curve, and what the sample can resolve of it."""

import math
from dataclasses import dataclass

import numpy as np

from noisefloor.adversary.audit.intervals import Floats, true_positive_rate
from noisefloor.errors import BadParameter, UnresolvedRate

REPORTED_RATES = (0.001, 0.01)
"""The false positive rates that are reported where the sample resolves them."""


@dataclass(frozen=True, slots=True, eq=False)
class RocCurve:
    """The curve of one set of scores; equal scores are one step.

    Attributes:
        members: Scores of members.
        others: Scores of the rest.
        false_positive_rate: At each distinct threshold from high to low, from 0 to 1.
        true_positive_rate: At the same thresholds.
    """

    members: Floats
    others: Floats
    false_positive_rate: Floats
    true_positive_rate: Floats

    @classmethod
    def of(cls, members: Floats, others: Floats) -> "RocCurve":
        """Draw the curve: a score is called a member's if it is at least the threshold."""
        members, others = (np.asarray(some, dtype=np.float64) for some in (members, others))
        for name, some in (("members", members), ("others", others)):
            if some.ndim != 1 or not len(some) or np.isnan(some).any():
                raise BadParameter(name, np.shape(some), "one score or more, none of them NaN")
        scores = np.concatenate([members, others])
        order = np.argsort(-scores, kind="stable")
        hits = np.cumsum(order < len(members))
        last = np.flatnonzero(np.diff(scores[order], append=-math.inf) != 0)
        true = hits[last] / len(members)
        false = (last + 1 - hits[last]) / len(others)
        return cls(members, others, np.append(0.0, false), np.append(0.0, true))

    @property
    def auc(self) -> float:
        """The chance that a member scores above another; a tie counts half."""
        return float(np.trapezoid(self.true_positive_rate, self.false_positive_rate))

    @property
    def advantage(self) -> float:
        """The largest true minus false positive rate, by thresholds chosen in hindsight."""
        return float((self.true_positive_rate - self.false_positive_rate).max())

    def at(self, rate: float) -> tuple[float, float]:
        """Return the true positive rate at a false positive rate, and its standard error.

        Raises:
            UnresolvedRate: The sample is expected to hold fewer than ten false positives.
        """
        return true_positive_rate(self.members, self.others, rate)

    def resolved(self, rates: tuple[float, ...] = REPORTED_RATES) -> dict[float, float | None]:
        """Return the true positive rate at each rate; nothing where it is not resolved."""
        found: dict[float, float | None] = {}
        for rate in rates:
            try:
                found[rate] = self.at(rate)[0]
            except UnresolvedRate:
                found[rate] = None
        return found
