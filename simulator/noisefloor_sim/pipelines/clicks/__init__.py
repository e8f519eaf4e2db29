"""Click statistics in the world: who reports what, what the server learns, what it could guess."""

from noisefloor_sim.pipelines.base import Pipeline, PipelineType
from noisefloor_sim.pipelines.clicks.block import ClickBlock, delivered_of
from noisefloor_sim.pipelines.clicks.delivered import DeliveredPipeline
from noisefloor_sim.pipelines.clicks.pipeline import ClickPipeline
from noisefloor_sim.pipelines.clicks.section import section
from noisefloor_sim.scenario.model import Scenario


def build(scenario: Scenario) -> Pipeline:
    """Make the pipeline for the form of report that a scenario asks for."""
    if delivered_of(scenario) is not None:
        return DeliveredPipeline(scenario)
    return ClickPipeline(scenario)


CLICKS = PipelineType("clicks", ClickBlock, build, section)
