"""The servers of a world behind one interface: roles in this process, or services over HTTP."""

from noisefloor_sim.deploy.hosting.buses import MEMORY, BusConnection, open_bus
from noisefloor_sim.deploy.hosting.publisher_client import PublisherClient, read_tokens
from noisefloor_sim.deploy.hosting.remote_servers import RemoteHost
from noisefloor_sim.deploy.hosting.servers import (
    InProcessHost,
    MethodBuilder,
    Receiver,
    ServerHost,
    Servers,
)

__all__ = [
    "MEMORY",
    "BusConnection",
    "InProcessHost",
    "MethodBuilder",
    "PublisherClient",
    "Receiver",
    "RemoteHost",
    "ServerHost",
    "Servers",
    "open_bus",
    "read_tokens",
]
