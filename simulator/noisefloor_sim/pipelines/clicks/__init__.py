"""Click statistics in the world: who reports what, what the server learns, what it could guess."""

from noisefloor_sim.pipelines.base import PipelineType
from noisefloor_sim.pipelines.clicks.block import ClickBlock
from noisefloor_sim.pipelines.clicks.pipeline import ClickPipeline
from noisefloor_sim.pipelines.clicks.section import section

CLICKS = PipelineType("clicks", ClickBlock, ClickPipeline, section)
