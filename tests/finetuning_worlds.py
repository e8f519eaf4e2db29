"""Small worlds with fine-tuning on made-up texts, lived once for all tests that look at them."""

import json
from typing import Any

import simulated_worlds
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication import fine_tuning
from noisefloor.publication.methods import TEXT_METHODS, TextPlan, TextSpec
from noisefloor_sim.pipelines import BLOCKS
from noisefloor_sim.pipelines.finetuning.made_up_texts import SCHEMA, made_up_backbone
from noisefloor_sim.pipelines.finetuning.pipeline import FinetuningPipeline
from noisefloor_sim.scenario import Scenario, loads

SMALL: dict[str, Any] = {
    "name": "small-finetuning",
    "seed": 29,
    "question": "A small world of fine-tuning for tests.",
    "days": 1,
    "population": {"users": 120, "cohort": 64},
    "attacks": ["finetuning.canary"],
}
CHEAP = {
    "source": "made-up",
    "backbone": "made-up",
    "steps": 4,
    "release_every_days": 1,
    "canaries": 500,
    "shadows": 16,
    "pool": 40,
    "test_share": 0.4,
}
COST = Guarantee(2.0, Neighbours.RECORD_ADD_REMOVE, delta=1e-5, model=TrustModel.CENTRAL)


def finetuning_world(block: dict[str, Any] | None = None, **sections: Any) -> Scenario:
    """Return a small scenario with these settings."""
    pipelines = {"finetuning": {**CHEAP, **(block or {})}}
    return loads(json.dumps(SMALL | sections | {"pipelines": pipelines}), BLOCKS)


class FinetuningRun(simulated_worlds.SimulatedRun):
    """A world after its days, as the pipeline of fine-tuning saw it."""

    __slots__ = ()

    @property
    def pipeline(self) -> FinetuningPipeline:
        """The pipeline itself."""
        pipeline = self.engine.pipelines[self.name]
        assert isinstance(pipeline, FinetuningPipeline)
        return pipeline


def run_finetuning(block: dict[str, Any] | None = None, **sections: Any) -> FinetuningRun:
    """Let a world live, or return the one that has."""
    scenario = finetuning_world(block, **sections)
    return FinetuningRun("finetuning", *simulated_worlds.simulated(scenario))


def layers_plan(trains: str, **parameters: Any) -> TextPlan:
    """Plan a training of the made-up encoder's last layer."""
    spec = TextSpec.read(SCHEMA, COST, {"size": 72, "steps": 4, "trains": trains, **parameters})
    with fine_tuning.using_backbone(made_up_backbone()):
        return TEXT_METHODS["text-layers"].of(spec)
