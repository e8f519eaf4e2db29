"""Clients in a closed loop: each sends a frame, and the same bytes again until they are accepted.

``ClickTraffic`` makes the frames one by one. The expected sums are added up from the bare numbers;
every frame that is made has to count in the end.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.randomness import SeededSource
from noisefloor.roles import IMPRESSIONS, example_collection
from noisefloor.wire import ID_BYTES, Kind, seal
from noisefloor_services.chaos.processes import BROKEN, NOBODY, ChaosTimeout, Connection
from noisefloor_services.http import FRAME_TYPE

TAKEN, REFUSED, AWAY = 202, 400, 503
_LATER = (BROKEN, NOBODY, AWAY, 429)
_PAUSE_S = 0.02
_STUCK_S = 120.0
_HEADERS = {"Content-Type": FRAME_TYPE}


@dataclass(frozen=True, slots=True)
class OutgoingFrame:
    """A frame, and the answer that ends its way.

    Attributes:
        data: The same bytes at every attempt.
        expected_status: 202, or 400 for a frame that can never count.
    """

    data: bytes
    expected_status: int = TAKEN


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request.

    Attributes:
        begun_s: On the monotonic clock.
        ended_s: When the answer was there, or the connection broke.
        status: As of a reply.
        says_when: Whether it named a time to try again.
    """

    begun_s: float
    ended_s: float
    status: int
    says_when: bool


class Clients:
    """Threads that take parcels from one iterator and deliver each.

    Args:
        port: Of the ad server; it stays the same when that is brought back.
        outgoing_frames: What is sent, as far as ``allow`` goes; it need not end.
        threads: How many requests are under way at once.
    """

    def __init__(
        self, port: int, outgoing_frames: Iterator[OutgoingFrame], threads: int = 8
    ) -> None:
        self.attempts: list[Attempt] = []
        self.delivered: list[OutgoingFrame] = []
        self.odd: Counter[int] = Counter()
        self._port = port
        self._parcels = outgoing_frames
        self._lock = threading.Lock()
        self._allowed = self._begun = 0
        self._is_over = False
        self._under_way: dict[int, float] = {}
        self._errors: list[BaseException] = []
        self._threads = [threading.Thread(target=self._body, daemon=True) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    def allow(self, count: int) -> None:
        """Let this many more parcels go out."""
        with self._lock:
            self._allowed += count

    def wait(self, count: int) -> None:
        """Wait until this many parcels were delivered in all."""
        self._wait(lambda: len(self.delivered) + self.odd.total() >= count)

    def finish(self) -> None:
        """Begin nothing new, and wait until everything that was begun is delivered."""
        with self._lock:
            self._is_over = True
        self._wait(lambda: not any(thread.is_alive() for thread in self._threads))

    def oldest_s(self) -> float:
        """Return when the oldest request began that is under way."""
        return min(tuple(self._under_way.values()), default=float("inf"))

    def answers(self, status: int) -> int:
        """Return how many requests were answered so."""
        return sum(one.status == status for one in self.attempts)

    def _wait(self, is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _STUCK_S
        while not is_so():
            if self._errors:
                raise self._errors[0]
            if time.monotonic() > deadline:
                raise ChaosTimeout(f"{len(self.delivered)} frames were taken, and then no more.")
            time.sleep(_PAUSE_S)

    def _body(self) -> None:
        connection = Connection(self._port)
        try:
            while (parcel := self._next()) is not None:
                self._deliver(connection, parcel)
        except Exception as error:
            self._errors.append(error)
        finally:
            connection.close()

    def _next(self) -> OutgoingFrame | None:
        """Return the next parcel once one is allowed, or nothing when it is over."""
        while True:
            with self._lock:
                if self._is_over:
                    return None
                if self._begun < self._allowed:
                    self._begun += 1
                    return next(self._parcels)
            time.sleep(_PAUSE_S)

    def _deliver(self, connection: Connection, parcel: OutgoingFrame) -> None:
        """Send until the expected answer comes; any that is neither that nor "later" is odd."""
        for _ in range(int(_STUCK_S / _PAUSE_S)):
            begun_s = self._under_way[threading.get_ident()] = time.monotonic()
            reply = connection.ask("POST", "/frames", parcel.data, _HEADERS)
            del self._under_way[threading.get_ident()]
            says_when = "retry-after" in reply.headers
            self.attempts.append(Attempt(begun_s, time.monotonic(), reply.status, says_when))
            if reply.status in _LATER:
                time.sleep(_PAUSE_S)
                continue
            if reply.status == parcel.expected_status:
                self.delivered.append(parcel)
            else:
                self.odd[reply.status] += 1
            return
        raise ChaosTimeout("A frame is not taken.")


COLLECTION = example_collection()
KINDS = tuple(COLLECTION.kinds.values())
EPOCHS = 2


class ClickTraffic:
    """An endless sequence of frames of clicks and impressions.

    Args:
        seed: Of numbers and order.
        reports_a_frame: In every frame.
        duplicate_share: Frames that are sent once more, by whichever client comes next.
        poison_every: Every n-th frame can never count; none if 0.
    """

    def __init__(
        self,
        seed: int,
        *,
        reports_a_frame: int = 100,
        duplicate_share: float = 0.05,
        poison_every: int = 0,
    ) -> None:
        self.sums: dict[tuple[str, int], NDArray[np.int64]] = {}
        self.frames = self.reports = self.poison = 0
        self._generator = SeededSource(seed, "clicks").generator()
        self._size = reports_a_frame
        self._share = duplicate_share
        self._poison_every = poison_every

    def outgoing_frames(self) -> Iterator[OutgoingFrame]:
        """Yield frames for ever."""
        before: list[bytes] = []
        for number in range(1, 1 << 30):
            if self._poison_every and number % self._poison_every == 0:
                self.poison += 1
                yield OutgoingFrame(self._generator.bytes(200), REFUSED)
            elif before and self._generator.random() < self._share:
                yield OutgoingFrame(before[int(self._generator.integers(len(before)))])
            else:
                turn, place = divmod(number, len(KINDS))
                before.append(self._frame(KINDS[place], turn % EPOCHS))
                yield OutgoingFrame(before[-1])

    def _frame(self, kind: Kind, epoch: int) -> bytes:
        size = kind.cells
        if kind.name == IMPRESSIONS:
            shown = self._generator.integers(0, size, self._size)
            counted, reports = np.bincount(shown, minlength=size), shown
        else:
            reports = self._generator.integers(0, 2, (self._size, size))
            counted = reports.sum(axis=0)
        place = (kind.name, epoch)
        self.sums[place] = self.sums.get(place, np.zeros(size, np.int64)) + counted
        self.frames += 1
        self.reports += self._size
        return seal(kind, epoch, kind.encode(reports), self._generator.bytes(ID_BYTES))
