"""Small worlds with the collection of records, lived once for all tests that look at them."""

import json
from typing import Any

import simulated_worlds
from noisefloor_sim.pipelines import BLOCKS
from noisefloor_sim.pipelines.collection.pipeline import CollectionPipeline
from noisefloor_sim.scenario import Scenario, loads

SMALL: dict[str, Any] = {
    "name": "small-collection",
    "seed": 17,
    "question": "A small world of records for tests.",
    "days": 3,
    "population": {"users": 1500, "cohort": 256},
    "witnesses": {"share": 0.5},
}


def record_world(block: dict[str, Any] | None = None, **sections: Any) -> Scenario:
    """Return a small scenario with these settings of the collection."""
    pipelines = {"collection": {"canaries": 1000, "epsilon": 4.0, **(block or {})}}
    return loads(json.dumps(SMALL | sections | {"pipelines": pipelines}), BLOCKS)


class CollectionRun(simulated_worlds.SimulatedRun):
    """A world after its days, as the collection pipeline saw it."""

    __slots__ = ()

    @property
    def pipeline(self) -> CollectionPipeline:
        """The pipeline itself."""
        pipeline = self.engine.pipelines[self.name]
        assert isinstance(pipeline, CollectionPipeline)
        return pipeline


def run_record_world(scenario: Scenario, order: list[int] | None = None) -> CollectionRun:
    """Let a world live, or return the one that has."""
    return CollectionRun("collection", *simulated_worlds.simulated(scenario, order))
