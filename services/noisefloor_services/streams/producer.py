"""Append frames to their partitions, a whole micro-batch in one transaction."""

from collections import Counter
from collections.abc import Mapping, Sequence

from noisefloor.checks import check_count
from noisefloor.wire import Kind, read_batch_id
from noisefloor_services.store import ENTRY_ID, FIELD, Layout, Server, StreamFull

HIGH_WATER = 1 << 16
"""Frames of a partition that may wait before producers are told to slow down."""


class Producer:
    """Frames in, for whoever has them in a list; a service with many requests uses ``Ingest``.

    Args:
        server: Where to.
        layout: How frames are spread.
        kinds: Whose ids can be read.
        high_water: Frames of a partition beyond which nothing is taken.
    """

    __slots__ = ("_high_water", "_kinds", "_layout", "_server")

    def __init__(
        self,
        server: Server,
        layout: Layout,
        kinds: Mapping[str, Kind],
        *,
        high_water: int = HIGH_WATER,
    ) -> None:
        self._server = server
        self._layout = layout
        self._kinds = kinds
        self._high_water = check_count(high_water, "high_water")

    def append(self, frames: Sequence[bytes]) -> None:
        """Take all frames or none; after StoreAway, send the same frames again."""
        if not frames:
            return
        places = [
            self._layout.partition_of(one, read_batch_id(one, self._kinds)) for one in frames
        ]
        self._check_room(Counter(places))
        keys = [self._layout.keys(place) for place in places]
        pairs = zip(keys, frames, strict=True)
        self._server.atomically([("XADD", key.frames, ENTRY_ID, FIELD, one) for key, one in pairs])

    def _check_room(self, places: Counter[int]) -> None:
        asked = [("XLEN", self._layout.keys(place).frames) for place in places]
        for place, length in zip(places, self._server.all(asked), strict=True):
            if length + places[place] > self._high_water:
                raise StreamFull(f"Partition {place}")
