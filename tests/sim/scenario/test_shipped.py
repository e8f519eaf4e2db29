"""Every shipped scenario can be read, and says what it asks, expects and checks."""

from pathlib import Path

import pytest

from noisefloor_sim.pipelines import BLOCKS
from noisefloor_sim.scenario import load

SHIPPED = sorted((Path(__file__).resolve().parents[3] / "scenarios").glob("*.yaml"))


def test_there_are_scenarios() -> None:
    assert len(SHIPPED) >= 16


@pytest.mark.parametrize("path", SHIPPED, ids=[path.stem for path in SHIPPED])
def test_a_shipped_scenario_can_be_read_and_says_what_it_expects(path: Path) -> None:
    scenario = load(path, BLOCKS)
    assert scenario.name == path.stem
    assert scenario.expectation
    assert scenario.gates
    head = path.read_text(encoding="utf-8").splitlines()[1:9]
    for word in ("# Question:", "# Expected answer:", f"# Seed: {scenario.seed}"):
        assert any(line.startswith(word) for line in head)
