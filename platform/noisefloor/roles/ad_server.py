"""The ad server: hands out the catalogue and counts impressions, without knowing of whom.

An impression is a row of a frame that carries an ad's index and nothing else. Frames are counted
as the aggregator counts them: once by batch id, by epoch, refused after the close.
"""

import hashlib
import re
from dataclasses import asdict, dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from noisefloor.canonical_json import canonical_json
from noisefloor.checks import check_count
from noisefloor.errors import BadParameter
from noisefloor.roles.aggregator import Aggregator
from noisefloor.roles.epochs import AggregationLimits
from noisefloor.roles.frame_outcomes import FrameCounters, FrameOutcome
from noisefloor.wire import Kind, Tally, symbol_kind

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


class AdServer:
    """One catalogue and its impressions. Another catalogue is another ad server.

    Args:
        catalogue: What is handed out; an index means a place in it.
        first_epoch: The oldest epoch that is open at the start.
        limits: Bounds of what is kept.
    """

    __slots__ = ("_aggregator", "_catalogue")

    def __init__(
        self,
        catalogue: Catalogue,
        first_epoch: int = 0,
        *,
        limits: AggregationLimits | None = None,
    ) -> None:
        self._catalogue = catalogue
        self._aggregator = Aggregator([self.kind], first_epoch, limits=limits)

    @property
    def catalogue(self) -> Catalogue:
        """What is handed out."""
        return self._catalogue

    @property
    def kind(self) -> Kind:
        """The kind of frame that it counts."""
        return impressions_kind(len(self._catalogue))

    @property
    def counters(self) -> FrameCounters:
        """Frames by outcome."""
        return self._aggregator.counters

    def apply(self, data: bytes) -> FrameOutcome:
        """Count the impressions of one frame."""
        return self._aggregator.apply(data)

    def close(self, epoch: int) -> None:
        """Freeze an epoch's impressions."""
        self._aggregator.close(IMPRESSIONS, epoch)

    def impressions(self, epoch: int) -> NDArray[np.int64]:
        """Return the impressions of each ad in a closed epoch."""
        return self._aggregator.release(IMPRESSIONS, epoch)[0]

    def release(self, kind: str, epoch: int) -> tuple[Tally, int]:
        """Return the sums of a closed epoch and the number of rows behind them."""
        return self._aggregator.release(kind, epoch)

    def release_rows(self, kind: str, epoch: int) -> pa.RecordBatch:
        """Refuse: the ad server collects no rows."""
        return self._aggregator.release_rows(kind, epoch)

    def snapshot(self) -> bytes:
        """Return the counts as bytes; the catalogue is not among them."""
        return self._aggregator.snapshot()

    @classmethod
    def restore(
        cls, data: bytes, catalogue: Catalogue, *, limits: AggregationLimits | None = None
    ) -> "AdServer":
        """Return the ad server that a snapshot was taken of, or raise BadSnapshot."""
        made = cls(catalogue, limits=limits)
        made._aggregator = Aggregator.restore(data, [made.kind], limits=limits)
        return made
