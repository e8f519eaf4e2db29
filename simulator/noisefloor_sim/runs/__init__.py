"""runs."""

from noisefloor_sim.runs.engine import explain_spending
from noisefloor_sim.runs.gating import check_gates
from noisefloor_sim.runs.pages import page_of
from noisefloor_sim.runs.planning import PlannedPoint, plan_point
from noisefloor_sim.runs.pool import run_in_pool
from noisefloor_sim.runs.results import RunDirectory
from noisefloor_sim.runs.runner import Run, run_scenario

__all__ = [
    "PlannedPoint",
    "Run",
    "RunDirectory",
    "check_gates",
    "explain_spending",
    "page_of",
    "plan_point",
    "run_in_pool",
    "run_scenario",
]
