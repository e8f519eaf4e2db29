"""Advertising without identifiers in the world: training, delivery, an auction, attacks."""

from noisefloor_sim.pipelines.ads.block import AdsBlock
from noisefloor_sim.pipelines.ads.pipeline import AdsPipeline
from noisefloor_sim.pipelines.ads.section import report_section
from noisefloor_sim.pipelines.api import PipelineType

__all__ = ["ADS"]

ADS = PipelineType("ads", AdsBlock, AdsPipeline, report_section)
