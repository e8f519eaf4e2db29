"""The law of a request, each row of scores worked out once: games ask for the same rows often."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from noisefloor.ads.delivery import AdDelivery
from noisefloor.checks import Floats
from noisefloor.mechanisms import Estimate, Reports, Tally
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source


@dataclass(frozen=True, slots=True)
class RequestDistribution:
    """A delivery as games and auditors use it: the same requests, a law that is looked up.

    The law of noise on scores takes the square of the ads if it is asked for request by request,
    and is linear for all requests of a row at once.

    Attributes:
        delivery: How devices ask.
        known: What was worked out, by row.
    """

    delivery: AdDelivery
    known: dict[bytes, Floats] = field(default_factory=dict, repr=False, compare=False)

    def randomise(self, values: object, source: Source) -> Reports:
        """Return one request per user."""
        return self.delivery.randomise(values, source)

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return what is proved of one request."""
        return self.delivery.guarantee(neighbours)

    def log_likelihood(self, reports: Reports, value: Any) -> Floats:
        """Return ln P(request | row of scores)."""
        if self.delivery.is_slate:
            return self.delivery.log_likelihood(reports, value)
        row = np.ascontiguousarray(value, dtype=np.float64)
        key = row.tobytes()
        if key not in self.known:
            with np.errstate(divide="ignore"):
                self.known[key] = np.log(self.delivery.shown_chances(row[None])).reshape(-1)
        return np.asarray(self.known[key][np.asarray(reports)])

    def outputs(self) -> Reports:
        """Return every request; refused when there are too many to list."""
        return self.delivery.outputs()

    def worst_pairs(self, neighbours: Neighbours = Neighbours.USER) -> list[tuple[Any, Any]]:
        """Return rows of scores among which the largest ratio is reached."""
        return self.delivery.worst_pairs(neighbours)

    def tally(self, reports: Reports) -> Tally:
        """Return how many requests each ad is in."""
        return self.delivery.tally(reports)

    def estimate(self, tally: Tally, n: int) -> Estimate:
        """Return what requests say of n users' tastes."""
        return self.delivery.estimate(tally, n)

    def worst_pair(self) -> tuple[Floats, Floats]:
        """Return the two rows of scores that one request tells apart best."""
        pairs = self.delivery.worst_pairs()
        if len(pairs) == 1 or not self.guarantee().is_finite:
            first, second = pairs[0]
        else:
            # Ties go to the first ad, so the extremes are the first ad's pair and the last one's.
            ends = [(pairs[0], 0), (pairs[-1], self.delivery.ads - 1)]
            first, second = max(ends, key=lambda end: self._ratio(*end))[0]
        return np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)

    def _ratio(self, pair: tuple[Any, Any], ad: int) -> float:
        one, other = (self.log_likelihood(np.array([ad]), row) for row in pair)
        return float(abs(one - other)[0])
