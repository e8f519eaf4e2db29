"""The ad server: hands out the catalogue, counts impressions and requests, not knowing of whom.

An impression is a row of a frame that carries an ad's index and nothing else; a request is a row
that carries an ad's index or a slate (``ads.delivery.request_kinds``), a bid request one with a
released symbol and a page's topic. Frames are counted as the aggregator counts them: once by batch
id, by epoch, refused after the close.

The answer to a request is the ad of the catalogue that it names, and devices hold the catalogue:
what a device shows does not depend on the answer. So a lost frame of requests changes the counts
of requests, and nothing else.
"""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from noisefloor.ads.auction import BID_REQUESTS
from noisefloor.ads.delivery import AD_REQUESTS, AD_SLATES
from noisefloor.canonical_json import canonical_json
from noisefloor.checks import check_count
from noisefloor.errors import BadParameter
from noisefloor.roles.aggregator import Aggregator
from noisefloor.roles.batches import BatchTerms
from noisefloor.roles.epochs import AggregationLimits
from noisefloor.roles.frame_outcomes import FrameCounters, FrameOutcome
from noisefloor.wire import Kind, Reduction, Tally, symbol_kind

MOST_ADS = 1 << 20

_AD_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,63}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Ad:
    """One ad.

    Attributes:
        ad_id: Lower-case letters, digits and hyphens, at most 64.
        topic: Which of the interests it speaks to, as an index.
        price_floor_micros: What an impression costs at least, in millionths of the currency.
    """

    ad_id: str
    topic: int
    price_floor_micros: int = 0

    def __post_init__(self) -> None:
        if not _AD_ID.fullmatch(self.ad_id):
            raise BadParameter("ad_id", self.ad_id, f"to match {_AD_ID.pattern}")
        check_count(self.topic, "topic", least=0)
        check_count(self.price_floor_micros, "price_floor_micros", least=0, most=10**12)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Ads in a fixed order: an ad's place is the index that requests and reports carry.

    Attributes:
        version: Raised with each new catalogue.
        ads: At least one, each id once.
        content: The catalogue as bytes, as it is sent to devices.
    """

    version: int
    ads: tuple[Ad, ...]
    content: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_count(self.version, "version", least=0)
        if not 1 <= len(self.ads) <= MOST_ADS:
            raise BadParameter("ads", f"<{len(self.ads)} ads>", f"1 to {MOST_ADS} of them")
        if len({ad.ad_id for ad in self.ads}) < len(self.ads):
            raise BadParameter("ads", f"<{len(self.ads)} ads>", "each id once")
        listed = {"version": self.version, "ads": [asdict(ad) for ad in self.ads]}
        object.__setattr__(self, "content", canonical_json(listed))

    @property
    def etag(self) -> str:
        """The hash of the content, in the quotes of HTTP's ETag."""
        return f'"{hashlib.blake2b(self.content, digest_size=16).hexdigest()}"'

    def __len__(self) -> int:
        return len(self.ads)


IMPRESSIONS = "impressions"


def impressions_kind(size: int) -> Kind:
    """Make the kind of impressions of ``size`` ads."""
    return symbol_kind(IMPRESSIONS, size)


REQUEST_KINDS = frozenset({AD_REQUESTS, AD_SLATES, BID_REQUESTS})
"""Kinds that the ad server counts beside impressions, and that ``POST /requests`` takes."""


def request_kinds(kinds: Iterable[Kind], catalogue: Catalogue | None) -> dict[str, Kind]:
    """Return the kinds of requests among some kinds, by name.

    Raises:
        BadParameter: One of them is not for the ads of the catalogue.
    """
    found = {kind.name: kind for kind in kinds if kind.name in REQUEST_KINDS}
    ads = 0 if catalogue is None else len(catalogue)
    for name, kind in found.items():
        # A bid request has one symbol more than there are ads: none was released.
        symbols = ads + (name == BID_REQUESTS)
        is_summed = kind.reduction is Reduction.SUM
        if not (ads and is_summed and kind.columns[0][1].cells == symbols):
            raise BadParameter("kinds", name, "summed, and of the ads of the catalogue")
    return found


class AdServer:
    """One catalogue, its impressions and requests. Another catalogue is another ad server.

    Args:
        catalogue: What is handed out; an index means a place in it.
        first_epoch: The oldest epoch that is open at the start.
        requests: The kinds of requests that are counted; none by default.
        limits: Bounds of what is kept.
        terms: On which batches are released.
    """

    __slots__ = ("_aggregator", "_catalogue", "_requests")

    def __init__(
        self,
        catalogue: Catalogue,
        first_epoch: int = 0,
        *,
        requests: Iterable[Kind] = (),
        limits: AggregationLimits | None = None,
        terms: BatchTerms | None = None,
    ) -> None:
        listed = tuple(requests)
        self._catalogue = catalogue
        self._requests = request_kinds(listed, catalogue)
        if len(self._requests) < len(listed):
            names = [kind.name for kind in listed]
            raise BadParameter("requests", names, f"of {', '.join(sorted(REQUEST_KINDS))}")
        self._aggregator = Aggregator(
            [self.kind, *listed], first_epoch, limits=limits, terms=terms
        )

    @property
    def catalogue(self) -> Catalogue:
        """What is handed out."""
        return self._catalogue

    @property
    def kind(self) -> Kind:
        """The kind of frame that carries impressions."""
        return impressions_kind(len(self._catalogue))

    @property
    def counters(self) -> FrameCounters:
        """Frames by outcome."""
        return self._aggregator.counters

    def apply(self, data: bytes) -> FrameOutcome:
        """Count the impressions or requests of one frame, as ``POST /frames`` does."""
        return self._aggregator.apply(data)

    def apply_requests(self, data: bytes) -> FrameOutcome:
        """Count the requests of one frame; any other kind is refused, as by ``POST /requests``."""
        return self._aggregator.apply(data, self._requests)

    def close(self, epoch: int) -> None:
        """Freeze an epoch's impressions and requests."""
        for name in (IMPRESSIONS, *self._requests):
            self._aggregator.close(name, epoch)

    def impressions(self, epoch: int) -> NDArray[np.int64]:
        """Return the impressions of each ad in a closed epoch."""
        return self._aggregator.release(IMPRESSIONS, epoch)[0]

    def release(self, kind: str, epoch: int) -> tuple[Tally, int]:
        """Return the sums of a closed epoch and the number of rows behind them."""
        return self._aggregator.release(kind, epoch)

    def release_rows(self, kind: str, epoch: int) -> pa.RecordBatch:
        """Refuse: the ad server collects no rows."""
        return self._aggregator.release_rows(kind, epoch)

    def requests(self, kind: str, epoch: int) -> tuple[Tally, int]:
        """Return the counts of a kind of requests in a closed epoch, and how many there were."""
        return self._aggregator.release(kind, epoch)

    def snapshot(self) -> bytes:
        """Return the counts as bytes; the catalogue is not among them."""
        return self._aggregator.snapshot()

    @classmethod
    def restore(
        cls,
        data: bytes,
        catalogue: Catalogue,
        *,
        requests: Iterable[Kind] = (),
        limits: AggregationLimits | None = None,
    ) -> "AdServer":
        """Return the ad server that a snapshot was taken of, or raise BadSnapshot."""
        made = cls(catalogue, requests=requests, limits=limits)
        kinds = [made.kind, *made._requests.values()]
        made._aggregator = Aggregator.restore(data, kinds, limits=limits)
        return made
