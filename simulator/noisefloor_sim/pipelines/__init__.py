"""The pipelines of a world: interface (``api``), list (``registry``), and one package each."""

from noisefloor_sim.pipelines.api import (
    Findings,
    Metric,
    NamedClaim,
    Pipeline,
    PipelineType,
    PlannedClaim,
    PointFindings,
    SentBidRequests,
    SentRequests,
    ServedAds,
)
from noisefloor_sim.pipelines.registry import BLOCKS, PIPELINES

__all__ = [
    "BLOCKS",
    "PIPELINES",
    "Findings",
    "Metric",
    "NamedClaim",
    "Pipeline",
    "PipelineType",
    "PlannedClaim",
    "PointFindings",
    "SentBidRequests",
    "SentRequests",
    "ServedAds",
]
