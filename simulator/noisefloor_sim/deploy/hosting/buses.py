"""Which bus a run uses: memory, running services, or services started for it on a Redis server."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from noisefloor.errors import BadParameter
from noisefloor_sim.deploy.deployment import Deployment, running
from noisefloor_sim.deploy.hosting.remote_publisher import takes_experiments
from noisefloor_sim.deploy.service_client import ServiceAddresses, ServiceClient
from noisefloor_sim.deploy.starting import ServiceSettings, no_settings, start

MEMORY, SERVICES = "memory", "services"
FOLDER = Path(".noisefloor")
_SCHEMES = ("redis://", "rediss://", "unix://")
_SETTINGS = {
    "rate": "10000",
    "burst": "10000",
    "experiments": "on",
    "body_bytes": str(1 << 26),
}
"""Services of one run alone need no low limits, and see simulated people only."""


@dataclass(frozen=True, slots=True)
class BusConnection:
    """What carries frames to the roles.

    Attributes:
        services: Where the roles run, if not in the run's own processes.
        card: What the run card says of it.
    """

    services: ServiceAddresses | None
    card: dict[str, str]

    def check_experiments(self, point: str) -> None:
        """Raise BadParameter if the services do not publish what has no guarantee.

        Args:
            point: Of the sweep, that needs it.
        """
        if self.services is not None and not takes_experiments(self.services):
            rule = (
                f"started by noisefloor up --experiments: {point} publishes without a guarantee, "
                "or made-up texts, which a publisher refuses otherwise"
            )
            raise BadParameter("bus", SERVICES, rule)


@contextmanager
def open_bus(named: str, more_settings: ServiceSettings = no_settings) -> Iterator[BusConnection]:
    """Open a bus for the time of a run.

    Args:
        named: ``memory``; ``services`` or ``services:FOLDER`` for services that run; or the
            address of a Redis server, on which services are started and stopped again.
        more_settings: Of services that are started here; see ``start``.
    """
    kind, _, folder = named.partition(":")
    if named == MEMORY:
        yield BusConnection(None, {"bus": MEMORY})
    elif kind == SERVICES:
        yield _bus_of(running(Path(folder) if folder else FOLDER))
    elif named.startswith(_SCHEMES):
        with tempfile.TemporaryDirectory(prefix="noisefloor-") as made:
            anchor = Path(made) / "anchor"  # it ends with the run, and so does its ledger's use
            topology = start(
                Path(made),
                redis_url=named,
                anchor=anchor,
                settings=_SETTINGS,
                more_settings=more_settings,
            )
            try:
                yield _bus_of(topology)
            finally:
                topology.stop()
    else:
        # What was given may hold a password: it is not shown.
        rule = "one of memory, services, services:FOLDER, redis://..., rediss://..., unix://..."
        raise BadParameter("bus", "<bus>", rule)


def _bus_of(topology: Deployment) -> BusConnection:
    addresses = ServiceAddresses(
        topology.url("ad-server"),
        topology.url("aggregator"),
        topology.token("read"),
        topology.token("admin"),
        topology.url("model-publisher"),
        topology.token("publish"),
        topology.token("ledger"),
    )
    with closing(ServiceClient(addresses.aggregator)) as caller:
        reply = json.loads(caller.call("GET", "/readyz").body)
    card = {"bus": SERVICES, "durability": reply["durability"], "promise": reply["promise"]}
    return BusConnection(addresses, card)
