"""Small worlds with the ad pipeline, lived once for all tests that look at them."""

import functools
import json
from dataclasses import dataclass
from typing import Any

from noisefloor.privacy import Claim
from noisefloor.randomness import new_run
from noisefloor_sim.engine import Engine, Outcome
from noisefloor_sim.pipelines import BLOCKS, PIPELINES
from noisefloor_sim.pipelines.ads.pipeline import AdsPipeline
from noisefloor_sim.pipelines.base import Findings, Metric
from noisefloor_sim.scenario import Scenario, loads, scenario_text

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
    """Return a small scenario with these settings of the ad pipeline, and of clicks if any."""
    pipelines: dict[str, Any] = {"ads": {"canaries": 1000, **(ads or {})}}
    if clicks is not None:
        pipelines["clicks"] = {"canaries": 1000, **clicks}
    data = SMALL | sections | {"pipelines": pipelines}
    return loads(json.dumps(data), BLOCKS)


@dataclass(frozen=True, slots=True)
class Lived:
    """A world after its days."""

    scenario: Scenario
    engine: Engine
    outcome: Outcome

    @property
    def found(self) -> Findings:
        """What the ad pipeline found."""
        return self.outcome.findings["ads"]

    @property
    def ads(self) -> AdsPipeline:
        """The pipeline itself."""
        pipeline = self.engine.pipelines["ads"]
        assert isinstance(pipeline, AdsPipeline)
        return pipeline

    def metric(self, name: str) -> Metric:
        """Return a metric that was measured."""
        return next(metric for metric in self.found.metrics if metric.name == name)

    def value(self, name: str) -> float:
        """Return its value."""
        return self.metric(name).value

    def has(self, name: str) -> bool:
        """Say whether a metric was measured."""
        return any(metric.name == name for metric in self.found.metrics)

    def claim(self, name: str) -> Claim:
        """Return a claim."""
        return next(named.claim for named in self.found.claims if named.mechanism == name)


def live(scenario: Scenario, order: list[int] | None = None) -> Lived:
    """Let a world live, or return the one that has."""
    return _lived(scenario_text(scenario), None if order is None else tuple(order))


@functools.cache
def _lived(text: str, order: tuple[int, ...] | None) -> Lived:
    scenario = loads(text, BLOCKS)
    with new_run():
        engine = Engine(scenario, PIPELINES, order=order)
        return Lived(scenario, engine, engine.run())
