"""Small worlds with published texts, made up, lived once for all tests that look at them."""

import json
from typing import Any

import simulated_worlds
from noisefloor_sim.pipelines import BLOCKS
from noisefloor_sim.pipelines.texts.pipeline import TextsPipeline
from noisefloor_sim.scenario import Scenario, loads

SMALL: dict[str, Any] = {
    "name": "small-texts",
    "seed": 31,
    "question": "A small world of published texts for tests.",
    "days": 1,
    "population": {"users": 300, "cohort": 256},
    "attacks": ["texts.canary"],
}
CHEAP = {
    "release_every_days": 1,
    "canaries": 500,
    "texts": 300,
    "judged": 60,
    "rare_words": 30,
    "secrets": 6,
    "candidates": 16,
}


def texts_world(block: dict[str, Any] | None = None, **sections: Any) -> Scenario:
    """Return a small scenario with these settings."""
    pipelines = {"texts": {**CHEAP, **(block or {})}}
    return loads(json.dumps(SMALL | sections | {"pipelines": pipelines}), BLOCKS)


class TextsRun(simulated_worlds.SimulatedRun):
    """A world after its days, as the pipeline of texts saw it."""

    __slots__ = ()

    @property
    def pipeline(self) -> TextsPipeline:
        """The pipeline itself."""
        pipeline = self.engine.pipelines[self.name]
        assert isinstance(pipeline, TextsPipeline)
        return pipeline


def run_texts(block: dict[str, Any] | None = None, **sections: Any) -> TextsRun:
    """Let a world live, or return the one that has."""
    scenario = texts_world(block, **sections)
    return TextsRun("texts", *simulated_worlds.simulated(scenario))
