"""Click statistics in the world: who reports what, what the server learns, what it could guess."""

from noisefloor_sim.pipelines.api import Pipeline, PipelineType
from noisefloor_sim.pipelines.clicks.attacks import proportion_metric
from noisefloor_sim.pipelines.clicks.block import ClickBlock, delivered_of, memoised_of, report_of
from noisefloor_sim.pipelines.clicks.delivered_pipeline import DeliveredPipeline
from noisefloor_sim.pipelines.clicks.pipeline import ClickPipeline
from noisefloor_sim.pipelines.clicks.section import report_section
from noisefloor_sim.scenario import Scenario

__all__ = ["CLICKS", "ClickBlock", "memoised_of", "proportion_metric", "report_of"]


def build(scenario: Scenario) -> Pipeline:
    """Make the pipeline for the form of report that a scenario asks for."""
    if delivered_of(scenario) is not None:
        return DeliveredPipeline(scenario)
    return ClickPipeline(scenario)


CLICKS = PipelineType("clicks", ClickBlock, build, report_section)
