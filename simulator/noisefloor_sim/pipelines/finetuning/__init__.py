"""Private fine-tuning: users' texts arrive, a data holder publishes a classifier of them."""

from noisefloor_sim.pipelines.api import PipelineType
from noisefloor_sim.pipelines.finetuning.block import FinetuningBlock
from noisefloor_sim.pipelines.finetuning.pipeline import FinetuningPipeline
from noisefloor_sim.pipelines.finetuning.section import report_section

__all__ = ["FINETUNING"]

FINETUNING = PipelineType("finetuning", FinetuningBlock, FinetuningPipeline, report_section)
