"""Runs: a scenario over a pool of processes, into a folder with tables, claims and a page."""

from noisefloor_sim.runs.engine import explain_spending
from noisefloor_sim.runs.execution import execute, read_run
from noisefloor_sim.runs.finished import FinishedRun, load, run
from noisefloor_sim.runs.pages import page_of
from noisefloor_sim.runs.planning import PlannedPoint, plan_point
from noisefloor_sim.runs.pool import run_in_pool
from noisefloor_sim.runs.recording import RecordedFrames, record_frames
from noisefloor_sim.runs.results import RunDirectory
from noisefloor_sim.runs.runner import Run

__all__ = [
    "FinishedRun",
    "PlannedPoint",
    "RecordedFrames",
    "Run",
    "RunDirectory",
    "execute",
    "explain_spending",
    "load",
    "page_of",
    "plan_point",
    "read_run",
    "record_frames",
    "run",
    "run_in_pool",
]
