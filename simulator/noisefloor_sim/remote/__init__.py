"""Roles that run elsewhere: the services over HTTP, behind the same interface as in memory."""

from noisefloor_sim.remote.addresses import Addresses
from noisefloor_sim.remote.servers import OnServices

__all__ = ["Addresses", "OnServices"]
