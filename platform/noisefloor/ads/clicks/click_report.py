"""Click statistics: which ads were clicked, without saying by whom.

Each user holds one bit per ad and period. The paper answers every bit at epsilon and calls the
vector epsilon-private; the corrected forms guard the whole vector, and pay for it in different
ways: more noise (``SPLIT``), all clicks but a few (``CAPPED``), all but one (``ONE_CLICK``), or
all but one that is sampled from a padded set (``PAD_AND_SAMPLE``).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads.clicks.rates import CONFIDENCE_LEVEL, response_interval
from noisefloor.checks import Floats, blocks, check_bits, check_count
from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import Estimate, Reports, Tally, UnaryEncoding, printed_clicks
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source
from noisefloor.wire import Kind, bit_vector_kind

Bits = NDArray[np.bool_]

CLICKS = "clicks"
"""The kind of frame that carries click reports."""

_MOST_SUBSETS = 10_000


def clicks_kind(size: int) -> Kind:
    """Make the kind of click reports of ``size`` bits."""
    return bit_vector_kind(CLICKS, size)


class ClickEncoding(Enum):
    """How a vector of clicks becomes a protected report."""

    PER_BIT = "per-bit"  # the paper's: epsilon for each bit
    SPLIT = "split"  # epsilon / ads for each bit
    CAPPED = "capped"  # at most most_clicks ones, epsilon / (2 most_clicks) for each bit
    ONE_CLICK = "one-click"  # at most one, optimised unary encoding
    PAD_AND_SAMPLE = "pad-and-sample"  # one sampled of most_clicks padded, optimised encoding


@dataclass(frozen=True, slots=True)
class ClickReport:
    """One period's clicks of a user, protected as one vector.

    Guarantee:  pure DP, that of the unary encoding behind it, per period; choosing which clicks
                to keep comes before the noise and costs nothing. PER_BIT: epsilon holds for one
                bit only, the vector costs ads * epsilon.
    Neighbours: bit, item, move-one and user are distinguished (local model).
    Domain:     rows of ``ads`` bits; anything else is refused. Clicks beyond the form's cap are
                dropped at random: the estimate is of kept clicks (``limit``).
    Reference:  ads paper, section on statistics (PER_BIT); Wang, Blocki, Li, Jha 2017, arXiv
                1705.04421 (optimised encoding); Qin et al. 2016, doi 10.1145/2976749.2978409
                (pad and sample).

    Attributes:
        ads: Ads in the catalogue.
        epsilon: What is claimed for a user's vector.
        form: How the vector is answered.
        most_clicks: The cap of CAPPED, the padded length of PAD_AND_SAMPLE; 1 for the others.
    """

    ads: int
    epsilon: float
    form: ClickEncoding
    most_clicks: int = 1
    encoding: UnaryEncoding = field(init=False)

    def __post_init__(self) -> None:
        check_count(self.ads, "ads", least=2, most=1 << 16)
        check_count(self.most_clicks, "most_clicks", least=1, most=self.ads)
        if self.most_clicks > 1 and self.form not in (
            ClickEncoding.CAPPED,
            ClickEncoding.PAD_AND_SAMPLE,
        ):
            raise BadParameter("most_clicks", self.most_clicks, f"1 for form {self.form.value}")
        object.__setattr__(self, "encoding", self._encoding())

    def _encoding(self) -> UnaryEncoding:
        if self.form is ClickEncoding.PER_BIT:
            return printed_clicks(self.ads, self.epsilon)
        if self.form is ClickEncoding.SPLIT:
            return UnaryEncoding.symmetric(self.ads, self.epsilon)
        if self.form is ClickEncoding.CAPPED:
            return UnaryEncoding.symmetric(self.ads, self.epsilon, most_ones=self.most_clicks)
        if self.form is ClickEncoding.ONE_CLICK:
            return UnaryEncoding.optimised(self.ads, self.epsilon)
        return UnaryEncoding.optimised(self.ads + self.most_clicks, self.epsilon)

    @property
    def width(self) -> int:
        """Bits in a report: one per ad, and the dummies of PAD_AND_SAMPLE behind them."""
        return self.encoding.size

    @property
    def limit(self) -> int | None:
        """How many ads a user can be counted for in a period; None if for all that were clicked.

        With k ads clicked, each counts for min(1, limit / k): these are the kept clicks.
        """
        is_whole = self.form in (ClickEncoding.PER_BIT, ClickEncoding.SPLIT)
        return None if is_whole else self.most_clicks

    @property
    def claimed(self) -> Guarantee:
        """What is said of a user's vector; for PER_BIT, what the paper says."""
        return Guarantee(self.epsilon, Neighbours.USER)

    def randomise(self, values: object, source: Source) -> Bits:
        """Return one row of ``width`` bits per user."""
        clicked = check_bits(values, width=self.ads)
        return self.encoding.randomise(self.keep(clicked, source), source)

    def keep(self, clicked: Bits, source: Source) -> Bits:
        """Return the bits that go into the encoding, within the form's cap."""
        if self.form is ClickEncoding.PAD_AND_SAMPLE:
            return self._sampled(clicked, source.stage("sample"))
        if self.encoding.most_ones == self.ads:
            return clicked
        return _capped(clicked, self.most_clicks, source.stage("keep"))

    def _sampled(self, clicked: Bits, draws: Source) -> Bits:
        """Pick one of the clicks and of the dummies that pad them to ``most_clicks``."""
        kept = np.zeros((len(clicked), self.width), dtype=np.bool_)
        for rows in blocks(len(clicked), self.ads):
            rank = clicked[rows].cumsum(axis=1, dtype=np.uint32)
            count = rank[:, -1]
            pick = draws.below(np.maximum(count, np.uint32(self.most_clicks)), len(count))
            ad = (rank > pick[:, None]).argmax(axis=1)
            kept[rows][np.arange(len(ad)), np.where(pick < count, ad, self.ads + pick)] = True
        return kept

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return what is proved of one period's report."""
        if neighbours is Neighbours.USER or self.form in (
            ClickEncoding.PER_BIT,
            ClickEncoding.SPLIT,
        ):
            return self.encoding.guarantee(neighbours)
        # With a cap, one flipped bit may change which clicks are kept: only the whole is proved.
        whole = self.encoding.guarantee(Neighbours.USER)
        return Guarantee(whole.epsilon, neighbours)

    def log_likelihood(self, reports: Reports, value: Any) -> Floats:
        """Return ln P(report | clicks), over the clicks that may have been kept."""
        row = check_bits(np.atleast_2d(np.asarray(value)), width=self.ads)[0]
        parts = [self.encoding.log_likelihood(reports, kept) for kept in self._kept_rows(row)]
        return np.asarray(np.logaddexp.reduce(parts) - np.log(len(parts)))

    def _kept_rows(self, row: Bits) -> list[Bits]:
        """Return the rows that may reach the encoding, each as likely as it occurs here."""
        ones = np.flatnonzero(row)
        if self.form is ClickEncoding.PAD_AND_SAMPLE:
            padded = [*ones, *range(self.ads + len(ones), self.ads + self.most_clicks)]
            return [np.arange(self.width) == place for place in padded]
        if len(ones) <= self.encoding.most_ones:
            return [row]
        kept = list(combinations(ones, self.encoding.most_ones))
        if len(kept) > _MOST_SUBSETS:
            raise BadParameter("clicks", len(ones), "few enough to list what may be kept of them")
        return [np.isin(np.arange(self.ads), some) for some in kept]

    def tally(self, reports: Reports) -> Tally:
        """Return the ones in each place."""
        return self.encoding.tally(reports)

    def estimate(self, tally: Tally, n: int) -> Estimate:
        """Return the share of users who clicked each ad and, under a cap, kept the click."""
        share = self.encoding.estimate(tally, n)
        scale, ads = self._scale, slice(0, self.ads)
        return Estimate(scale * share.value[ads], scale * share.standard_error[ads])

    def kept_by_user(self, tally: Tally, n: int) -> Estimate:
        """Return the kept clicks of a mean user on all ads together.

        The standard error is at most this: every place adds the noise of its response, and a
        number of ones between 0 and m varies by at most m times its mean.
        """
        stay, rise = self.encoding.stay / ONE, self.encoding.rise / ONE
        ones = np.asarray(self.encoding.estimate(tally, n).value)[: self.ads].sum(keepdims=True)
        kept_ones, each = np.maximum(ones, 0.0), rise * (1 - rise)
        noise = self.ads * each + kept_ones * (stay * (1 - stay) - each)
        variance = noise / (stay - rise) ** 2 + self.encoding.most_ones * kept_ones
        return Estimate(self._scale * ones, self._scale * np.sqrt(variance / n))

    @property
    def _scale(self) -> int:
        """Clicks that a kept one stands for: of a padded set one place is sampled."""
        return self.most_clicks if self.form is ClickEncoding.PAD_AND_SAMPLE else 1

    def interval(
        self, tally: Tally, n: int, *, level: float = CONFIDENCE_LEVEL
    ) -> tuple[Floats, Floats]:
        """Return the ends of the interval of the clicks on each ad that n reports keep."""
        stay, rise = self.encoding.stay / ONE, self.encoding.rise / ONE
        low, high = response_interval(
            np.asarray(tally)[: self.ads],
            n,
            hold=stay,
            lack=rise,
            is_sampled=self.limit is not None,
            level=level,
        )
        return self._scale * low, np.minimum(self._scale * high, n)

    def outputs(self) -> Reports:
        """Return every report; refused when there are too many to list."""
        return self.encoding.outputs()

    def worst_pairs(self, neighbours: Neighbours = Neighbours.USER) -> Sequence[tuple[Any, Any]]:
        """Return vectors that are as far apart as the form lets them reach the encoding."""
        if self.form is ClickEncoding.PAD_AND_SAMPLE:
            empty = np.zeros(self.ads, dtype=np.bool_)
            first, last = empty.copy(), empty.copy()
            # Enough clicks that no dummy is picked: the two then have nothing in common.
            half = self.ads // 2
            first[:half], last[half:] = True, True
            return [(first, last), (first, empty)]
        return self.encoding.worst_pairs(neighbours)


def _capped(clicked: Bits, most: int, draws: Source) -> Bits:
    """Keep at most n ones of each row, chosen at random among all of them."""
    over = np.flatnonzero(clicked.sum(axis=1) > most)
    if not over.size:
        return clicked
    kept = clicked.copy()
    rows = clicked[over]
    # Each one draws a 64-bit key, the largest keys stay; zeros have no key.
    keys = np.where(rows, draws.words(rows.size).reshape(rows.shape) >> np.uint64(1), 0)
    keys += rows  # a drawn zero still ranks before a zero bit
    losers = np.argsort(keys, axis=1)[:, :-most]
    np.put_along_axis(rows, losers, False, axis=1)
    kept[over] = rows
    return kept
