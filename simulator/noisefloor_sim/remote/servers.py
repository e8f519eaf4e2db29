"""Running services as the host of worlds: a collection for each, dropped afterwards."""

from noisefloor.errors import ServicesRefused
from noisefloor.randomness import SecureSource
from noisefloor.roles.collection import Collection
from noisefloor.roles.courses import Course
from noisefloor.roles.protocols import LearningServer
from noisefloor_sim.hosting import Receiver, Servers
from noisefloor_sim.remote.addresses import Addresses
from noisefloor_sim.remote.aggregation import RemoteAggregation, RemoteImpressions
from noisefloor_sim.remote.caller import Caller
from noisefloor_sim.remote.learner import RemoteLearner


class OnServices:
    """Hosts worlds at running services.

    Args:
        addresses: Of the services.
    """

    def __init__(self, addresses: Addresses) -> None:
        self._addresses = addresses

    def open(self, collection: Collection) -> "AtServices":
        """Register a collection for a world."""
        return AtServices(self._addresses, collection)


class AtServices:
    """The servers of one world, at running services.

    The collection's name is no part of any result: names are used once, so a run that is repeated
    takes another.
    """

    def __init__(self, addresses: Addresses, collection: Collection) -> None:
        self._path = f"/collections/run-{SecureSource().words(2).tobytes().hex()}"
        self._collection = collection
        self._operator = Caller(addresses.aggregator)
        self._admin = {"Authorization": f"Bearer {addresses.admin_token or addresses.token}"}
        headers = {**self._admin, "Content-Type": "application/json"}
        self._operator.call("PUT", self._path, collection.content, headers)
        self._aggregation = RemoteAggregation(addresses, self._path.rpartition("/")[2])
        self.servers = Servers(self._aggregation, RemoteImpressions(self._aggregation, collection))

    def learner(self, course: Course) -> LearningServer:
        """Return who learns the course of the collection; it has one."""
        if course != self._collection.course:
            raise ServicesRefused("A world at services learns in one pipeline.")
        return RemoteLearner(self._aggregation, course)

    def receiver(self, topic: str, handle: Receiver) -> Receiver:
        """Return the role's own: the bus is on the other side of the socket."""
        return handle

    def close(self) -> None:
        """Drop the collection."""
        self._operator.call("DELETE", self._path, None, self._admin, known=(404,))
        self._aggregation.give_back()
        self._operator.close()
