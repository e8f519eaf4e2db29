"""Impressions where a slate hides which ad was shown: a protected report of the shown ad.

If a request is for one ad, its impressions are the counted requests (``AdDelivery.tally``): they
follow from what was released already and cost nothing. Only slates need the report here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from noisefloor.ads.clicks.rates import counts_of
from noisefloor.checks import Floats
from noisefloor.distributions import ONE
from noisefloor.mechanisms import Estimate, KaryResponse, Reports, SubsetSelection, Tally
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source
from noisefloor.wire import Kind, bit_vector_kind, symbol_kind

SHOWN_ADS = "shown-ads"
"""The kind of frame that carries one ad's index per report."""

SHOWN_AD_SETS = "shown-ad-sets"
"""The kind of frame that carries a set of ads per report."""


def shown_ads_kind(size: int) -> Kind:
    """Make the kind of reports that name one of ``size`` ads."""
    return symbol_kind(SHOWN_ADS, size)


def shown_ad_sets_kind(size: int) -> Kind:
    """Make the kind of reports that name a set of ``size`` ads."""
    return bit_vector_kind(SHOWN_AD_SETS, size)


@dataclass(frozen=True, slots=True)
class ImpressionReport:
    """Report the shown ad by subset selection, or by k-ary response where that is as good.

    Guarantee:  pure DP, that of the response, per report; on top of what the request cost.
    Neighbours: item = user: any shown ad to any other; one report per period (local model).
    Domain:     integers in range(ads); anything else is refused.
    Reference:  Ye and Barg 2018, arXiv 1702.00610 (subset selection); Kairouz, Oh, Viswanath 2014,
                arXiv 1407.1338 (k-ary response, which is its case of sets of one).

    Of all sizes of sets the one with the least variance is taken, for ads that are shown evenly.

    Attributes:
        ads: Ads in the catalogue.
        epsilon: As requested.
        response: What protects the index.
    """

    ads: int
    epsilon: float
    response: KaryResponse | SubsetSelection = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "response", _best_response(self.ads, self.epsilon))

    @property
    def kind(self) -> Kind:
        """The kind of frame that carries the reports."""
        is_symbol = isinstance(self.response, KaryResponse)
        return shown_ads_kind(self.ads) if is_symbol else shown_ad_sets_kind(self.ads)

    @property
    def claimed(self) -> Guarantee:
        """What is said of one report."""
        return Guarantee(self.epsilon, Neighbours.USER)

    def randomise(self, values: object, source: Source) -> Reports:
        """Return one protected report per shown ad."""
        return self.response.randomise(values, source)

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return the guarantee of the response."""
        return self.response.guarantee(neighbours)

    def log_likelihood(self, reports: Reports, value: Any) -> Floats:
        """Return ln P(report | shown ad)."""
        return self.response.log_likelihood(reports, value)

    def tally(self, reports: Reports) -> Tally:
        """Return how many reports name each ad."""
        return self.response.tally(reports)

    def estimate(self, tally: Tally, n: int) -> Estimate:
        """Return each ad's share of the impressions."""
        return self.response.estimate(tally, n)

    def impressions(self, tally: Tally, n: int) -> Estimate:
        """Return the impressions of each ad among n; ``rates.interval`` gives their intervals."""
        return counts_of(self.estimate(tally, n), n)

    def outputs(self) -> Reports:
        """Return every report; refused when there are too many to list."""
        return self.response.outputs()

    def worst_pairs(
        self, neighbours: Neighbours = Neighbours.USER
    ) -> Sequence[tuple[object, object]]:
        """Return one pair: by symmetry all are alike."""
        return self.response.worst_pairs(neighbours)


def _best_response(ads: int, epsilon: float) -> KaryResponse | SubsetSelection:
    """Return the response of least variance."""
    near = SubsetSelection(ads, epsilon).subset
    sizes = [size for size in (near - 1, near, near + 1) if 1 <= size < ads]
    best = min((SubsetSelection(ads, epsilon, size) for size in sizes), key=variance)
    return KaryResponse(ads, epsilon) if best.subset == 1 else best


def variance(selection: SubsetSelection) -> float:
    """Return the variance of one report's estimate, for ads that are shown evenly."""
    hold, share = selection.hold / ONE, 1 / selection.size
    lack = (selection.subset - hold) / (selection.size - 1)
    spread = share * hold * (1 - hold) + (1 - share) * lack * (1 - lack)
    return float(np.divide(spread, (hold - lack) ** 2))
