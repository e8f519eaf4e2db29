"""What a world measures and claims, compared with the names that its pipelines declare."""

from collections.abc import Mapping

from noisefloor_sim.pipelines.api import Findings
from noisefloor_sim.scenario import Scenario, is_declared
from noisefloor_sim.scenario.result_names import claim_names, metric_names


def undeclared_names(scenario: Scenario, findings: Mapping[str, Findings]) -> list[str]:
    """Return what a gate could not name, although the world produced it."""
    metrics = metric_names(scenario.pipelines)
    claims = claim_names(scenario.pipelines)
    produced = [
        name
        for pipeline, found in findings.items()
        for name in (f"{pipeline}.{metric.name}" for metric in found.metrics)
        if not is_declared(name, metrics)
    ]
    claimed = [
        name
        for pipeline, found in findings.items()
        for name in (f"claims.{pipeline}.{named.mechanism}" for named in found.claims)
        if not is_declared(name, claims)
    ]
    return sorted({*produced, *claimed})
