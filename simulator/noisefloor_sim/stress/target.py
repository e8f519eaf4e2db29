"""The services under load: those that run in a folder, or some that are started for the load.

What is started here is stopped here, whatever happens. The load goes to a collection of its own,
which is dropped at the end: nothing that the services counted before is touched.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from noisefloor.randomness import SecureSource
from noisefloor.roles import CollectionConfig
from noisefloor_sim.deploy import Deployment, ServiceClient, bearer, running, start
from noisefloor_sim.scenario import Load

_AD_SERVER, _AGGREGATOR = "ad-server", "aggregator"
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ServicesUnderLoad:
    """Running services with a collection for the load.

    Attributes:
        deployment: The services.
        collection: The name of the collection.
        is_own: Whether they were started for the load.
    """

    deployment: Deployment
    collection: str
    is_own: bool

    def job(self) -> dict[str, Any]:  # Any: JSON
        """Return where to send, whom to ask what counts, and which processes to look at."""
        processes = self.deployment.processes
        return {
            "ports": [processes[_AD_SERVER].port],
            "counting": {
                "port": processes[_AGGREGATOR].port,
                "collection": self.collection,
                "token": self.deployment.token("read"),
            },
            "pids": self.pids(),
        }

    def pids(self) -> dict[str, int]:
        """Return the numbers of the processes by name, database servers included."""
        processes = self.deployment.processes.values()
        found = {one.name: one.pid for one in processes}
        return found | {
            f"{one.name}-server": one.server_pid for one in processes if one.server_pid
        }


@contextmanager
def opened_services(
    load: Load, folder: Path | None, tell: Tell
) -> Iterator[tuple[Deployment, bool]]:
    """Yield services, and whether they were started here; those are stopped at the end.

    Args:
        load: Says what is started.
        folder: Where services run already; None to start some.
        tell: Called with what is waited for.
    """
    if folder is not None:
        yield running(folder), False
        return
    with tempfile.TemporaryDirectory(prefix="noisefloor-stress-") as made:
        settings = {"partitions": str(load.services.partitions)}
        anchor = Path(made) / "anchor"  # it ends with the load, and so does its ledger's use
        options = {"durability": load.services.durability, "settings": settings, "tell": tell}
        started = start(Path(made), anchor=anchor, **options)  # type: ignore[arg-type]
        try:
            yield started, True
        finally:
            tell("stopping the services")
            started.stop()


@contextmanager
def collection_for_load(
    deployment: Deployment, collection: CollectionConfig, *, is_own: bool
) -> Iterator[ServicesUnderLoad]:
    """Register a collection, and drop it at the end.

    Args:
        deployment: The services.
        collection: What they collect under load.
        is_own: Whether they were started for the load.
    """
    name = collection_name()
    path, headers = f"/collections/{name}", bearer(deployment.token("admin"))
    with closing(ServiceClient(deployment.url(_AGGREGATOR))) as operator:
        typed = {**headers, "Content-Type": "application/json"}
        operator.call("PUT", path, collection.content, typed)
        try:
            yield ServicesUnderLoad(deployment, name, is_own)
        finally:
            operator.call("DELETE", path, None, headers, known=(404,))


def collection_name() -> str:
    """Return a name that was never used: a name is used once, and is no part of any figure."""
    return f"stress-{SecureSource().words(1).tobytes().hex()}"
