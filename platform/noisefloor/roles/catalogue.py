"""The catalogue of ads: frozen, versioned, and known by a hash of its content."""

import hashlib
import re
from dataclasses import asdict, dataclass, field

from noisefloor.canonical_json import canonical_json
from noisefloor.checks import check_count
from noisefloor.errors import BadParameter

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
        version: Raised by whoever publishes a new catalogue.
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
