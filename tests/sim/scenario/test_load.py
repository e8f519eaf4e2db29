"""The block of a load: what cannot be sent or resolved is refused in one line with its key."""

from typing import Any

import pytest

from noisefloor.errors import BadScenario
from noisefloor_services.stress import plan as services_plan
from noisefloor_sim.pipelines import BLOCKS
from noisefloor_sim.scenario import Load, Scenario, loads, scenario_hash, scenario_text
from noisefloor_sim.scenario.load import MOST_PLANNED, LoadStep

MINIMAL = "name: s\nquestion: q\nseed: 1\npipelines: {clicks: {}}\n"
STEPS = "load: {steps: [{rate: 400, seconds: 5}]}\n"


def read(text: str) -> Scenario:
    return loads(MINIMAL + text, BLOCKS, "s.yaml")


def complaint(text: str) -> str:
    with pytest.raises(BadScenario) as caught:
        read(text)
    return str(caught.value)


def test_a_load_has_a_default_objective_and_sends_frames_alone() -> None:
    load = read(STEPS).load
    assert load is not None
    assert load.objective.model_dump() == {
        "percentile": 99.0, "latency_ms": 50.0, "refused": 0.001, "lag_grows": False,
    }  # fmt: skip
    assert load.shares.model_dump() == {"frames": 1.0, "reports": 0.0, "requests": 0.0}
    assert load.repeats == 3


def test_a_load_is_part_of_the_hash_and_its_absence_is_not() -> None:
    without = read("")
    assert "load" not in scenario_text(without)
    assert scenario_hash(read(STEPS)) != scenario_hash(without)
    assert loads(scenario_text(read(STEPS)), BLOCKS) == read(STEPS)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (
            "load: {}\n",
            "load.steps: Expected steps, a search, or both: without them nothing is sent.",
        ),
        (
            "load: {steps: [{rate: 900000, seconds: 5}]}\n",
            "load.steps: Expected at most 1,048,576 requests in a step, got 5,400,000: no plan "
            "can hold them. Lower the rate or the time.",
        ),
        (
            "load: {steps: [{rate: 400, seconds: 5}], objective: {percentile: 99.9}}\n",
            "load.steps: Expected at least 10,000 requests a step for p99.9, got 2,000: no run "
            "can resolve it.",
        ),
        (
            "load: {search: {start: 10, step_s: 5}}\n",
            "load.search: Expected at least 1,000 requests a step for p99, got 50: no run can "
            "resolve it.",
        ),
        (
            "load: {search: {start: 500, most: 100}}\n",
            "load.search.start: Expected <= most (100), got 500.",
        ),
        (
            "load: {processes: 64, connections: 500, steps: [{rate: 400, seconds: 5}]}\n",
            "load.connections: Expected at most 28,000 connections of all processes: more than "
            "there are ports for.",
        ),
        (
            "load: {shares: {frames: 0.5}, steps: [{rate: 400, seconds: 5}]}\n",
            "load.shares: Expected shares that add up to 1, got 0.5.",
        ),
        (
            "load: {repeats: 2, steps: [{rate: 400, seconds: 5}]}\n",
            "load.repeats: Expected an odd number, so that most runs decide, got 2.",
        ),
        (
            "load: {steps: [{rate: 400, seconds: 5, to_rate: 500, spike_rate: 600}]}\n",
            "load.steps.0.spike_rate: Expected a ramp or a spike, got both.",
        ),
        (
            "load: {steps: [{rate: 400, seconds: 5, spike_rate: 600, spike_s: 5}]}\n",
            "load.steps.0.spike_s: Expected < seconds (5), got 5.",
        ),
        (
            "load: {steps: [{rate: 400, seconds: 5}], gates: [claims.* holds]}\n",
            "load.gates.0: Expected a gate on one figure, such as 'knee.low >= 100'.",
        ),
    ],
)
def test_what_cannot_be_sent_or_resolved_is_refused(text: str, rule: str) -> None:
    assert complaint(text) == f"s.yaml:5: {rule}"


def test_a_gate_on_a_figure_that_there_is_not_is_refused() -> None:
    gates = "load: {steps: [{rate: 400, seconds: 5}], gates: [step-2.p99_ms < 50]}\n"
    assert "load.gates: Expected a gate on one of knee.low" in complaint(gates)
    read(gates.replace("step-2", "step-1"))


@pytest.mark.parametrize(
    ("given", "phases"),
    [
        ({"rate": 5, "seconds": 2}, ((5, 5, 2),)),
        ({"rate": 5, "seconds": 2, "to_rate": 9}, ((5, 9, 2),)),
        (
            {"rate": 5, "seconds": 4, "spike_rate": 50, "spike_s": 1.0},
            ((5, 5, 1.5), (50, 50, 1), (5, 5, 1.5)),
        ),
    ],
)
def test_a_step_is_a_rate_a_ramp_or_a_rate_with_a_spike(
    given: dict[str, Any], phases: object
) -> None:
    step = LoadStep.model_validate(given)
    assert step.phases == phases
    assert step.expected == sum((a + b) / 2 * seconds for a, b, seconds in step.phases)


def test_the_block_and_the_program_agree_on_what_a_plan_holds() -> None:
    assert MOST_PLANNED == services_plan.MOST_PLANNED
    assert Load.model_fields["objective"].default.least_requests == 1_000
