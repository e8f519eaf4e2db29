"""A bus in memory: deterministic, bounded, for one process and one thread."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from noisefloor.checks import check_count
from noisefloor.errors import BadParameter, BusFull
from noisefloor.wire.bus import BATCH, Backlog, Delivery

MOST_FRAMES = 1 << 16


@dataclass(slots=True)
class _Topic:
    """Frames in the order in which they were published, and those that are out."""

    waiting: deque[Delivery]
    out: dict[str, Delivery]
    published: int = 0

    @property
    def held(self) -> int:
        return len(self.waiting) + len(self.out)


class MemoryBus:
    """Topics in memory, first in, first out.

    A topic holds at most ``most_frames`` frames, those that are out included: a consumer that
    does not acknowledge slows its producers down. Frames that are reclaimed come before those that
    wait, in the order in which they were published.

    Args:
        most_frames: Bound of each topic.
    """

    __slots__ = ("_most_frames", "_topics")

    def __init__(self, most_frames: int = MOST_FRAMES) -> None:
        self._most_frames = check_count(most_frames, "most_frames")
        self._topics: dict[str, _Topic] = {}

    def publish(self, topic: str, data: bytes) -> None:
        """Take a frame, or raise BusFull and take nothing."""
        if not isinstance(data, bytes):
            raise BadParameter("data", type(data).__name__, "to be bytes")
        held = self._topics.setdefault(topic, _Topic(deque(), {}))
        if held.held >= self._most_frames:
            raise BusFull(f"The topic {topic} holds {self._most_frames} frames: try again later.")
        held.waiting.append(Delivery(str(held.published), data, attempt=0))
        held.published += 1

    def receive(self, topic: str, most: int = BATCH) -> Sequence[Delivery]:
        """Hand out the oldest frames; none if the topic is empty."""
        check_count(most, "most")
        held = self._topics.get(topic)
        if held is None:
            return []
        taken = [held.waiting.popleft() for _ in range(min(most, len(held.waiting)))]
        handed = [replace(frame, attempt=frame.attempt + 1) for frame in taken]
        held.out.update((delivery.delivery_id, delivery) for delivery in handed)
        return handed

    def acknowledge(self, topic: str, delivery_ids: Iterable[str]) -> int:
        """Forget frames that are done; what was reclaimed in the meantime comes again."""
        held = self._topics.get(topic)
        if held is None:
            return 0
        return sum(held.out.pop(known, None) is not None for known in delivery_ids)

    def reclaim(self, topic: str) -> int:
        """Put everything that is out before what waits."""
        held = self._topics.get(topic)
        if held is None:
            return 0
        back = sorted(held.out.values(), key=lambda delivery: int(delivery.delivery_id))
        held.out.clear()
        held.waiting.extendleft(reversed(back))
        return len(back)

    def backlog(self, topic: str) -> Backlog:
        """Return how much of a topic is still to be done."""
        held = self._topics.get(topic)
        return Backlog(len(held.waiting), len(held.out)) if held else Backlog(0, 0)
