"""Roles that run elsewhere: the services over HTTP, behind the same interface as in memory."""

from noisefloor_sim.deploy.hosting.buses import MEMORY, BusConnection, open_bus
from noisefloor_sim.deploy.hosting.remote_servers import RemoteHost
from noisefloor_sim.deploy.hosting.servers import InProcessHost, Receiver, ServerHost, Servers

__all__ = [
    "MEMORY",
    "BusConnection",
    "InProcessHost",
    "Receiver",
    "RemoteHost",
    "ServerHost",
    "Servers",
    "open_bus",
]
