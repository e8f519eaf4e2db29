"""Records of wearables in the world: selection, training, and queries to the model."""

from noisefloor_sim.pipelines.api import PipelineType
from noisefloor_sim.pipelines.collection.block import CollectionBlock
from noisefloor_sim.pipelines.collection.pipeline import CollectionPipeline
from noisefloor_sim.pipelines.collection.section import report_section

__all__ = ["COLLECTION"]

COLLECTION = PipelineType("collection", CollectionBlock, CollectionPipeline, report_section)
