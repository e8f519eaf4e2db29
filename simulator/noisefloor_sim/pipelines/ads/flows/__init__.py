"""The flows of advertising: training reports, requests, shown ads, clicks of a panel.

A flow declares what a report carries and costs, and tests what arrived; a reference says how
likely a report is, computed apart from the devices.
"""

from noisefloor_sim.pipelines.ads.flows.panel_flow import PANEL_REPORT, PanelFlow, PanelTruth
from noisefloor_sim.pipelines.ads.flows.request_flow import REQUEST, RequestFlow
from noisefloor_sim.pipelines.ads.flows.shown_flow import SHOWN, ShownFlow, ShownTruth
from noisefloor_sim.pipelines.ads.flows.training_flow import (
    TRAINING,
    TRAINING_REPORT,
    TrainingFlow,
)
from noisefloor_sim.pipelines.ads.flows.training_truth import TrainingTruth

__all__ = [
    "PANEL_REPORT",
    "REQUEST",
    "SHOWN",
    "TRAINING",
    "TRAINING_REPORT",
    "PanelFlow",
    "PanelTruth",
    "RequestFlow",
    "ShownFlow",
    "ShownTruth",
    "TrainingFlow",
    "TrainingTruth",
]
