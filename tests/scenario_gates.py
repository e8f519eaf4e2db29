"""A scenario's gates, checked by running it here."""

from declared_names import undeclared_names
from noisefloor_sim.pipelines import BLOCKS
from noisefloor_sim.runs.gating import check_gates
from noisefloor_sim.runs.runner import simulate
from noisefloor_sim.scenario import Scenario, expand, scenario_text


def failed_gates(scenario: Scenario, *, leaving_out: tuple[str, ...] = ()) -> list[str]:
    """Run every point, and return the gates that do not hold, each with its reason.

    Args:
        scenario: With at least one gate that is not left out.
        leaving_out: Starts of gates that a small run cannot keep.
    """
    gates = [gate for gate in scenario.gates if not gate.startswith(leaving_out)]
    assert gates, "no gate is left to check"
    points = expand(scenario, BLOCKS)
    results = {one.id: simulate(one.id, "", scenario_text(one.scenario)) for one in points}
    for one in points:
        assert undeclared_names(one.scenario, results[one.id].findings) == []
    checked = check_gates(gates, points, results)
    return [f"{gate.gate}: {gate.detail}" for gate in checked if not gate.passed]
