"""Published texts: users' posts are collected, and made-up texts like them are published."""

from noisefloor_sim.pipelines.api import PipelineType
from noisefloor_sim.pipelines.texts.block import TextsBlock
from noisefloor_sim.pipelines.texts.made_up_posts import public_setting
from noisefloor_sim.pipelines.texts.pipeline import TextsPipeline
from noisefloor_sim.pipelines.texts.section import report_section

__all__ = ["TEXTS"]

TEXTS = PipelineType("texts", TextsBlock, TextsPipeline, report_section, public_setting)
