"""A scenario's gates, findings and page, checked by running it here."""

from collections.abc import Iterator, Mapping, Sequence

from declared_names import undeclared_names
from noisefloor_sim.pipelines import BLOCKS
from noisefloor_sim.runs import Run
from noisefloor_sim.runs.answers import check_findings
from noisefloor_sim.runs.gating import check_gates, point_data
from noisefloor_sim.runs.results import PointResult
from noisefloor_sim.runs.runner import simulate
from noisefloor_sim.scenario import Scenario, TrendGate, expand, scenario_text
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


def uneven_secrets(
    data: Mapping[str, Mapping[str, object]], results: Mapping[str, PointResult]
) -> list[str]:
    """Return the attacks whose prior or candidates differ between points of a curve over epsilon.

    Args:
        data: Plain data of the scenarios, by the id of a point.
        results: What was found there, by the id of a point.
    """
    keys = {key for one in data.values() for key in epsilon_keys(one)}
    wrong = []
    for curve in (one for key in sorted(keys) for one in TrendGate("*", key).curves(data)):
        for name, figures in secrets_along(curve, results).items():
            if len(figures) != len(curve) or len(set(figures)) > 1:
                wrong.append(f"{name} differs along {curve[0]} to {curve[-1]}: {figures}")
    return wrong


def epsilon_keys(data: Mapping[str, object], path: str = "") -> Iterator[str]:
    """Yield the dotted keys that are called epsilon."""
    for name, value in data.items():
        if isinstance(value, Mapping):
            yield from epsilon_keys(value, f"{path}{name}.")
        elif name == "epsilon":
            yield f"{path}{name}"


def secrets_along(
    curve: Sequence[str], results: Mapping[str, PointResult]
) -> dict[str, list[float]]:
    """Return the priors and numbers of candidates of each attack along a curve."""
    found: dict[str, list[float]] = {}
    for point in curve:
        for pipeline, findings in results[point].findings.items():
            for metric in findings.metrics:
                last = metric.name.rpartition(".")[2]
                if metric.name.startswith("attack.") and last in ("prior", "candidates"):
                    found.setdefault(f"{pipeline}.{metric.name}", []).append(metric.value)
    return found


def failed_gates(scenario: Scenario, *, leaving_out: tuple[str, ...] = ()) -> list[str]:
    """Run a scenario, and return gates and findings that do not hold, each with its reason.

    Sentences of its page that are not true of its data are returned as well, and attacks whose
    secret is not the same along a curve over epsilon.

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
        *uneven_secrets(point_data(run.points), run.results),
    ]
