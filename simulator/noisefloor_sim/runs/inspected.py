"""What the report shows of the inspection: every flow, and what each detector is worth."""

from collections.abc import Sequence

from noisefloor.privacy import ClaimVerdict, FlowEvidence, worst_verdict
from noisefloor_sim.report import Cell, Section, Table, readings
from noisefloor_sim.runs.results import PointResult

_FLOWS = ("flow", "reports read", "tests", "smallest p-value", "blind at", "verdict", "cause")
_AUDITS = ("claim", "points", "audited, most", "null, most", "finds its planted fault", "fit")


def inspected_section(results: Sequence[PointResult]) -> Section:
    """Describe what was read of each flow, and how far each claim's audit can be relied upon."""
    return Section(
        "What was inspected",
        "Reports as they arrived, compared with what devices held, with what servers released and "
        "with what accounts were debited.",
        (_flow_table(results), _audit_table(results)),
    )


def _flow_table(results: Sequence[PointResult]) -> Table:
    flows: dict[str, list[FlowEvidence]] = {}
    for result in results:
        for found in result.findings.values():
            for flow in found.flows:
                flows.setdefault(flow.flow, []).append(flow)
    rows = [_flow_row(name, seen) for name, seen in flows.items()]
    return Table(
        "Flows of reports",
        "All points together. The p-value is that of the worst test times the number of tests. A "
        "flow is blind where its tests would miss noise a quarter too small: with too few "
        "reports, or without noise that has an epsilon.",
        _FLOWS,
        rows,
        (readings.column_range("smallest p-value", "The p-values are {span}."),) if rows else (),
    )


def _flow_row(name: str, seen: Sequence[FlowEvidence]) -> tuple[Cell, ...]:
    blind = sum(flow.verdict is ClaimVerdict.BLIND for flow in seen)
    worst = worst_verdict(flow.verdict for flow in seen)
    causes = [cause for flow in seen for cause in flow.causes]
    return (
        name,
        sum(flow.rows for flow in seen),
        max(flow.tests for flow in seen),
        min(flow.p_value for flow in seen),
        f"{blind} of {len(seen)} points",
        worst.value,
        causes[0] if causes else "",
    )


def _audit_table(results: Sequence[PointResult]) -> Table:
    found: dict[str, list[tuple[float, float, bool, bool]]] = {}
    for result in results:
        for pipeline, findings in sorted(result.findings.items()):
            for named in findings.claims:
                claim = named.claim
                if claim.audited is None:
                    continue
                null = 0.0 if claim.null is None else claim.null.epsilon
                finds = claim.audit_verdict is not ClaimVerdict.BLIND
                fits = any(one.verdict is ClaimVerdict.CONSISTENT for one in claim.evidence)
                key = f"{pipeline}.{named.mechanism}"
                found.setdefault(key, []).append((claim.audited.epsilon, null, finds, fits))
    rows = [
        (
            name,
            len(some),
            max(one[0] for one in some),
            max(one[1] for one in some),
            f"{sum(one[2] for one in some)} of {len(some)}",
            f"decides at {sum(one[3] for one in some)}",
        )
        for name, some in found.items()
    ]
    return Table(
        "What bounds from attacks are worth",
        "Null is the bound against bits that were never used: above 0 it would be a false alarm. "
        "The planted fault is noise a quarter too small. Where it is not found, the bound says "
        "nothing, and the fit of the reports decides where it has power.",
        _AUDITS,
        rows,
    )
