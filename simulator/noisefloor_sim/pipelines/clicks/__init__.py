"""Click statistics in the world: daily reports, estimates, fraud, and attacks on reports."""

from noisefloor_sim.pipelines.api import PipelineType
from noisefloor_sim.pipelines.clicks.block import ClickBlock
from noisefloor_sim.pipelines.clicks.delivered_pipeline import build
from noisefloor_sim.pipelines.clicks.section import report_section

__all__ = ["CLICKS"]

CLICKS = PipelineType("clicks", ClickBlock, build, report_section)
