"""A world after its days, lived once for all tests that look at it, and what a pipeline found."""

import functools
from dataclasses import dataclass

from declared_names import undeclared_names
from noisefloor.privacy import Claim
from noisefloor.randomness import new_run
from noisefloor_sim.pipelines import BLOCKS, PIPELINES
from noisefloor_sim.pipelines.api import Findings, Metric
from noisefloor_sim.runs.engine import Engine, RunOutcome
from noisefloor_sim.scenario import Scenario, loads, scenario_text


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """A world after its days, seen by one of its pipelines.

    Attributes:
        name: Of the pipeline.
        scenario: That was lived.
        engine: That lived it.
        outcome: What came out.
    """

    name: str
    scenario: Scenario
    engine: Engine
    outcome: RunOutcome

    @property
    def found(self) -> Findings:
        """What the pipeline found."""
        return self.outcome.findings[self.name]

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


def simulated(
    scenario: Scenario, order: list[int] | None = None
) -> tuple[Scenario, Engine, RunOutcome]:
    """Let a world live, or return the one that has."""
    return _simulated(scenario_text(scenario), None if order is None else tuple(order))


@functools.cache
def _simulated(text: str, order: tuple[int, ...] | None) -> tuple[Scenario, Engine, RunOutcome]:
    scenario = loads(text, BLOCKS)
    with new_run():
        engine = Engine(scenario, PIPELINES, order=order)
        outcome = engine.run()
    assert undeclared_names(scenario, outcome.all_findings) == []
    return scenario, engine, outcome
