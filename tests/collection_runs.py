"""Small worlds with the collection of records, lived once for all tests that look at them."""

import functools
import json
from dataclasses import dataclass
from typing import Any

from noisefloor.privacy import Claim
from noisefloor.randomness import new_run
from noisefloor_sim.engine import Engine, Outcome
from noisefloor_sim.pipelines import BLOCKS, PIPELINES
from noisefloor_sim.pipelines.base import Findings, Metric
from noisefloor_sim.pipelines.collection.pipeline import CollectionPipeline
from noisefloor_sim.scenario import Scenario, loads, scenario_text

SMALL: dict[str, Any] = {
    "name": "small-collection",
    "seed": 17,
    "question": "A small world of records for tests.",
    "days": 3,
    "population": {"users": 1500, "cohort": 256},
    "behaviour": {"ads": 2},
}


def record_world(block: dict[str, Any] | None = None, **sections: Any) -> Scenario:
    """Return a small scenario with these settings of the collection."""
    pipelines = {"collection": {"canaries": 1000, "epsilon": 4.0, **(block or {})}}
    return loads(json.dumps(SMALL | sections | {"pipelines": pipelines}), BLOCKS)


@dataclass(frozen=True, slots=True)
class Lived:
    """A world after its days."""

    scenario: Scenario
    engine: Engine
    outcome: Outcome

    @property
    def found(self) -> Findings:
        """What the pipeline found."""
        return self.outcome.findings["collection"]

    @property
    def pipeline(self) -> CollectionPipeline:
        """The pipeline itself."""
        pipeline = self.engine.pipelines["collection"]
        assert isinstance(pipeline, CollectionPipeline)
        return pipeline

    def metric(self, name: str) -> Metric:
        """Return a metric that was measured."""
        return next(metric for metric in self.found.metrics if metric.name == name)

    def value(self, name: str) -> float:
        """Return its value."""
        return self.metric(name).value

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
