"""Small scenarios for tests."""

from typing import Any

from noisefloor_sim.pipelines import BLOCKS
from noisefloor_sim.scenario import Scenario, loads

SMALL = """
name: small
seed: 11
question: A small world for tests.
days: 3
population: {users: 1500, cohort: 256}
behaviour: {ads: 6}
pipelines: {clicks: {epsilon: 2.0, canaries: 1000}}
"""


def small_world(**changes: Any) -> Scenario:
    """Return the small scenario with top-level sections replaced."""
    scenario = loads(SMALL, BLOCKS)
    return scenario.model_copy(update=changes)


def with_section(scenario: Scenario, name: str, **changes: Any) -> Scenario:
    """Return the scenario with keys of one section replaced."""
    section = getattr(scenario, name).model_copy(update=changes)
    return scenario.model_copy(update={name: section})


def with_clicks(scenario: Scenario, **changes: Any) -> Scenario:
    """Return the scenario with keys of the click pipeline replaced."""
    block = scenario.pipelines["clicks"].model_copy(update=changes)
    return scenario.model_copy(update={"pipelines": {"clicks": block}})
