"""Publication of classifiers: records arrive, a data holder republishes, everybody may look."""

from noisefloor_sim.pipelines.api import PipelineType
from noisefloor_sim.pipelines.models.block import ModelsBlock
from noisefloor_sim.pipelines.models.pipeline import ModelsPipeline
from noisefloor_sim.pipelines.models.section import report_section

__all__ = ["MODELS"]

MODELS = PipelineType("models", ModelsBlock, ModelsPipeline, report_section)
