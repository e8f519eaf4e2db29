"""Gates at work: conditions of a scenario against what a run found."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import chain
from types import MappingProxyType

from noisefloor.privacy import ClaimVerdict
from noisefloor_sim import scenario
from noisefloor_sim.deploy.hosting import MEMORY
from noisefloor_sim.runs.results import PointResult

NO_POINT = "no point matches"
"""Why a gate is skipped whose points settings took away."""

NONE_SKIPPED: Mapping[str, str] = MappingProxyType({})

_NOTHING = "selects nothing that was measured"
_UNSEEN = "running services hand out no noise"


@dataclass(frozen=True, slots=True)
class GateResult:
    """Whether a gate held, and where it did not.

    Attributes:
        gate: Its text.
        passed: Whether it held.
        detail: Where it did not.
        skipped: Whether it was not checked, because settings took away the points it is about, or
            services hand out to nobody what it is about.
    """

    gate: str
    passed: bool
    detail: str
    skipped: bool = False


@dataclass(frozen=True, slots=True)
class RunFault:
    """Something that fails a run whatever its gates say.

    Attributes:
        point: Where.
        what: The flow, or the claim.
        verdict: Broken, misfit or unaccounted.
        cause: In words, with figures.
    """

    point: str
    what: str
    verdict: ClaimVerdict
    cause: str


def faults_of(result: PointResult) -> list[RunFault]:
    """Return what was found at fault at a point: each flow once, and claims that are broken."""
    faults = [
        RunFault(result.id, flow.flow, flow.verdict, cause)
        for found in result.findings.values()
        for flow in found.flows
        for cause in flow.causes
    ]
    for pipeline, found in result.findings.items():
        for named in found.claims:
            claim = named.claim
            if claim.verdict is ClaimVerdict.BROKEN and claim.audited is not None:
                cause = (
                    f"an attacker reached at least {claim.audited.epsilon:.4g} where "
                    f"{claim.proved.epsilon:.4g} is proved"
                )
                where = f"{pipeline}.{named.mechanism}"
                faults.append(RunFault(result.id, where, claim.verdict, cause))
    return faults


def check_gates(
    texts: Sequence[str],
    points: Sequence[scenario.SweepPoint],
    results: Mapping[str, PointResult],
    skipped: Mapping[str, str] = NONE_SKIPPED,
    unseen: Collection[str] = (),
) -> list[GateResult]:
    """Check every gate; one that selects nothing has not been shown, and fails.

    Args:
        texts: Of the gates.
        points: Of the sweep.
        results: By the id of a point.
        skipped: Gates that are not checked, and why: they neither pass nor fail.
        unseen: Metrics, or forms of names, that are not measured where services publish; a gate
            on one of them is skipped if none of its points has it.
    """
    data = point_data(points)
    found = []
    for text in texts:
        if text in skipped:
            found.append(GateResult(text, False, skipped[text], skipped=True))
            continue
        gate = scenario.parse_gate(text)
        one = check_gate(text, gate, data, results)
        is_unseen = one.detail == _NOTHING and _is_on(gate, unseen)
        found.append(replace(one, detail=_UNSEEN, skipped=True) if is_unseen else one)
    return found


def unseen_metrics(blocks: Mapping[str, scenario.PipelineBlock], bus: object) -> tuple[str, ...]:
    """Return the metrics that are measured only where the publisher runs in the run's process.

    Args:
        blocks: The settings of pipelines, by name.
        bus: As the run card names it.
    """
    if bus == MEMORY:
        return ()
    return tuple(f"{name}.{form}" for name, it in blocks.items() for form in it.unseen_names)


def _is_on(gate: scenario.Gate, names: Collection[str]) -> bool:
    return isinstance(gate, scenario.MetricGate) and any(
        fnmatchcase(gate.metric, form) for form in names
    )


def point_data(points: Sequence[scenario.SweepPoint]) -> dict[str, Mapping[str, object]]:
    """Return the plain data of every point's scenario, by the point's id."""
    return {point.id: scenario.resolved(point.scenario) for point in points}


def check_gate(
    text: str,
    gate: scenario.Gate,
    data: Mapping[str, Mapping[str, object]],
    results: Mapping[str, PointResult],
) -> GateResult:
    """Check one gate; one that selects nothing fails.

    Args:
        text: Of the gate.
        gate: The gate.
        data: Plain data of the scenarios, by the id of a point.
        results: Likewise.
    """
    if isinstance(gate, scenario.TrendGate):
        curves = [[results[name] for name in curve] for curve in gate.curves(data)]
        outcomes = [outcome for curve in curves for outcome in _falls(gate, curve)]
    else:
        chosen = [result for name, result in results.items() if scenario.applies(gate, data[name])]
        outcomes = [outcome for result in chosen for outcome in _outcomes(gate, result)]
    failed = [where for where, is_met in outcomes if not is_met]
    if not outcomes:
        return GateResult(text, False, _NOTHING)
    if failed:
        return GateResult(text, False, f"fails at {len(failed)} of {len(outcomes)}: {failed[0]}")
    return GateResult(text, True, f"holds at all {len(outcomes)}")


def _falls(gate: scenario.TrendGate, curve: Sequence[PointResult]) -> Iterator[tuple[str, bool]]:
    """Yield each metric at each later point of a curve, and whether it fell from any before."""
    measured = [
        {
            f"{pipeline}.{metric.name}": metric
            for pipeline, found in result.findings.items()
            for metric in found.metrics
            if gate.selects(f"{pipeline}.{metric.name}")
        }
        for result in curve
    ]
    for name in dict.fromkeys(chain.from_iterable(measured)):
        highest = -math.inf
        for place, (result, metrics) in enumerate(zip(curve, measured, strict=True)):
            if name not in metrics:
                yield f"{result.id} ({name}: not measured)", False
                continue
            metric = metrics[name]
            is_interval = not (math.isnan(metric.low) or math.isnan(metric.high))
            low, high = (metric.low, metric.high) if is_interval else (metric.value,) * 2
            if place:
                yield f"{result.id} ({name}: {metric.value:g})", high >= highest
            highest = max(highest, low)


def _outcomes(gate: scenario.Gate, result: PointResult) -> Iterator[tuple[str, bool]]:
    """Yield what the gate selects at a point, and whether it is met."""
    for pipeline, found in result.findings.items():
        if isinstance(gate, scenario.MetricGate):
            for metric in found.metrics:
                if f"{pipeline}.{metric.name}" == gate.metric:
                    yield f"{result.id} ({metric.value:g})", gate.is_met(metric.value)
        elif isinstance(gate, scenario.ClaimGate):
            for named in found.claims:
                neighbours = named.claim.proved.neighbours.value
                if gate.selects(pipeline, named.mechanism, neighbours):
                    audited = "" if named.claim.audited else ", not audited"
                    where = f"{result.id} ({named.claim.verdict}{audited})"
                    yield where, gate.is_met(named.claim)
