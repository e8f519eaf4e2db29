"""The shipped scenarios on published texts: they can be read, and small ones keep their gates."""

from pathlib import Path

import pytest

from noisefloor_sim.pipelines import BLOCKS
from noisefloor_sim.runs.runner import simulate
from noisefloor_sim.scenario import expand, load, scenario_text
from scenario_gates import failed_gates

ROOT = Path(__file__).resolve().parents[3]
SHIPPED = sorted((ROOT / "scenarios").glob("text-*.yaml"))
SMALL = {
    "text-authorship": (
        "pipelines.texts.author_games=40",
        "sweep.pipelines.texts.epsilon=[0.5, 1.0, 8.0]",
    ),
    "text-epsilon": ("population.users=800", "sweep.pipelines.texts.epsilon=[1.0, 8.0]"),
    "text-paper-vs-corrected": (),
}

BY_SIZE = ("texts.attack.author.success rises", "texts.attack.runs", "texts.utility.published")
"""Gates and findings that need as many people or games as the file has."""


def test_there_are_scenarios_on_texts() -> None:
    assert [path.stem for path in SHIPPED] == list(SMALL)


def test_a_point_gives_the_same_bytes_again() -> None:
    path = next(path for path in SHIPPED if path.stem == "text-paper-vs-corrected")
    few = ["pipelines.texts.searched=0", "pipelines.texts.texts=200"]
    point = expand(load(path, BLOCKS, few), BLOCKS)[0]
    here, there = (simulate(point.id, "", scenario_text(point.scenario)) for _ in range(2))
    assert repr(here.findings) == repr(there.findings)


@pytest.mark.slow
@pytest.mark.parametrize("path", SHIPPED, ids=[path.stem for path in SHIPPED])
def test_a_small_one_keeps_the_gates_that_do_not_depend_on_size(path: Path) -> None:
    scenario = load(path, BLOCKS, SMALL[path.stem])
    assert failed_gates(scenario, leaving_out=BY_SIZE) == []
