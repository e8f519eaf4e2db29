"""Whether frames can be appended: failures by cause, and a probe that appends nothing.

A store that answers may still refuse every frame: the user lost a right, or a key holds another
type. Each refusal is a 503 to a device; here they are counted, logged once for each cause, and
make the service not ready. ``Producer`` appends lists of frames without the admission checks of
``Ingest``: it is for chaos runs, tests and benchmarks.
"""

import logging
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from threading import Lock

from redis.exceptions import NoPermissionError, RedisError

from noisefloor.checks import check_count
from noisefloor.errors import NoisefloorError
from noisefloor.wire import Kind, read_batch_id
from noisefloor_services import store
from noisefloor_services.metrics import MetricCounter, MetricSample
from noisefloor_services.streams.pending import Clock

AWAY, FULL = "store-away", "full"
PERMISSION, TYPE, ENTRY = "no-permission", "wrong-type", "bad-entry-id"
WINDOW, OTHER = "no-window", "other"
CAUSES = (AWAY, FULL, PERMISSION, TYPE, ENTRY, WINDOW)
_TRANSIENT = (AWAY, FULL)
"""Transient: they pass, and the answer has Retry-After."""

_DENIED_IN_SCRIPT = ("ACL failure in script", "The user executing the script")
"""As Valkey and Redis say it of a command that a script calls."""

_PROBE_S = 0.5
_SEEN_BY_PROBE = (PERMISSION, TYPE, WINDOW)
_TEXTS = {
    PERMISSION: "the store's user may not append",
    TYPE: "a stream's key holds something else",
    ENTRY: "the store refuses the next entry id",
    WINDOW: "no aggregator has opened the epochs of the collection",
    OTHER: "the store refuses them",
}

_log = logging.getLogger(__name__)


def cause_of(error: Exception) -> str:
    """Return why an append failed, as one of a fixed list of words."""
    if isinstance(error, store.StoreAway):
        return AWAY
    if isinstance(error, store.StreamFull):
        return FULL
    if isinstance(error, store.BadStore):  # windows or groups that no aggregator has prepared
        return WINDOW
    text = str(error)
    if isinstance(error, NoPermissionError) or any(part in text for part in _DENIED_IN_SCRIPT):
        return PERMISSION
    if text.startswith("WRONGTYPE"):
        return TYPE
    return ENTRY if "ID specified in XADD" in text or "last possible ID" in text else OTHER


class WritePath:
    """What becomes of appends, partition by partition; safe to share between threads.

    Args:
        server: Where the streams are; used by the probe.
        layout: How frames are spread.
        kinds: Names of the kinds that are taken.
        clock: Seconds that never run backwards.
    """

    def __init__(
        self,
        server: store.Server,
        layout: store.Layout,
        kinds: Iterable[str] = (),
        clock: Clock = time.monotonic,
    ) -> None:
        self._server = server
        self._keys = [layout.keys(place) for place in range(layout.partitions)]
        self._kinds = tuple(kinds)
        self._clock = clock
        self._next_s = float("-inf")
        self._failing: dict[int, str] = {}
        self._lock = Lock()
        text = "Frames that could not be appended, by cause."
        self._failures = MetricCounter("appends_failed", text, "cause", CAUSES)

    def succeeded(self, places: Iterable[int]) -> None:
        """Note that frames of these partitions were appended."""
        if self._failing:
            self._note(dict.fromkeys(places, ""))

    def failed(self, error: Exception, places: Iterable[int], frames: int = 1) -> None:
        """Note that frames of these partitions could not be appended."""
        cause = cause_of(error)
        self._failures.add(cause, frames)
        if cause not in _TRANSIENT:
            self._note(dict.fromkeys(places, cause))

    def lacks(self) -> str:
        """Return why frames are not taken, or nothing; probes, if need be, which blocks."""
        if self._failing or self._clock() >= self._next_s:
            self._next_s = self._clock() + _PROBE_S
            found = {place: self._probed(place) for place in range(len(self._keys))}
            self._note({place: cause for place, cause in found.items() if cause is not None})
        causes = sorted(set(self._failing.values()))
        return " ".join(f"Frames cannot be appended: {_TEXTS[one]}." for one in causes)

    def samples(self) -> Iterable[MetricSample]:
        """Return the failures."""
        return self._failures.samples()

    def _probed(self, place: int) -> str | None:
        """Return why a partition takes no frames, nothing if it does, None if that is not known.

        An append is queued and discarded: the server checks rights when a command is queued, and
        the type of a key when it is read. An entry id it checks only when it appends.
        """
        keys = self._keys[place]
        append: store.Command = ("XADD", keys.frames, store.ENTRY_ID, store.FIELD, b"")
        windows: list[store.Command] = [
            ("HMGET", keys.window(kind), "floor") for kind in self._kinds
        ]
        try:
            commands = [("MULTI",), append, ("DISCARD",), ("XLEN", keys.frames), *windows]
            if [None] in self._server.all(commands)[4:]:
                return WINDOW
        except (NoisefloorError, RedisError) as error:
            cause = cause_of(error)
            return None if cause in _TRANSIENT else cause
        return "" if self._failing.get(place, PERMISSION) in _SEEN_BY_PROBE else None

    def _note(self, found: dict[int, str]) -> None:
        """Take over causes by partition; log each when it begins and when it is over."""
        with self._lock:
            before = set(self._failing.values())
            changed = {**self._failing, **found}
            self._failing = {place: cause for place, cause in changed.items() if cause}
            after = set(self._failing.values())
        for cause in sorted(after - before):
            _log.error("frames cannot be appended: %s", _TEXTS[cause])
        for cause in sorted(before - after):
            _log.warning("frames can be appended again; it was: %s", _TEXTS[cause])


HIGH_WATER = 1 << 16
"""Frames of a partition that may wait before producers are refused."""


class Producer:
    """Appends a list of frames without admission; services use ``Ingest``.

    Args:
        server: Where to.
        layout: How frames are spread.
        kinds: Whose ids can be read.
        high_water: Frames of a partition beyond which nothing is taken.
    """

    __slots__ = ("_high_water", "_kinds", "_layout", "_server")

    def __init__(
        self,
        server: store.Server,
        layout: store.Layout,
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
        self._check_capacity(Counter(places))
        keys = [self._layout.keys(place) for place in places]
        pairs = zip(keys, frames, strict=True)
        self._server.atomically(
            [("XADD", key.frames, store.ENTRY_ID, store.FIELD, one) for key, one in pairs]
        )

    def _check_capacity(self, places: Counter[int]) -> None:
        commands = [("XLEN", self._layout.keys(place).frames) for place in places]
        for place, length in zip(places, self._server.all(commands), strict=True):
            if length + places[place] > self._high_water:
                raise store.StreamFull(f"Partition {place}")
