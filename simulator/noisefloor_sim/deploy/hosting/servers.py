"""Where the server's roles run: in this process on the memory bus, or behind sockets.

The engine gets the servers of one world from a host, and depends on nothing else of it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from noisefloor.roles import (
    IMPRESSIONS,
    AdServer,
    Aggregation,
    Aggregator,
    CollectionConfig,
    ImpressionServer,
    TrainingCoordinator,
    TrainingServer,
)
from noisefloor.tasks import TrainingTask, kinds_of_task
from noisefloor.wire import FrameBus, MemoryBus, Tally, drain, symbol_kind

Receiver = Callable[[bytes], object]
"""What a role does with a frame."""

_NOTHING = symbol_kind("nothing", 1)
"""What the aggregator of a world counts in which no pipeline sends it anything."""


@dataclass(frozen=True, slots=True)
class Servers:
    """The roles whose results a pipeline may read at the end.

    Attributes:
        aggregator: Counts reports.
        ad_server: Counts impressions; None in a world without ads.
    """

    aggregator: Aggregation
    ad_server: ImpressionServer | None

    def impressions(self, epoch: int) -> Tally:
        """Return the impressions of each ad in a closed epoch, in a world with ads."""
        if self.ad_server is None:
            raise TypeError("A world without ads counts no impressions.")
        return self.ad_server.impressions(epoch)


class HostedServers(Protocol):
    """The servers of one world."""

    @property
    def servers(self) -> Servers:
        """Who counts reports and impressions."""
        ...

    def learner(self, task: TrainingTask) -> TrainingServer:
        """Return who learns from the rounds of a course."""
        ...

    def receiver(self, topic: str, handle: Receiver) -> Receiver:
        """Return a receiver that brings a frame to the role that handles it."""
        ...

    def close(self) -> None:
        """Give back what the world's servers hold."""
        ...


class ServerHost(Protocol):
    """Hosts the servers of any number of worlds, one after the other."""

    def open(self, collection: CollectionConfig) -> HostedServers:
        """Start the servers of a world that collects this."""
        ...


class InProcessHost:
    """Roles in this process, on the memory bus."""

    def open(self, collection: CollectionConfig) -> "InProcessServers":
        """Start the servers of a world."""
        return InProcessServers(collection)


class InProcessServers:
    """The servers of one world, in this process."""

    __slots__ = ("_bus", "servers")

    def __init__(self, collection: CollectionConfig) -> None:
        catalogue = collection.catalogue
        ad_server = None if catalogue is None else AdServer(catalogue)
        not_its_own = {IMPRESSIONS}
        if collection.task is not None:
            not_its_own |= {kind.name for kind in kinds_of_task(collection.task)}
        kinds = [kind for name, kind in collection.kinds.items() if name not in not_its_own]
        self.servers = Servers(Aggregator(kinds or [_NOTHING]), ad_server)
        self._bus: FrameBus = MemoryBus()

    def learner(self, task: TrainingTask) -> TrainingServer:
        """Return a learner of its own."""
        return TrainingCoordinator(task)

    def receiver(self, topic: str, handle: Receiver) -> Receiver:
        """Return a receiver that publishes a frame, and handles all that the topic holds."""

        def receive(data: bytes) -> None:
            self._bus.publish(topic, data)
            drain(self._bus, topic, handle)

        return receive

    def close(self) -> None:
        """Hold nothing."""
