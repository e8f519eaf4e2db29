"""The bus: what carries frames from devices to roles, at least once.

A frame that was received and not acknowledged can be delivered again: receivers have to be
idempotent. Nothing here knows the time; when to take back what was not acknowledged is decided
by a caller that has a clock.

A bus in memory: deterministic, bounded, for one process and one thread.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from noisefloor.checks import check_count
from noisefloor.errors import BadParameter, BusFull

BATCH = 64
"""Frames that a worker takes at once."""


@dataclass(frozen=True, slots=True)
class DeliveredFrame:
    """One frame handed out once.

    Attributes:
        delivery_id: What to acknowledge; opaque, and the bus's own.
        data: The bytes as they were published.
        attempt: How often the frame has been handed out, this time included.
    """

    delivery_id: str
    data: bytes
    attempt: int


@dataclass(frozen=True, slots=True)
class Backlog:
    """How much of a topic is still to be done."""

    waiting: int
    unacknowledged: int

    @property
    def total(self) -> int:
        """Everything that the bus still holds."""
        return self.waiting + self.unacknowledged


@runtime_checkable
class FrameBus(Protocol):
    """Topics of frames, each delivered at least once."""

    def publish(self, topic: str, data: bytes) -> None:
        """Take a frame, or raise BusFull and take nothing."""
        ...

    def receive(self, topic: str, most: int = BATCH) -> Sequence[DeliveredFrame]:
        """Hand out up to ``most`` frames; none if the topic is empty. It never waits."""
        ...

    def acknowledge(self, topic: str, delivery_ids: Iterable[str]) -> int:
        """Forget frames that are done, and return how many were; unknown ids are no error."""
        ...

    def reclaim(self, topic: str) -> int:
        """Make everything that was not acknowledged ready again, and return how much it was."""
        ...

    def backlog(self, topic: str) -> Backlog:
        """Return how much of a topic is still to be done."""
        ...


def drain(
    bus: FrameBus, topic: str, handle: Callable[[bytes], object], *, most: int = BATCH
) -> int:
    """Handle frames until the topic is empty (burst mode), and return how many there were.

    Frames are acknowledged after they were handled, a batch at a time. If ``handle`` raises, the
    batch is not acknowledged and comes again after ``reclaim``.
    """
    check_count(most, "most")
    handled = 0
    while deliveries := bus.receive(topic, most):
        for delivery in deliveries:
            handle(delivery.data)
        bus.acknowledge(topic, [delivery.delivery_id for delivery in deliveries])
        handled += len(deliveries)
    return handled


MOST_FRAMES = 1 << 16


@dataclass(slots=True)
class _Topic:
    """Frames in the order in which they were published, and those that are out."""

    waiting: deque[DeliveredFrame]
    out: dict[str, DeliveredFrame]
    published: int = 0

    @property
    def size(self) -> int:
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
        frames = self._topics.setdefault(topic, _Topic(deque(), {}))
        if frames.size >= self._most_frames:
            raise BusFull(f"The topic {topic} holds {self._most_frames} frames: try again later.")
        frames.waiting.append(DeliveredFrame(str(frames.published), data, attempt=0))
        frames.published += 1

    def receive(self, topic: str, most: int = BATCH) -> Sequence[DeliveredFrame]:
        """Hand out the oldest frames; none if the topic is empty."""
        check_count(most, "most")
        frames = self._topics.get(topic)
        if frames is None:
            return []
        taken = [frames.waiting.popleft() for _ in range(min(most, len(frames.waiting)))]
        handed = [replace(frame, attempt=frame.attempt + 1) for frame in taken]
        frames.out.update((delivery.delivery_id, delivery) for delivery in handed)
        return handed

    def acknowledge(self, topic: str, delivery_ids: Iterable[str]) -> int:
        """Forget frames that are done; what was reclaimed in the meantime comes again."""
        frames = self._topics.get(topic)
        if frames is None:
            return 0
        return sum(frames.out.pop(known, None) is not None for known in delivery_ids)

    def reclaim(self, topic: str) -> int:
        """Put everything that is out before what waits."""
        frames = self._topics.get(topic)
        if frames is None:
            return 0
        back = sorted(frames.out.values(), key=lambda delivery: int(delivery.delivery_id))
        frames.out.clear()
        frames.waiting.extendleft(reversed(back))
        return len(back)

    def backlog(self, topic: str) -> Backlog:
        """Return how much of a topic is still to be done."""
        frames = self._topics.get(topic)
        return Backlog(len(frames.waiting), len(frames.out)) if frames else Backlog(0, 0)
