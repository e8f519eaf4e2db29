"""Advertising without identifiers in the world: training, delivery, an auction, attacks."""

from noisefloor_sim.pipelines.ads.block import AdsBlock
from noisefloor_sim.pipelines.ads.pipeline import AdsPipeline
from noisefloor_sim.pipelines.ads.section import section
from noisefloor_sim.pipelines.base import PipelineType

ADS = PipelineType("ads", AdsBlock, AdsPipeline, section)
