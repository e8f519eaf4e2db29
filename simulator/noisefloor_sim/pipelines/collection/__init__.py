"""Records of wearables in the world: selection, training, and questions to what was learnt."""

from noisefloor_sim.pipelines.base import PipelineType
from noisefloor_sim.pipelines.collection.block import CollectionBlock
from noisefloor_sim.pipelines.collection.pipeline import CollectionPipeline
from noisefloor_sim.pipelines.collection.section import section

COLLECTION = PipelineType("collection", CollectionBlock, CollectionPipeline, section)
