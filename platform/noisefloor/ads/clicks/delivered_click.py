"""Clicks on the delivered ad: the ad is known from the request, only the click is protected.

A vector of clicks over the whole catalogue hides which ad was clicked, and pays for it in noise.
Where a request names one ad, the server knows that ad already, and that no other can have been
clicked: a response on the one bit is all that is left to protect.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from noisefloor import mechanisms
from noisefloor.ads.clicks.rates import CONFIDENCE_LEVEL, Rates, click_through, response_interval
from noisefloor.ads.delivery import AdDelivery
from noisefloor.checks import Array, Floats, blocks, check_bits, check_count, check_integers
from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter, OutOfDomain
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source
from noisefloor.wire import Kind, symbol_kind

DELIVERED_CLICKS = "delivered-clicks"
"""The kind of frame that carries clicks on delivered ads."""

PANEL_CLICKS = "panel-clicks"
"""The kind of frame that carries clicks on ads that an exchange shows to a panel."""

_GIVEN = "given the delivered ad, which the request released: its cost is the delivery's"


def delivered_clicks_kind(size: int) -> Kind:
    """Make the kind of clicks on ``size`` ads: symbols 2 * ad + bit."""
    return symbol_kind(DELIVERED_CLICKS, 2 * size)


def panel_clicks_kind(size: int) -> Kind:
    """Make the kind of clicks in ``size`` cells that the exchange knows: 2 * cell + bit."""
    return symbol_kind(PANEL_CLICKS, 2 * size)


@dataclass(frozen=True, slots=True)
class DeliveredClick:
    """Report 2 * ad + bit: the delivered ad as it is, and a response on whether it was clicked.

    Guarantee:  pure DP, that of the response on the bit, GIVEN the delivered ad. The ad stands in
                the report in the open: it has to be one that a request released before, and what
                that cost is the delivery's. Both add up. Never with a slate, whose shown ad is
                a secret; ``after`` refuses one.
    Neighbours: bit: the click flips. item = user: likewise, given the ad, so long as one ad is
                delivered and reported per period; several add up (local model).
    Domain:     integers 2 * ad + clicked in range(2 * ads); anything else is refused.
    Reference:  Warner 1965, doi 10.1080/01621459.1965.10480775, on the bit.

    Where the place of an ad says more than which ad it is (a cell of ``auction.ReportCells``), all
    that it says has to be known before: what a bid request carried, and what the exchange drew.
    """

    ads: int
    epsilon: float
    response: mechanisms.BinaryResponse = field(init=False)

    def __post_init__(self) -> None:
        check_count(self.ads, "ads", least=2, most=1 << 16)
        object.__setattr__(self, "response", mechanisms.BinaryResponse(self.epsilon))

    @classmethod
    def after(cls, delivery: AdDelivery, epsilon: float) -> "DeliveredClick":
        """Make the report that goes with a delivery whose requests name the shown ad."""
        if delivery.is_slate:
            raise BadParameter("choice", delivery.choice.value, "one that requests one ad")
        return cls(delivery.ads, epsilon)

    @property
    def kind(self) -> Kind:
        """The kind of frame that carries the reports."""
        return delivered_clicks_kind(self.ads)

    @property
    def limit(self) -> None:
        """The click on the one ad is kept."""
        return None

    @property
    def claimed(self) -> Guarantee:
        """What is said of one report, given the ad."""
        return Guarantee(self.epsilon, Neighbours.USER, reason=_GIVEN)

    def symbols(self, shown: object, clicked: object) -> NDArray[np.unsignedinteger]:
        """Return 2 * ad + clicked for each user."""
        ad, bit = check_integers(shown, 0, self.ads - 1), check_bits(clicked)
        if len(ad) != len(bit):
            raise OutOfDomain(f"Expected one bit for each of {len(ad)} ads; got {len(bit)}.")
        symbols = ad.astype(np.min_scalar_type(2 * self.ads - 1))
        symbols <<= 1
        symbols |= bit.view(np.uint8)
        return symbols

    def report(
        self, shown: object, clicked: object, source: Source
    ) -> NDArray[np.unsignedinteger]:
        """Return one report per user from the delivered ads and whether they were clicked."""
        return self.randomise(self.symbols(shown, clicked), source)

    def randomise(self, values: object, source: Source) -> NDArray[np.unsignedinteger]:
        """Return one report per user: the symbol, with its lowest bit answered."""
        symbols: Array = check_integers(values, 0, 2 * self.ads - 1)
        draws = source.stage("flip")
        reports = symbols.astype(np.min_scalar_type(2 * self.ads - 1))
        for rows in blocks(len(reports)):
            reports[rows] ^= draws.bernoulli(self.response.flip, len(reports[rows])).view(np.uint8)
        return reports

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return the guarantee of the response, for users to whom the same ad was delivered."""
        proved = self.response.guarantee(neighbours)
        if not proved.is_finite:
            return mechanisms.unsupported(self, neighbours)
        return Guarantee(proved.epsilon, neighbours, reason=_GIVEN)

    def log_likelihood(self, reports: mechanisms.Reports, value: int) -> Floats:
        """Return ln P(report | 2 * ad + clicked): another ad cannot be reported."""
        symbols = check_integers(reports, 0, 2 * self.ads - 1)
        answer = self.response.log_likelihood(symbols & 1, value & 1)
        return np.where(symbols >> 1 == value >> 1, answer, -np.inf)

    def tally(self, reports: mechanisms.Reports) -> mechanisms.Tally:
        """Return the number of reports of each symbol."""
        return mechanisms.count_symbols(reports, 2 * self.ads)

    def shown(self, tally: mechanisms.Tally) -> mechanisms.Tally:
        """Return the impressions of each ad, exactly."""
        return np.asarray(np.asarray(tally).reshape(-1, 2).sum(axis=1))

    def clicks(self, tally: mechanisms.Tally) -> mechanisms.Estimate:
        """Return the clicks on each ad among the reports."""
        shown, ones = self.shown(tally), np.asarray(tally).reshape(-1, 2)[:, 1]
        lie = self.response.flip / ONE
        # Whatever its bit is, a report is flipped with the same probability.
        error = np.sqrt(shown * lie * (1 - lie)) / (1 - 2 * lie)
        return mechanisms.Estimate((ones - lie * shown) / (1 - 2 * lie), error)

    @property
    def noise(self) -> float:
        """The variance that the response adds to one report's click."""
        lie = self.response.flip / ONE
        return lie * (1 - lie) / (1 - 2 * lie) ** 2

    def rates(self, tally: mechanisms.Tally, *, level: float = CONFIDENCE_LEVEL) -> Rates:
        """Return the click-through rate of each ad, with intervals."""
        shown = self.shown(tally)
        rates = click_through(self.clicks(tally), shown, level=level)
        count = np.where(shown > 0, shown, np.nan)
        low, high = (end / count for end in self.interval(tally, int(shown.sum()), level=level))
        return replace(rates, low=low, high=high)

    def interval(
        self, tally: mechanisms.Tally, n: int, *, level: float = CONFIDENCE_LEVEL
    ) -> tuple[Floats, Floats]:
        """Return the ends of the interval of the clicks on each ad among the reports on it."""
        ones, lie = np.asarray(tally).reshape(-1, 2)[:, 1], self.response.flip / ONE
        return response_interval(
            ones, self.shown(tally), hold=1 - lie, lack=lie, is_sampled=False, level=level
        )

    def estimate(self, tally: mechanisms.Tally, n: int) -> mechanisms.Estimate:
        """Return the share of the n reports that are clicks on each ad."""
        clicks, count = self.clicks(tally), mechanisms.check_reports_counted(n)
        return mechanisms.Estimate(clicks.value / count, clicks.standard_error / count)

    def outputs(self) -> mechanisms.Reports:
        """Return every report."""
        return np.arange(2 * self.ads)

    def worst_pairs(
        self, neighbours: Neighbours = Neighbours.USER
    ) -> Sequence[tuple[object, object]]:
        """Return a user who clicked the first ad and one who did not: by symmetry enough."""
        return [(0, 1)]
