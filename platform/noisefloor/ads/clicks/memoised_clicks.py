"""Memoised click reports: one permanent answer per ad and value, fresh draws on top of it.

Averaging over days learns the permanent answer and no more. That protects what stays the same: a
user whose clicks change from day to day shows which of two permanent answers is in use, and then
only the fresh draws protect. Both guarantees are stated.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor import mechanisms
from noisefloor.ads.clicks.rates import CONFIDENCE_LEVEL, response_interval
from noisefloor.checks import Floats, check_bits, check_count
from noisefloor.distributions import ONE, epsilon_of
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source

Bits = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class MemoisedClicks:
    """Daily reports of a click vector through permanent answers that the device keeps.

    Guarantee:  pure DP, ``epsilon`` for all reports together of a user whose clicks stay the same;
                if they change, days times that of the fresh draws (``guarantee_changing``).
    Neighbours: user: any vector of clicks to any other (local model).
    Domain:     rows of ``ads`` bits; anything else is refused.
    Reference:  Erlingsson, Pihur, Korolova 2014, arXiv 1407.6981 (RAPPOR).

    Attributes:
        ads: Ads in the catalogue.
        epsilon: What all reports of a user may reveal, if the clicks stay the same.
        first: What one report may reveal; smaller.
        days: For how many reports the guarantee is stated.
    """

    ads: int
    epsilon: float
    first: float
    days: int = 1
    response: mechanisms.MemoisedResponse = field(init=False)

    def __post_init__(self) -> None:
        check_count(self.ads, "ads", least=2, most=1 << 16)
        share, once = self.epsilon / self.ads, self.first / self.ads
        object.__setattr__(self, "response", mechanisms.MemoisedResponse(share, once, self.days))

    @property
    def width(self) -> int:
        """Bits in a report: one per ad."""
        return self.ads

    @property
    def limit(self) -> None:
        """All clicks are kept."""
        return None

    @property
    def claimed(self) -> Guarantee:
        """What is said of all of a user's reports."""
        return Guarantee(self.epsilon, Neighbours.USER)

    def memorise(self, users: int, source: Source) -> Bits:
        """Draw, once and for ever, whether each ad's answer is flipped: for a zero, for a one."""
        flips = source.stage("permanent").bernoulli(self.response.permanent, users * self.ads * 2)
        return flips.reshape(users, self.ads, 2)

    def report(self, clicked: object, memory: Bits, source: Source) -> Bits:
        """Return one day's reports of users with these permanent flips."""
        bits = check_bits(clicked, width=self.ads)
        answer = bits ^ np.where(bits, memory[:, :, 1], memory[:, :, 0])
        fresh = source.stage("instant").bernoulli(self.response.instant, bits.size)
        return np.asarray(answer ^ fresh.reshape(bits.shape))

    def randomise(self, values: object, source: Source) -> Bits:
        """Return all days' reports of users whose clicks stay the same: users, days, ads."""
        bits = check_bits(values, width=self.ads)
        memory = self.memorise(len(bits), source)
        answer = bits ^ np.where(bits, memory[:, :, 1], memory[:, :, 0])
        shape = (len(bits), self.days, self.ads)
        fresh = source.stage("instant").bernoulli(self.response.instant, math.prod(shape))
        return np.asarray(answer[:, None, :] ^ fresh.reshape(shape))

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return what is proved of all ``days`` reports of clicks that stay the same."""
        bit = self.response.guarantee(neighbours)
        return Guarantee(self.ads * bit.epsilon, neighbours, reason=bit.reason)

    def guarantee_changing(self) -> Guarantee:
        """Return what is proved if clicks change: each report rests on its fresh draws alone."""
        if self.days == 1:
            return self.guarantee()  # nothing can have changed yet
        fresh = epsilon_of(ONE - self.response.instant, self.response.instant)
        return Guarantee(self.days * self.ads * fresh, Neighbours.USER)

    def log_likelihood(self, reports: mechanisms.Reports, value: object) -> Floats:
        """Return ln P(days of reports | clicks that stay the same), rows of days times ads."""
        row = check_bits(np.atleast_2d(np.asarray(value)), width=self.ads)[0]
        days = np.asarray(reports, dtype=np.bool_).reshape(-1, self.days, self.ads)
        total = np.zeros(len(days))
        for ad, bit in enumerate(row):
            total += self.response.log_likelihood(days[:, :, ad], bit)
        return total

    def tally(self, reports: mechanisms.Reports) -> mechanisms.Tally:
        """Return the ones of each ad, in one day's reports or day by day."""
        return np.asarray(np.asarray(reports).sum(axis=0, dtype=np.int64))

    def estimate(self, tally: mechanisms.Tally, n: int) -> mechanisms.Estimate:
        """Return the share of users who clicked each ad."""
        lie = self._lie
        return mechanisms.response_estimate(
            tally, mechanisms.check_reports_counted(n), hold=1 - lie, lack=lie
        )

    def interval(
        self, tally: mechanisms.Tally, n: int, *, level: float = CONFIDENCE_LEVEL
    ) -> tuple[Floats, Floats]:
        """Return the ends of the interval of the clicks on each ad in one day's n reports."""
        lie = self._lie
        return response_interval(tally, n, hold=1 - lie, lack=lie, is_sampled=False, level=level)

    @property
    def _lie(self) -> float:
        """How often a bit of one day's report is flipped."""
        once, again = self.response.permanent / ONE, self.response.instant / ONE
        return once * (1 - again) + (1 - once) * again

    def bit_success(self) -> float:
        """Return how often one steady bit is named right from all days, by the best guess."""
        stay, flip = 1 - self.response.instant / ONE, self.response.instant / ONE
        once = self.response.permanent / ONE
        right = 0.0
        for ones in range(self.days + 1):
            ways = math.comb(self.days, ones)
            as_one = ways * stay**ones * flip ** (self.days - ones)
            as_zero = ways * flip**ones * stay ** (self.days - ones)
            if_one = (1 - once) * as_one + once * as_zero
            if_zero = (1 - once) * as_zero + once * as_one
            right += max(if_one, if_zero) / 2
        return right
