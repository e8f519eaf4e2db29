"""Running services as the host of worlds: each world has a collection, dropped afterwards.

Training rounds behind a socket: closing a round makes the services train on it.
"""

import time
from contextlib import ExitStack

import pyarrow as pa

from noisefloor import roles
from noisefloor.errors import ServicesRefused, ServicesUnavailable
from noisefloor.randomness import SecureSource, SeededSource
from noisefloor.tables import Labels
from noisefloor.tasks import TrainingTask, kinds_of_task
from noisefloor.wire import Tally
from noisefloor.wire.messages import DataSetMessage
from noisefloor_sim.deploy.hosting import servers
from noisefloor_sim.deploy.hosting.remote_aggregation import RemoteAggregation, RemoteImpressions
from noisefloor_sim.deploy.hosting.remote_publisher import RemotePublisher
from noisefloor_sim.deploy.service_client import ServiceAddresses, ServiceClient, bearer

PATIENCE_S = 600.0
"""How long a step may take: with many collected rows it is minutes."""

_PAUSE_S = 0.01


class RemoteLearner:
    """One training task at running services.

    Args:
        aggregation: Who counts its reports.
        task: As it is registered there.
    """

    def __init__(self, aggregation: RemoteAggregation, task: TrainingTask) -> None:
        self._aggregation = aggregation
        self._task = task
        self._kinds = tuple(kind.name for kind in kinds_of_task(task))
        self.counters = roles.FrameCounters()  # those of the collection hold these frames
        self.content: bytes = self._fetched(0)

    def apply(self, data: bytes) -> roles.FrameOutcome:
        """Send one frame of reports."""
        return self._aggregation.apply(data)

    def release(self, kind: str, epoch: int) -> tuple[Tally, int]:
        """Return the sums of a closed round and the number of rows behind them."""
        return self._aggregation.release(kind, epoch)

    def release_rows(self, kind: str, epoch: int) -> pa.RecordBatch:
        """Return the rows that a closed round collected, sorted by content."""
        return self._aggregation.release_rows(kind, epoch)

    def close(self, number: int) -> None:
        """Close a round for every kind, its own last, and fetch the broadcast that follows."""
        own = self._task.kind(number).name
        for kind in (*(name for name in self._kinds if name != own), own):
            self._aggregation.close(kind, number)
        self.content = self._fetched(number + 1)

    def summary(self, number: int) -> roles.EpochSummary:
        """Return a round in numbers."""
        return self._aggregation.summary(self._task.kind(number).name, number)

    def answers(self, data: bytes) -> Labels:
        """Ask for a decision on each protected query of a frame."""
        return self._aggregation.answers(data)

    def _fetched(self, number: int) -> bytes:
        """Wait for the broadcast of a round."""
        deadline, pause_s = time.monotonic() + PATIENCE_S, _PAUSE_S
        previous: bytes | None = None
        while time.monotonic() < deadline:
            content = self._aggregation.model()
            if content is not None and content != previous:
                if self._task.round_of(content) == number:
                    return content
                previous = content
            time.sleep(pause_s)
            pause_s = min(0.2, 1.5 * pause_s)
        raise ServicesUnavailable(f"The services do not get to round {number}.")


class RemoteHost:
    """Hosts worlds at running services.

    Args:
        addresses: Of the services.
    """

    def __init__(self, addresses: ServiceAddresses) -> None:
        self._addresses = addresses

    def open(self, collection: roles.CollectionConfig) -> "RemoteServers":
        """Register a collection for a world."""
        return RemoteServers(self._addresses, collection)


class RemoteServers:
    """The servers of one world, at running services.

    The collection's name is no part of any result: names are used once, so a run that is repeated
    takes another.
    """

    def __init__(self, addresses: ServiceAddresses, collection: roles.CollectionConfig) -> None:
        self._addresses = addresses
        self._opened = ExitStack()
        self._path = f"/collections/run-{SecureSource().words(2).tobytes().hex()}"
        self._collection = collection
        self._operator = ServiceClient(addresses.aggregator)
        self._admin = bearer(addresses.admin_token or addresses.token)
        self._aggregation: RemoteAggregation | None = None
        if not collection.kinds:  # no frame is ever sent: there is nothing to register
            self.servers = servers.InProcessServers(collection).servers
            return
        headers = {**self._admin, "Content-Type": "application/json"}
        self._operator.call("PUT", self._path, collection.content, headers)
        self._opened.callback(self._drop)
        counts = self._aggregation = RemoteAggregation(addresses, self.collection)
        has_ads = collection.catalogue is not None
        self.servers = servers.Servers(
            counts, RemoteImpressions(counts, collection) if has_ads else None
        )

    @property
    def collection(self) -> str:
        """What frames that count here have to name."""
        return self._path.rpartition("/")[2]

    def learner(self, task: TrainingTask) -> roles.TrainingServer:
        """Return the server that trains the one task of the collection."""
        if self._aggregation is None or task != self._collection.task:
            raise ServicesRefused("A world at services learns in one pipeline.")
        return RemoteLearner(self._aggregation, task)

    def publisher(
        self,
        data_set: DataSetMessage,
        source: SeededSource,
        methods: servers.MethodBuilder,
        method: str,
    ) -> roles.PublicationServer:
        """Register a data set at the publisher; noise and methods are the service's own."""
        if method not in roles.methods_of({}, is_experiment=True):
            return servers.InProcessPublisher(data_set, source, methods)
        publisher = RemotePublisher(self._addresses, data_set)
        self._opened.callback(publisher.close)
        return publisher

    def receiver(self, topic: str, handle: servers.Receiver) -> servers.Receiver:
        """Return the role's own: the bus is on the other side of the socket."""
        return handle

    def close(self) -> None:
        """Drop the data sets and the collection, each whatever becomes of the others."""
        self._opened.close()
        self._operator.close()

    def _drop(self) -> None:
        self._operator.call("DELETE", self._path, None, self._admin, known=(404,))
        if self._aggregation is not None:
            self._aggregation.disconnect()
