"""Where the server's roles run: in this process on the memory bus, or behind sockets.

The engine opens the servers of one world at a host, and uses them by their interfaces alone.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from noisefloor import roles
from noisefloor.accounting import Ledger
from noisefloor.errors import BadParameter
from noisefloor.privacy import TrustModel
from noisefloor.randomness import SeededSource
from noisefloor.tables import DataRecords
from noisefloor.tasks import TrainingTask, kinds_of_task
from noisefloor.wire import FrameBus, MemoryBus, Tally, drain, symbol_kind
from noisefloor.wire.messages import DataSetMessage

Receiver = Callable[[bytes], object]
"""What a role does with a frame."""

MethodBuilder = Callable[[roles.DataSets], Iterable[roles.PublicationMethod]]
"""Makes the methods of a publisher for some records."""

_NOTHING = symbol_kind("nothing", 1)
"""What the aggregator of a world counts in which no pipeline sends it anything."""


@dataclass(frozen=True, slots=True)
class Servers:
    """The roles whose results a pipeline may read at the end.

    Attributes:
        aggregator: Counts reports.
        ad_server: Counts impressions and requests; None in a world without ads.
    """

    aggregator: roles.Aggregation
    ad_server: roles.ImpressionServer | None

    def impressions(self, epoch: int) -> Tally:
        """Return the impressions of each ad in a closed epoch, in a world with ads."""
        if self.ad_server is None:
            raise TypeError("A world without ads counts no impressions.")
        return self.ad_server.impressions(epoch)


class HostedServers(Protocol):
    """The servers of one world."""

    @property
    def servers(self) -> Servers:
        """The servers that count reports and impressions."""
        ...

    @property
    def collection(self) -> str:
        """What frames that count here have to name; nothing where the collection is the first."""
        ...

    def learner(self, task: TrainingTask) -> roles.TrainingServer:
        """Return the server that trains on the rounds of a task."""
        ...

    def publisher(
        self, data_set: DataSetMessage, source: SeededSource, methods: MethodBuilder, method: str
    ) -> roles.PublicationServer:
        """Return the server that publishes from a data set, which has no records yet.

        Args:
            data_set: Schema, budget, and whether it is an experiment.
            source: Of the noise in this process; a service draws from the operating system.
            methods: Of a publisher in this process; a service has its own.
            method: That is requested. Services have all but what a pipeline made for comparison
                alone: that is published in this process, wherever frames are counted.
        """
        ...

    def receiver(self, topic: str, handle: Receiver) -> Receiver:
        """Return a receiver that brings a frame to the role that handles it."""
        ...

    def close(self) -> None:
        """Give back what the world's servers hold."""
        ...


class ServerHost(Protocol):
    """Hosts the servers of any number of worlds, one after the other."""

    def open(self, collection: roles.CollectionConfig) -> HostedServers:
        """Start the servers of a world that collects this."""
        ...


class InProcessHost:
    """Roles in this process, on the memory bus."""

    def open(self, collection: roles.CollectionConfig) -> "InProcessServers":
        """Start the servers of a world."""
        return InProcessServers(collection)


class InProcessServers:
    """The servers of one world, in this process."""

    __slots__ = ("_bus", "_terms", "servers")

    collection = ""

    def __init__(self, collection: roles.CollectionConfig) -> None:
        catalogue, requests = collection.catalogue, collection.requests
        ad_server = None
        if catalogue is not None:
            ad_server = roles.AdServer(
                catalogue, requests=requests.values(), terms=collection.terms
            )
        not_its_own = {roles.IMPRESSIONS, *requests}
        if collection.task is not None:
            not_its_own |= {kind.name for kind in kinds_of_task(collection.task)}
        kinds = [kind for name, kind in collection.kinds.items() if name not in not_its_own]
        self._terms = collection.terms
        aggregator = roles.Aggregator(kinds or [_NOTHING], terms=self._terms)
        self.servers = Servers(aggregator, ad_server)
        self._bus: FrameBus = MemoryBus()

    def learner(self, task: TrainingTask) -> roles.TrainingServer:
        """Return a coordinator for this task."""
        return roles.TrainingCoordinator(task, terms=self._terms)

    def publisher(
        self, data_set: DataSetMessage, source: SeededSource, methods: MethodBuilder, method: str
    ) -> roles.PublicationServer:
        """Return a publisher with a ledger of its own."""
        return InProcessPublisher(data_set, source, methods)

    def receiver(self, topic: str, handle: Receiver) -> Receiver:
        """Return a receiver that publishes a frame, and handles all that the topic holds."""

        def receive(data: bytes) -> None:
            self._bus.publish(topic, data)
            drain(self._bus, topic, handle)

        return receive

    def close(self) -> None:
        """Hold nothing."""


class InProcessPublisher:
    """The role of the publisher for one data set, with ledger and store in memory.

    Args:
        data_set: Schema, budget, and whether it is an experiment.
        source: Of the noise; each request has a stream of its own.
        methods: Makes the methods for the records of an update.
    """

    def __init__(
        self, data_set: DataSetMessage, source: SeededSource, methods: MethodBuilder
    ) -> None:
        budget = data_set.budget
        self.data_set = "users"
        self._is_experiment = data_set.experiment
        self._source = source
        self._methods = methods
        self._ledger = Ledger(
            budget.epsilon,
            budget.delta,
            neighbours=budget.neighbours,
            model=TrustModel.CENTRAL,
        )
        self._store = roles.MemoryArtefactStore()
        self._role: roles.ModelPublisher | None = None
        self._requests = 0

    def update(self, records: DataRecords) -> None:
        """Replace the records; ledger and store stay the same."""
        self._role = roles.ModelPublisher(
            self._ledger,
            self._store,
            self._methods({self.data_set: records}),
            data_sets=[self.data_set],
            is_experiment=self._is_experiment,
        )

    def publish(self, request: roles.ReleaseRequest) -> roles.Artefact:
        """Charge, release and store once."""
        if self._role is None:
            raise BadParameter("data_set", self.data_set, "updated with records before")
        source = self._source.child("release", self._requests)
        self._requests += 1
        return self._role.publish(request, source)

    def account(self) -> Ledger:
        """Return the ledger itself."""
        return self._ledger
