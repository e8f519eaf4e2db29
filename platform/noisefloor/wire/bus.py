"""The bus: what carries frames from devices to roles, at least once.

A frame that was received and not acknowledged can be delivered again: whoever receives has to be
idempotent. Nothing here knows the time; when to take back what was not acknowledged is decided
by whoever owns a clock.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from noisefloor.checks import check_count

BATCH = 64
"""Frames that a worker takes at once."""


@dataclass(frozen=True, slots=True)
class Delivery:
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
class Bus(Protocol):
    """Topics of frames, each delivered at least once."""

    def publish(self, topic: str, data: bytes) -> None:
        """Take a frame, or raise BusFull and take nothing."""
        ...

    def receive(self, topic: str, most: int = BATCH) -> Sequence[Delivery]:
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


def drain(bus: Bus, topic: str, handle: Callable[[bytes], object], *, most: int = BATCH) -> int:
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
