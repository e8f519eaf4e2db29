"""All services on one machine: started as processes, looked at, and stopped in order.

Nothing of the services is imported here: they are started by name and asked over HTTP.
"""

from noisefloor_sim.deploy.anchors import anchor_warning
from noisefloor_sim.deploy.deployment import Deployment, StopReport, found, running
from noisefloor_sim.deploy.errors import FolderBusy, NotRunning
from noisefloor_sim.deploy.repairing import repair
from noisefloor_sim.deploy.service_client import (
    ServiceAddresses,
    ServiceClient,
    ServiceResponse,
    bearer,
)
from noisefloor_sim.deploy.starting import ServiceSettings, no_settings, restore_ledger, start
from noisefloor_sim.deploy.state import EMBEDDED
from noisefloor_sim.deploy.status import (
    DeploymentStatus,
    LedgerBudget,
    ProcessStatus,
    empty_status,
    read_status,
)

__all__ = [
    "EMBEDDED",
    "Deployment",
    "DeploymentStatus",
    "FolderBusy",
    "LedgerBudget",
    "NotRunning",
    "ProcessStatus",
    "ServiceAddresses",
    "ServiceClient",
    "ServiceResponse",
    "ServiceSettings",
    "StopReport",
    "anchor_warning",
    "bearer",
    "empty_status",
    "found",
    "no_settings",
    "read_status",
    "repair",
    "restore_ledger",
    "running",
    "start",
]
