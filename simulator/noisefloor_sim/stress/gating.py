"""Gates of a load against the figures of a run."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from noisefloor_sim.scenario import Load, MetricGate, parse_gate
from noisefloor_sim.stress.figures import StressFigure


@dataclass(frozen=True, slots=True)
class LoadGateResult:
    """Whether a gate held.

    Attributes:
        gate: Its text.
        passed: Whether it held; what was not measured does not hold.
        detail: What was found.
    """

    gate: str
    passed: bool
    detail: str


def check_load_gates(load: Load, found: Sequence[StressFigure]) -> Iterator[LoadGateResult]:
    """Compare every gate with its figure."""
    known = {f"{one.step}.{one.name}": one for one in found}
    for text in load.gates:
        gate = parse_gate(text)
        assert isinstance(gate, MetricGate)  # noqa: S101  the load has no other gates
        figure = known.get(gate.metric)
        if figure is None:
            yield LoadGateResult(text, False, f"{gate.metric} was not measured")
        else:
            value = figure.value
            yield LoadGateResult(text, gate.is_met(value), f"{gate.metric} is {value:.4g}")
