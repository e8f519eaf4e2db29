"""What is collected: the catalogue of ads and the kinds of report, read from a file of JSON.

Ad server and aggregator have to agree on it; Redis remembers it and refuses another.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from noisefloor.errors import BadParameter, NoisefloorError
from noisefloor.roles.ad_server import IMPRESSIONS
from noisefloor.roles.catalogue import Ad, Catalogue
from noisefloor.roles.kinds import kinds_of
from noisefloor.wire.kinds import Kind

MOST_FILE_BYTES = 1 << 26
_PARTS = frozenset({"catalogue", "kinds", "first_epoch", "namespace"})


class BadCollection(NoisefloorError):
    """The file of a collection cannot be read or breaks a rule."""


@dataclass(frozen=True, slots=True)
class Collection:
    """One collection.

    Attributes:
        catalogue: Ads in order.
        kinds: Kinds of report by name; impressions of the catalogue are always among them.
        first_epoch: The oldest epoch that is open at the start.
        namespace: First part of every key in Redis.
    """

    catalogue: Catalogue
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    first_epoch: int = 0
    namespace: str = "noisefloor"

    def __post_init__(self) -> None:
        impressions = kinds_of({IMPRESSIONS: {"size": len(self.catalogue)}})
        if self.kinds.get(IMPRESSIONS, impressions[IMPRESSIONS]) != impressions[IMPRESSIONS]:
            raise BadParameter("kinds", "<kinds>", "impressions of the catalogue's own size")
        object.__setattr__(self, "kinds", {**impressions, **self.kinds})

    @classmethod
    def read(cls, path: Path) -> "Collection":
        """Read a collection from its file, or raise BadCollection."""
        try:
            if path.stat().st_size > MOST_FILE_BYTES:
                raise BadCollection(f"A collection's file has at most {MOST_FILE_BYTES} bytes.")
            told = json.loads(path.read_text(encoding="utf-8"))
            if not set(told) <= _PARTS:
                raise BadCollection(f"A collection has {', '.join(sorted(_PARTS))}.")
            listed = told["catalogue"]
            catalogue = Catalogue(listed["version"], tuple(Ad(**ad) for ad in listed["ads"]))
            rest = {name: told[name] for name in ("first_epoch", "namespace") if name in told}
            return cls(catalogue, kinds_of(told.get("kinds", {})), **rest)
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            why = str(error) if isinstance(error, BadParameter) else type(error).__name__
            raise BadCollection(f"The collection's file cannot be used: {why}.") from None


def example(ads: int = 20) -> Collection:
    """Return a small collection to try things with: some ads, and clicks on them."""
    listed = tuple(Ad(f"ad-{place}", place % 5) for place in range(ads))
    return Collection(Catalogue(1, listed), kinds_of({"clicks": {"size": ads}}))
