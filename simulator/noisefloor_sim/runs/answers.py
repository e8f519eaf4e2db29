"""The answer of a run: the findings of its scenario, each true or not, with their figures."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from noisefloor_sim import scenario
from noisefloor_sim.report import lower, number, upper
from noisefloor_sim.runs.gating import check_gate, point_data
from noisefloor_sim.runs.results import PointResult

_NOTHING = "selects nothing that was measured"
_ROUNDED = {"audited": lower, "proved": upper}
"""How a claim's epsilons are written: no rounding makes one look better than it is."""


@dataclass(frozen=True, slots=True)
class FindingResult:
    """A finding after a run.

    Attributes:
        sentence: With the measured figures in it.
        when: The condition under which it is true.
        is_true: Whether that is met.
        detail: Where it is met, or is not.
    """

    sentence: str
    when: str
    is_true: bool
    detail: str

    @property
    def text(self) -> str:
        """The sentence; of one that is not true, the word for it first."""
        if self.is_true:
            return self.sentence
        return f"{'Not measured' if self.detail == _NOTHING else 'Not so'}: {self.sentence}"


@dataclass(frozen=True, slots=True)
class _MeasuredPoint:
    """A point of a sweep, its plain data and its result."""

    settings: Mapping[str, object]
    data: Mapping[str, object]
    result: PointResult

    def values(self, figure: scenario.Figure) -> Iterator[float]:
        """Yield what a figure selects here; nothing where its conditions are not met."""
        gate = figure.selects
        if not scenario.applies(gate, self.data):
            return
        for pipeline, found in self.result.findings.items():
            if isinstance(gate, scenario.MetricGate):
                named = (one for one in found.metrics if f"{pipeline}.{one.name}" == gate.metric)
                yield from (one.value for one in named)
            elif isinstance(gate, scenario.ClaimGate):
                for one in found.claims:
                    if gate.selects(pipeline, one.mechanism, one.claim.proved.neighbours.value):
                        yield figure.of_claim(one.claim)


def check_findings(
    findings: Sequence[scenario.Finding],
    points: Sequence[scenario.SweepPoint],
    results: Mapping[str, PointResult],
) -> list[FindingResult]:
    """Check every finding; one that selects nothing has not been shown, and is not true.

    Args:
        findings: Of the scenario.
        points: Of the sweep.
        results: By the id of a point.
    """
    data = point_data(points) if findings else {}
    measured = [
        _MeasuredPoint(dict(point.settings), data[point.id], results[point.id])
        for point in points
        if findings
    ]
    return [_checked(one, measured) for one in findings]


def _checked(finding: scenario.Finding, points: Sequence[_MeasuredPoint]) -> FindingResult:
    condition, parts = finding.condition, finding.parts()
    if isinstance(condition, scenario.FigureComparison):
        is_true, detail = _compared(condition, points)
    else:
        by_id = {one.result.id: one for one in points}
        gate = check_gate(
            finding.when,
            condition,
            {name: one.data for name, one in by_id.items()},
            {name: one.result for name, one in by_id.items()},
        )
        is_true, detail = gate.passed, gate.detail
    shown = [_shown(figure, points) for figure in parts.figures]
    pieces = [piece for pair in zip(parts.texts, [*shown, ""], strict=True) for piece in pair]
    return FindingResult("".join(pieces), finding.when, is_true, detail)


def _compared(
    condition: scenario.FigureComparison, points: Sequence[_MeasuredPoint]
) -> tuple[bool, str]:
    """Compare two figures wherever both were measured; return whether all hold, and where."""
    outcomes = [
        (f"{left.result.id} ({one:g} against {other:g})", condition.is_met(one, other))
        for left, right in _pairs(condition, points)
        for one in left.values(condition.left)
        for other in right.values(condition.right)
    ]
    failed = [where for where, is_met in outcomes if not is_met]
    if not outcomes:
        return False, _NOTHING
    if failed:
        return False, f"fails at {len(failed)} of {len(outcomes)}: {failed[0]}"
    return True, f"holds at all {len(outcomes)}"


def _pairs(
    condition: scenario.FigureComparison, points: Sequence[_MeasuredPoint]
) -> Iterator[tuple[_MeasuredPoint, _MeasuredPoint]]:
    """Yield the points that are compared: each with itself, or those that differ as stated."""
    if condition.has_shared_filters:
        yield from ((one, one) for one in points)
        return
    named = {one.key for one in (*condition.left.filters, *condition.right.filters)}
    for left in points:
        rest = {key: value for key, value in left.settings.items() if key not in named}
        for right in points:
            if all(right.settings.get(key) == value for key, value in rest.items()):
                yield left, right


def _shown(figure: scenario.Figure, points: Sequence[_MeasuredPoint]) -> str:
    """Write a figure: the one value that was measured, or the least and the largest."""
    values = [value for point in points for value in point.values(figure)]
    if not values:
        return "\N{EN DASH}"
    write = _ROUNDED.get(getattr(figure.selects, "figure", ""), number)
    least, most = write(min(values)), write(max(values))
    return least if least == most else f"{least} to {most}"
