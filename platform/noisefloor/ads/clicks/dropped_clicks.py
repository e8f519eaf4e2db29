"""How many clicks a limited report drops, told without saying by whom.

A report that counts a user for a few ads drops the clicks on others, and nothing in it says how
many. Some users, chosen without regard to what they did, report on a day how many of their clicks
it would have dropped, instead of which ads they clicked; the server corrects its counts with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor import mechanisms
from noisefloor.ads.clicks.rates import CONFIDENCE_LEVEL, response_interval
from noisefloor.checks import Floats, check_count, check_integers
from noisefloor.distributions import ONE
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source
from noisefloor.wire import Kind, symbol_kind

DROPPED_CLICKS = "dropped-clicks"
"""The kind of frame that carries how many clicks would be dropped."""

_MOST_CLICKS = 1 << 16


def dropped_clicks_kind(size: int = 2) -> Kind:
    """Make the kind of these reports: one bit."""
    return symbol_kind(DROPPED_CLICKS, size)


@dataclass(frozen=True, slots=True)
class DroppedClicks:
    """Report one bit that is one as often as a user has clicks beyond the limit.

    The excess min(clicks - limit, most) is rounded at random to 0 or ``most``, so that its mean
    stays what it is, and a response protects which of the two it is.

    Guarantee:  pure DP, that of the response, per report; rounding comes before it and costs
                nothing.
    Neighbours: bit = item = user: any number of clicks to any other (local model).
    Domain:     integers from 0 to 2**16; others are refused. Of clicks beyond the limit at most
                ``most`` are counted.
    Reference:  Warner 1965, doi 10.1080/01621459.1965.10480775, on the rounded bit.

    Attributes:
        limit: Ads that a user is counted for in a click report.
        epsilon: As requested.
        most: Dropped clicks of a user that are counted at most.
    """

    limit: int
    epsilon: float
    most: int = 4
    response: mechanisms.BinaryResponse = field(init=False)

    def __post_init__(self) -> None:
        check_count(self.limit, "limit", least=1, most=_MOST_CLICKS)
        check_count(self.most, "most", least=1, most=_MOST_CLICKS)
        object.__setattr__(self, "response", mechanisms.BinaryResponse(self.epsilon))

    @property
    def kind(self) -> Kind:
        """The kind of frame that carries the reports."""
        return dropped_clicks_kind()

    @property
    def claimed(self) -> Guarantee:
        """What is said of one report."""
        return Guarantee(self.epsilon, Neighbours.USER)

    def excess(self, clicks: NDArray[np.integer] | int) -> NDArray[np.int64]:
        """Return how many clicks are dropped, of those that are counted at most."""
        return np.clip(np.asarray(clicks, dtype=np.int64) - self.limit, 0, self.most)

    def randomise(self, values: object, source: Source) -> NDArray[np.uint8]:
        """Return one bit per user, from how many ads each clicked."""
        excess = self.excess(check_integers(values, 0, _MOST_CLICKS))
        rounded = source.stage("round").below(self.most, len(excess)) < excess
        return self.response.randomise(rounded, source).astype(np.uint8)

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return the guarantee of the response."""
        return self.response.guarantee(neighbours)

    def log_likelihood(self, reports: mechanisms.Reports, value: int) -> Floats:
        """Return ln P(report | clicks)."""
        lie, share = self.response.flip / ONE, float(self.excess(value)) / self.most
        one = share * (1 - lie) + (1 - share) * lie
        logs = np.log([1 - one, one])
        return np.asarray(logs[np.asarray(reports, dtype=np.intp)])

    def tally(self, reports: mechanisms.Reports) -> mechanisms.Tally:
        """Return the zeros and the ones."""
        return mechanisms.count_symbols(reports, 2)

    def estimate(self, tally: mechanisms.Tally, n: int) -> mechanisms.Estimate:
        """Return the dropped clicks of a mean user."""
        share = self.response.estimate(np.asarray(tally)[1:], n)
        return mechanisms.Estimate(self.most * share.value, self.most * share.standard_error)

    def interval(
        self, tally: mechanisms.Tally, n: int, *, level: float = CONFIDENCE_LEVEL
    ) -> tuple[Floats, Floats]:
        """Return the ends of the interval of all dropped clicks of n users."""
        ones, lie = np.asarray(tally)[1:], self.response.flip / ONE
        low, high = response_interval(
            ones, n, hold=1 - lie, lack=lie, is_sampled=True, level=level
        )
        return self.most * low, self.most * high

    def outputs(self) -> mechanisms.Reports:
        """Return both reports."""
        return np.arange(2, dtype=np.uint8)

    def worst_pairs(
        self, neighbours: Neighbours = Neighbours.USER
    ) -> Sequence[tuple[object, object]]:
        """Return a user of whom nothing is dropped and one of whom as much as is counted."""
        return [(0, self.limit + self.most)]
