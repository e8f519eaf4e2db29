"""Every pipeline, in one line each. Nothing else in the simulator names a pipeline."""

from collections.abc import Mapping
from pathlib import Path

from noisefloor_sim.pipelines.ads import ADS
from noisefloor_sim.pipelines.api import PipelineType
from noisefloor_sim.pipelines.clicks import CLICKS
from noisefloor_sim.pipelines.collection import COLLECTION
from noisefloor_sim.pipelines.finetuning import FINETUNING
from noisefloor_sim.pipelines.models import MODELS
from noisefloor_sim.pipelines.texts import TEXTS

PIPELINES: Mapping[str, PipelineType] = {
    ADS.name: ADS,
    CLICKS.name: CLICKS,
    COLLECTION.name: COLLECTION,
    FINETUNING.name: FINETUNING,
    MODELS.name: MODELS,
    TEXTS.name: TEXTS,
}

BLOCKS = {name: kind.block for name, kind in PIPELINES.items()}
"""What the scenario reader needs to know of them."""


def experiment_settings(folder: Path) -> dict[str, str]:
    """Return the settings that services need for experiments; see PipelineType."""
    return {
        name: value
        for kind in PIPELINES.values()
        for name, value in kind.service_settings(folder).items()
    }
