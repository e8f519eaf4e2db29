"""Small worlds with the ad pipeline, lived once for all tests that look at them."""

import json
from typing import Any

import simulated_worlds
from noisefloor_sim.pipelines import BLOCKS
from noisefloor_sim.pipelines.ads.pipeline import AdsPipeline
from noisefloor_sim.scenario import Scenario, loads

SMALL: dict[str, Any] = {
    "name": "small-ads",
    "seed": 11,
    "question": "A small world of ads for tests.",
    "days": 2,
    "population": {"users": 1500, "cohort": 256},
    "behaviour": {"ads": 6},
    "tastes": {"source": "low-rank"},
}
BITS = {"method": "bits", "rounds": 3}


def ads_world(
    ads: dict[str, Any] | None = None, clicks: dict[str, Any] | None = None, **sections: Any
) -> Scenario:
    """Return a small scenario with these settings of the ad pipeline, and of clicks if any.

    So few users would always get means: unless a test says otherwise, the method stays.
    """
    ads = ads or {}
    training = {"fallback": False, **ads.get("training", {})}
    pipelines: dict[str, Any] = {"ads": {"canaries": 1000, **ads, "training": training}}
    if clicks is not None:
        pipelines["clicks"] = {"canaries": 1000, **clicks}
    data = SMALL | sections | {"pipelines": pipelines}
    return loads(json.dumps(data), BLOCKS)


class AdsRun(simulated_worlds.SimulatedRun):
    """A world after its days, as the ad pipeline saw it."""

    __slots__ = ()

    @property
    def ads(self) -> AdsPipeline:
        """The pipeline itself."""
        pipeline = self.engine.pipelines[self.name]
        assert isinstance(pipeline, AdsPipeline)
        return pipeline


def run_ads_world(scenario: Scenario, order: list[int] | None = None) -> AdsRun:
    """Let a world live, or return the one that has."""
    return AdsRun("ads", *simulated_worlds.simulated(scenario, order))
