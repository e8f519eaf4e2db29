"""The trade-off curve of Gaussian noise on a Poisson sample, and tests against it.

An audit that looks for (epsilon, delta) sees little of Gaussian noise: at rates that some thousand
games resolve, its curve of true over false positive rates stays far below that of epsilon. So the
curve itself is the null hypothesis: noise of a share s of the declared one is refuted if the true
positive rate, from below, exceeds what s allows at the false positive rate, from above. The curve
is that of many records that come and go together, in one step: a single record moves a sum by a
fraction of its noise, and would take millions of games.

No constant is fitted to the games: group and threshold follow from the declared noise, and limits
are exact. So declared noise, or more, is refuted with probability alpha at most.

Reference: Dong, Roth and Su 2022 (trade-off functions), doi 10.1111/rssb.12454; Nasr and others
2023 (audits by them), arXiv 2302.07956.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from noisefloor.adversary.audit.intervals import Floats, lower_limit, upper_limit
from noisefloor.checks import check_count, check_finite
from noisefloor.errors import BadParameter

LEAST_SHARE, MOST_SHARE = 0.5, 10.0
"""Of the declared noise, which are looked at. Less than a half is called a half."""

_SEPARATION = 3.0
"""How far apart the group moves the mean, in noises. A fault of three quarters of the noise took
the fewest draws at 2 to 4, for rates of 0.01 to 1 and multipliers of 0.6 to 30."""

_MOST_RECORDS = 1 << 20
_GRID, _SHARES = 401, 65
_RAREST = 2e-3  # a rate nearer to 0 or 1 needs many games to be told from it
_TINY = 1e-18


@dataclass(frozen=True, slots=True)
class GroupCurve:
    """What is seen of a group of records in one step: Poisson sampled, under Gaussian noise.

    The sum moves by one for each record of the group that is sampled. On the second input the
    group is not there, or moves the sum the other way.

    Attributes:
        records: In the group.
        rate: With which each is sampled, by itself.
        multiplier: The declared noise, over what one record moves.
        is_substitute: Whether records become others, which move the sum the other way.
    """

    records: int
    rate: float
    multiplier: float
    is_substitute: bool

    def __post_init__(self) -> None:
        check_count(self.records, "records", most=_MOST_RECORDS)
        if not 0 < check_finite(self.rate, "rate") <= 1:
            raise BadParameter("rate", self.rate, "in (0, 1]")
        if check_finite(self.multiplier, "multiplier") <= 0:
            raise BadParameter("multiplier", self.multiplier, "> 0")

    @classmethod
    def of(cls, rate: float, multiplier: float, *, is_substitute: bool) -> "GroupCurve":
        """Return the curve of a group that is about as large as tests need."""
        apart = 2 if is_substitute else 1
        needed = math.ceil(_SEPARATION * multiplier / (apart * rate))
        return cls(min(max(1, needed), _MOST_RECORDS), rate, multiplier, is_substitute)

    def rates(self, thresholds: Floats, shares: Floats) -> tuple[Floats, Floats]:
        """Return true and false positive rates of "the sum is at least that", under noise shares.

        The likelihood ratio rises with the sum: so no other event of that false rate does better.
        What is left out of the moves counts for the attack: true rates err upwards, false ones
        downwards.
        """
        from scipy.special import ndtr  # lazy: scipy is slow to import

        moved, weights, missing = _moves(self.records, self.rate)
        places, noise = (
            one[:, None] for one in np.broadcast_arrays(thresholds, shares * self.multiplier)
        )
        true = np.minimum((weights * ndtr((moved - places) / noise)).sum(axis=1) + missing, 1.0)
        if not self.is_substitute:
            return true, ndtr(-places / noise)[:, 0]
        return true, (weights * ndtr((-moved - places) / noise)).sum(axis=1)

    def largest_true_rates(self, false_rate: float, shares: Floats) -> Floats:
        """Return the largest true positive rate at a false one, under each share of the noise."""
        high = 40 * shares * self.multiplier + self.records
        low = -high
        for _ in range(80):  # the false rate at the lower end is never below: errs upwards
            middle = (low + high) / 2
            is_low = self.rates(middle, shares)[1] >= false_rate
            low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
        return self.rates(low, shares)[0]

    def threshold(self, planted: float) -> float:
        """Return the threshold at which a planted share of the noise takes the fewest games."""
        noise, mean = self.multiplier, self.records * self.rate
        lowest = -mean if self.is_substitute else 0.0
        places = np.linspace(mean + 4 * noise, lowest - 4 * noise, _GRID)  # rates rise
        allowed, at = self.rates(places, np.ones(1))
        true, false = self.rates(places, np.full(1, planted))
        slope = np.interp(false, at, np.gradient(allowed) / np.maximum(np.gradient(at), _TINY))
        spread = np.sqrt(true * (1 - true)) + slope * np.sqrt(false * (1 - false))
        gain = (true - np.interp(false, at, allowed)) / np.maximum(spread, _TINY)
        gain[(false < _RAREST) | (true > 1 - _RAREST)] = -math.inf
        return float(places[int(gain.argmax())])

    def refuted_share(
        self, hits: int, false_hits: int, sizes: tuple[int, int], alpha: float
    ) -> float:
        """Return a share of the noise that is refuted with all above it; infinity for none.

        Args:
            hits: Games on the first input whose sum is at least some threshold.
            false_hits: Those on the second.
            sizes: Games on each.
            alpha: The probability that noise of this share, or more, is refuted wrongly.
        """
        true = lower_limit(hits, sizes[0], alpha / 2).item()
        false = upper_limit(false_hits, sizes[1], alpha / 2).item()
        shares, smallest = np.geomspace(LEAST_SHARE, MOST_SHARE, _SHARES), math.inf
        for _ in range(2):  # the second time between two neighbours of the first
            refuted = np.flatnonzero(true > self.largest_true_rates(false, shares))
            if not len(refuted):
                return smallest
            place = int(refuted[0])
            smallest = float(shares[place])
            shares = np.geomspace(shares[max(0, place - 1)], smallest, _SHARES)
        return smallest


@lru_cache(maxsize=64)
def _moves(records: int, rate: float) -> tuple[Floats, Floats, float]:
    """Return by how much a group may move a sum, with which probability, and what is left out."""
    from scipy.special import bdtr, bdtrc, gammaln  # lazy: scipy is slow to import

    if rate == 1:
        return np.array([float(records)]), np.ones(1), 0.0
    mean = records * rate
    reach = 9 * math.sqrt(mean) + 40
    first = max(0, math.floor(mean - reach))
    last = min(records, math.ceil(mean + reach))
    moved = np.arange(first, last + 1, dtype=np.float64)
    ways = gammaln(records + 1) - gammaln(moved + 1) - gammaln(records - moved + 1)
    logs = moved * math.log(rate) + (records - moved) * math.log1p(-rate)
    below = bdtr(first - 1, records, rate) if first else 0.0
    above = bdtrc(last, records, rate) if last < records else 0.0
    return moved, np.exp(ways + logs), float(below + above)
