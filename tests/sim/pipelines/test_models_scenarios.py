"""The shipped scenarios on published models: they can be read, and small ones keep their gates."""

from pathlib import Path

import pytest

from noisefloor_sim.pipelines import BLOCKS
from noisefloor_sim.runs.runner import simulate
from noisefloor_sim.scenario import expand, load, scenario_text
from scenario_gates import failed_gates

ROOT = Path(__file__).resolve().parents[3]
SHIPPED = sorted((ROOT / "scenarios").glob("models-*.yaml"))
SMALL = ("population.users=1000", "population.cohort=512", "pipelines.models.shadows=16")
FEWER = {
    "models-epsilon": ("sweep.pipelines.models.epsilon=[1.0]",),
    "models-paper-vs-corrected": ("sweep.pipelines.models.hidden=[none, '16']",),
}
"""Shorter sweeps, where the shipped ones are long."""

BY_SIZE = ("models.accuracy", "models.attack.newcomer", "models.attack.lira")
"""Gates and findings that need as many people or models as the file has."""


def test_there_are_scenarios_on_models() -> None:
    assert [path.stem for path in SHIPPED] == [
        "models-epsilon",
        "models-paper-vs-corrected",
        "models-weekly",
    ]


def test_a_point_gives_the_same_bytes_again() -> None:
    path = next(path for path in SHIPPED if path.stem == "models-weekly")
    scenario = load(path, BLOCKS, [*SMALL, "sweep.pipelines.models.method=[anonymising-first]"])
    point = expand(scenario, BLOCKS)[0]
    here, there = (simulate(point.id, "", scenario_text(point.scenario)) for _ in range(2))
    assert repr(here.findings) == repr(there.findings)


@pytest.mark.slow
@pytest.mark.parametrize("path", SHIPPED, ids=[path.stem for path in SHIPPED])
def test_a_small_one_keeps_the_gates_that_do_not_depend_on_size(path: Path) -> None:
    scenario = load(path, BLOCKS, [*SMALL, *FEWER.get(path.stem, ())])
    assert failed_gates(scenario, leaving_out=BY_SIZE) == []
