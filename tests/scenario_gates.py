"""A scenario's gates, findings and page, checked by running it here."""

from declared_names import undeclared_names
from noisefloor_sim.pipelines import BLOCKS
from noisefloor_sim.runs import Run
from noisefloor_sim.runs.answers import check_findings
from noisefloor_sim.runs.gating import check_gates
from noisefloor_sim.runs.runner import simulate
from noisefloor_sim.scenario import Scenario, expand, scenario_text
from page_sentences import false_sentences

CARD: dict[str, object] = {
    "name": "small", "scenario_hash": "0" * 64, "seeds": [1], "points": 1, "noisefloor": "0",
    "python": "3", "packages": {}, "commit": "0", "wall_s": 1.0, "cpu_s": 1.0, "peak_mb": 1.0,
}  # fmt: skip


def run_here(scenario: Scenario) -> Run:
    """Run every point in this process, and check gates and findings."""
    points = expand(scenario, BLOCKS)
    results = {
        one.id: simulate(
            one.id,
            ", ".join(f"{key}={value}" for key, value in one.settings),
            scenario_text(one.scenario),
        )
        for one in points
    }
    for one in points:
        assert undeclared_names(one.scenario, results[one.id].findings) == []
    gates = tuple(check_gates(scenario.gates, points, results))
    findings = tuple(check_findings(scenario.findings, points, results))
    return Run(scenario, points, results, gates, findings, CARD)


def failed_gates(scenario: Scenario, *, leaving_out: tuple[str, ...] = ()) -> list[str]:
    """Run a scenario, and return gates and findings that do not hold, each with its reason.

    Sentences of its page that are not true of its data are returned as well.

    Args:
        scenario: With at least one gate that is not left out.
        leaving_out: Starts of gates and of conditions of findings that a small run cannot keep.
    """
    run = run_here(scenario)
    gates = [gate for gate in run.gates if not gate.gate.startswith(leaving_out)]
    assert gates, "no gate is left to check"
    findings = [one for one in run.findings if not one.when.startswith(leaving_out)]
    return [
        *(f"{gate.gate}: {gate.detail}" for gate in gates if not gate.passed),
        *(f"{one.text} {one.when}: {one.detail}" for one in findings if not one.is_true),
        *false_sentences(run),
    ]
