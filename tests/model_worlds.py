"""Small worlds with published models, lived once for all tests that look at them."""

import json
from typing import Any

import simulated_worlds
from noisefloor_sim.pipelines import BLOCKS
from noisefloor_sim.pipelines.models.pipeline import ModelsPipeline
from noisefloor_sim.scenario import Scenario, loads

SMALL: dict[str, Any] = {
    "name": "small-models",
    "seed": 29,
    "question": "A small world of published models for tests.",
    "days": 2,
    "population": {"users": 700, "cohort": 256},
}
WEEKLY: dict[str, Any] = {
    "days": 8,
}
EVERY_TWO = {"release_every_days": 2, "join_over_days": 8, "budget": 2.0, "budget_delta": 1e-5}
"""Four releases of epsilon 1: the filter grants three with Gaussian noise, and else two."""


def model_world(block: dict[str, Any] | None = None, **sections: Any) -> Scenario:
    """Return a small scenario with these settings of the publication."""
    cheap = {"shadows": 16, "pool": 80, "canaries": 800, "hidden": "4", "epochs": 5}
    pipelines = {"models": {**cheap, "budget": 100.0, **(block or {})}}
    return loads(json.dumps(SMALL | sections | {"pipelines": pipelines}), BLOCKS)


class ModelsRun(simulated_worlds.SimulatedRun):
    """A world after its days, as the pipeline of models saw it."""

    __slots__ = ()

    @property
    def pipeline(self) -> ModelsPipeline:
        """The pipeline itself."""
        pipeline = self.engine.pipelines[self.name]
        assert isinstance(pipeline, ModelsPipeline)
        return pipeline


def run_model_world(scenario: Scenario, order: list[int] | None = None) -> ModelsRun:
    """Let a world live, or return the one that has."""
    return ModelsRun("models", *simulated_worlds.simulated(scenario, order))


def run_weekly_world(method: str, **block: Any) -> ModelsRun:
    """Let a world live in which four releases are wanted, and three are paid for."""
    return run_model_world(model_world({**EVERY_TWO, "method": method, **block}, **WEEKLY))
