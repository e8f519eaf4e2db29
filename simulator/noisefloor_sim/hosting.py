"""Where the server's roles run: in this process on the memory bus, or behind sockets.

The engine asks a hosting for the servers of one world and knows nothing else of them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from noisefloor.roles.ad_server import AdServer
from noisefloor.roles.aggregator import Aggregator
from noisefloor.roles.collection import Collection
from noisefloor.roles.courses import Course, kinds_of_course
from noisefloor.roles.learner import Learner
from noisefloor.roles.protocols import Aggregation, ImpressionServer, LearningServer
from noisefloor.wire.bus import Bus, drain
from noisefloor.wire.kinds import symbol_kind
from noisefloor.wire.memory_bus import MemoryBus

Receiver = Callable[[bytes], object]
"""What a role does with a frame."""

_NOTHING = symbol_kind("nothing", 1)
"""What the aggregator of a world counts in which no pipeline sends it anything."""


@dataclass(frozen=True, slots=True)
class Servers:
    """The roles whose results a pipeline may read at the end."""

    aggregator: Aggregation
    ad_server: ImpressionServer


class Hosted(Protocol):
    """The servers of one world."""

    @property
    def servers(self) -> Servers:
        """Who counts reports and impressions."""
        ...

    def learner(self, course: Course) -> LearningServer:
        """Return who learns from the rounds of a course."""
        ...

    def receiver(self, topic: str, handle: Receiver) -> Receiver:
        """Return a receiver that brings a frame to the role that handles it."""
        ...

    def close(self) -> None:
        """Give back what the world's servers hold."""
        ...


class Hosting(Protocol):
    """Hosts the servers of any number of worlds, one after the other."""

    def open(self, collection: Collection) -> Hosted:
        """Start the servers of a world that collects this."""
        ...


class InProcess:
    """Roles in this process, on the memory bus."""

    def open(self, collection: Collection) -> "InMemory":
        """Start the servers of a world."""
        return InMemory(collection)


class InMemory:
    """The servers of one world, in this process."""

    __slots__ = ("_bus", "servers")

    def __init__(self, collection: Collection) -> None:
        ad_server = AdServer(collection.catalogue)
        not_its_own = {ad_server.kind.name}
        if collection.course is not None:
            not_its_own |= {kind.name for kind in kinds_of_course(collection.course)}
        kinds = [kind for name, kind in collection.kinds.items() if name not in not_its_own]
        self.servers = Servers(Aggregator(kinds or [_NOTHING]), ad_server)
        self._bus: Bus = MemoryBus()

    def learner(self, course: Course) -> LearningServer:
        """Return a learner of its own."""
        return Learner(course)

    def receiver(self, topic: str, handle: Receiver) -> Receiver:
        """Return a receiver that publishes a frame, and handles all that the topic holds."""

        def receive(data: bytes) -> None:
            self._bus.publish(topic, data)
            drain(self._bus, topic, handle)

        return receive

    def close(self) -> None:
        """Hold nothing."""
