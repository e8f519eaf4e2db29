"""All services on one machine: started as processes, looked at, and stopped in order.

Nothing of the services is imported here: they are started by name and asked over HTTP.
"""

from noisefloor_sim.topology.errors import (
    BadState,
    FolderBusy,
    NotRunning,
    ServicesMissing,
    StaleState,
    StartFailed,
)
from noisefloor_sim.topology.repairing import repair
from noisefloor_sim.topology.starting import restore_ledger, start
from noisefloor_sim.topology.stopping import Ending, Stopped
from noisefloor_sim.topology.topology import Topology, running

__all__ = [
    "BadState",
    "Ending",
    "FolderBusy",
    "NotRunning",
    "ServicesMissing",
    "StaleState",
    "StartFailed",
    "Stopped",
    "Topology",
    "repair",
    "restore_ledger",
    "running",
    "start",
]
