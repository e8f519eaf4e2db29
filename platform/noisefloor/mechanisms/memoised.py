"""Memoised response: one permanent answer per bit, and a fresh answer about it each period."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Floats, blocks, check_bits, check_count, check_epsilon
from noisefloor.errors import BadParameter
from noisefloor.laws import ONE
from noisefloor.mechanisms.base import (
    Estimate,
    Reports,
    Tally,
    check_reports_counted,
    response_estimate,
    unsupported,
)
from noisefloor.mechanisms.randomised_response import flip_bits
from noisefloor.mechanisms.thresholds import (
    ceil64,
    exp,
    in_sixty_digits,
    ratio,
    round_up,
)
from noisefloor.mechanisms.unary import all_rows
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source

_LISTABLE = 16


@dataclass(frozen=True, slots=True)
class MemoisedResponse:
    """Flip the bit once for ever, then flip that answer afresh for each report.

    Guarantee:  pure DP, epsilon of the joint law of ``periods`` reports; it grows from
                ``epsilon_first`` with one report towards ``epsilon_permanent`` and never passes
                it, so long as the bit stays the same and the permanent answer is kept.
    Neighbours: bit = item = user: one user holds one bit (local model).
    Domain:     booleans or integers 0 and 1; anything else is refused.
    Reference:  Erlingsson, Pihur, Korolova 2014, arXiv 1407.6981 (RAPPOR).

    Attributes:
        epsilon_permanent: What any number of reports may reveal.
        epsilon_first: What one report may reveal; smaller.
        periods: Reports per call of ``randomise``; each user's row holds that many.
        permanent: Weight, out of 2**64, with which the permanent answer is flipped.
        instant: Weight with which each report flips the permanent answer.
    """

    epsilon_permanent: float
    epsilon_first: float
    periods: int = 1
    permanent: int = field(init=False)
    instant: int = field(init=False)

    @in_sixty_digits
    def __post_init__(self) -> None:
        ever = check_epsilon(self.epsilon_permanent, "epsilon_permanent")
        first = check_epsilon(self.epsilon_first, "epsilon_first")
        check_count(self.periods, "periods", most=1 << 16)
        if not first < ever:
            raise BadParameter("epsilon_first", first, f"< epsilon_permanent={ever!r}")
        once, total = ratio(1, 1 + exp(ever)), ratio(1, 1 + exp(first))
        # total = once (1 - again) + (1 - once) again, solved for again.
        again = ratio(total - once, 1 - 2 * once)
        object.__setattr__(self, "permanent", ceil64(once))
        object.__setattr__(self, "instant", min(ceil64(again), ONE // 2))

    def memorise(self, values: object, source: Source) -> NDArray[np.bool_]:
        """Return the permanent answers, to be drawn once and kept on the device."""
        return flip_bits(check_bits(values), self.permanent, source.stage("permanent"))

    def report(self, memory: object, source: Source) -> NDArray[np.bool_]:
        """Return one period's reports about the permanent answers."""
        return flip_bits(check_bits(memory), self.instant, source.stage("instant"))

    def randomise(self, values: object, source: Source) -> NDArray[np.bool_]:
        """Return ``periods`` reports per user: one row each, or a flat array for one period."""
        bits = check_bits(values)
        once, again = source.stage("permanent"), source.stage("instant")
        reports = np.empty((len(bits), self.periods), dtype=np.bool_)
        for rows in blocks(len(bits), self.periods):
            some, answers = bits[rows], reports[rows]
            memory = some ^ once.bernoulli(self.permanent, len(some))
            again.bernoulli(self.instant, answers.size, out=answers.reshape(-1))
            answers ^= memory[:, None]
        return reports if self.periods > 1 else reports[:, 0]

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return the guarantee of all ``periods`` reports together."""
        if neighbours not in (Neighbours.BIT, Neighbours.ITEM, Neighbours.USER):
            return unsupported(self, neighbours)
        return Guarantee(round_up(self._joint_epsilon()), neighbours)

    @in_sixty_digits
    def _joint_epsilon(self) -> Decimal:
        """Return the log-ratio of the report row that tells most: all reports equal."""
        kept, flipped = ONE - self.permanent, self.permanent
        # How much less likely all reports are from the opposite permanent answer.
        fade = ratio(self.instant, ONE - self.instant) ** self.periods
        return ratio(kept + flipped * fade, flipped + kept * fade).ln()

    def log_likelihood(self, reports: Reports, value: object) -> Floats:
        """Return ln P(row of reports | value), summed over the hidden permanent answer."""
        rows = np.asarray(reports, dtype=np.bool_).reshape(-1, self.periods)
        agree = np.count_nonzero(rows == bool(value), axis=1)
        stay, flip = math.log1p(-self.instant / ONE), math.log(self.instant / ONE)
        as_kept = agree * stay + (self.periods - agree) * flip
        as_flipped = agree * flip + (self.periods - agree) * stay
        as_kept += math.log1p(-self.permanent / ONE)
        as_flipped += math.log(self.permanent / ONE)
        return np.asarray(np.logaddexp(as_kept, as_flipped))

    def tally(self, reports: Reports) -> Tally:
        """Return the number of ones in each period."""
        rows = np.asarray(reports).reshape(-1, self.periods)
        return np.asarray(rows.sum(axis=0, dtype=np.int64))

    def estimate(self, tally: Tally, n: int) -> Estimate:
        """Return the share of users whose bit is one, as each period's reports tell it."""
        once, again = self.permanent / ONE, self.instant / ONE
        lie = once * (1 - again) + (1 - once) * again
        return response_estimate(tally, check_reports_counted(n), hold=1 - lie, lack=lie)

    def outputs(self) -> Reports:
        """Return every row of reports; refused when there are too many to list."""
        if self.periods > _LISTABLE:
            raise BadParameter("periods", self.periods, f"<= {_LISTABLE} for reports to be listed")
        rows = all_rows(self.periods)
        return rows if self.periods > 1 else rows[:, 0]

    def worst_pairs(
        self, neighbours: Neighbours = Neighbours.USER
    ) -> Sequence[tuple[object, object]]:
        """Return the only pair there is."""
        return [(False, True)]
