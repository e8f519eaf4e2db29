"""Gates of a load: on figures that were measured."""

import pytest

from load_figures import found
from noisefloor_sim.scenario import Load
from noisefloor_sim.scenario.load import RUN_FIGURES, STEP_FIGURES
from noisefloor_sim.stress.figures import figures
from noisefloor_sim.stress.gating import check_load_gates


def load(*gates: str) -> Load:
    return Load.model_validate({"steps": ({"rate": 400, "seconds": 5},), "gates": gates})


@pytest.mark.parametrize(
    ("gate", "passed", "detail"),
    [
        ("step-1.p99_ms < 50", True, "step-1.p99_ms is 10"),
        ("step-1.p99_ms < 5", False, "step-1.p99_ms is 10"),
        ("knee.low >= 400", True, "knee.low is 400"),
        ("run.conserved == 1", True, "run.conserved is 1"),
        ("step-1.p99-9_ms < 50", False, "step-1.p99-9_ms was not measured"),
    ],
)
def test_a_gate_holds_if_its_figure_does(gate: str, passed: bool, detail: str) -> None:
    (one,) = check_load_gates(load(gate), figures(found()))
    assert (one.passed, one.detail) == (passed, detail)


def test_every_figure_that_a_gate_may_name_can_be_measured() -> None:
    one = found()
    for run in one["runs"]:
        run["latency_ms"]["due"]["p99.9"] = 40.0
        run["phases"] = [[9.0, 9.0, 2.0], [90.0, 90.0, 1.0], [9.0, 9.0, 2.0]]
    names = {f"{figure.step}.{figure.name}" for figure in figures(one)}
    assert {f"step-1.{name}" for name in STEP_FIGURES} <= names
    assert set(RUN_FIGURES) <= names
