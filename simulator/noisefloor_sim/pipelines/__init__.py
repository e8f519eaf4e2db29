"""The pipelines of a world: interface (``api``), list (``registry``), and one package each."""

from noisefloor_sim.pipelines.api import (
    Findings,
    Metric,
    NamedClaim,
    Pipeline,
    PipelineType,
    PlannedClaim,
    PointFindings,
    Price,
    SentBidRequests,
    SentRequests,
    ServedAds,
)
from noisefloor_sim.pipelines.registry import BLOCKS, PIPELINES, experiment_settings
from noisefloor_sim.pipelines.scoring import formula_coverage
from noisefloor_sim.pipelines.user_budgets import ledger_section

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
    "Price",
    "SentBidRequests",
    "SentRequests",
    "ServedAds",
    "experiment_settings",
    "formula_coverage",
    "ledger_section",
]
