"""The shipped scenarios on records: they can be read, and small ones of them keep their gates."""

from pathlib import Path

import pytest

from noisefloor_sim.pipelines import BLOCKS
from noisefloor_sim.pipelines.collection import attacks
from noisefloor_sim.scenario import load
from scenario_gates import failed_gates

ROOT = Path(__file__).resolve().parents[3]
SHIPPED = sorted((ROOT / "scenarios").glob("collection-*.yaml"))
SMALL = ("population.users=1200", "population.cohort=512")
FEWER = {"collection-epsilon": ("sweep.pipelines.collection.epsilon=[2.0, 10.0]",)}
"""Shorter sweeps, where the shipped ones are long."""

BY_SIZE = ("collection.accuracy", "claims.collection.training.audited > claimed")
"""Gates and findings that need as many owners, or witnesses among them, as the file has."""


def test_there_are_scenarios_on_records() -> None:
    assert len(SHIPPED) >= 3


@pytest.fixture(autouse=True)
def few_trainings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Train fewer models to guess members: no gate is about them, and they take most of the time.

    That attack has tests of its own, with its bound and with rows sent without noise.
    """
    monkeypatch.setattr(attacks, "_TRAININGS", 20)


@pytest.mark.slow
@pytest.mark.parametrize("path", SHIPPED, ids=[path.stem for path in SHIPPED])
def test_a_small_one_keeps_the_gates_that_do_not_depend_on_size(path: Path) -> None:
    scenario = load(path, BLOCKS, [*SMALL, *FEWER.get(path.stem, ())])
    assert failed_gates(scenario, leaving_out=BY_SIZE) == []
