"""A flow of symbols with a table of probabilities: all that a simple pipeline has to declare.

Each user sends one symbol an epoch, made of one of a few inputs. Witnesses exchange inputs.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary.fit import FitResult, SymbolFit
from noisefloor.checks import Floats
from noisefloor.privacy import LowerBound
from noisefloor.randomness import Generator
from noisefloor.wire import Kind
from noisefloor_sim.inspection.flow import Flow, LedgerPrice, SeenFrame
from noisefloor_sim.inspection.witnesses import WitnessPairs, WitnessScores

Values = NDArray[np.integer]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class SymbolTruth:
    """What symbols were made of, and the witnesses among them.

    Attributes:
        values: The input of each report, exchanges made.
        pairs: Witnesses, as places among the reports.
        other: What the first of each pair would hold with the other bit.
    """

    values: Values
    pairs: WitnessPairs
    other: Values

    @classmethod
    def of(cls, own: Values, pairs: WitnessPairs) -> "SymbolTruth":
        """Let witnesses exchange what they own."""
        other = np.where(pairs.swapped, own[pairs.first], own[pairs.second])
        return cls(np.asarray(pairs.exchange(own)), pairs, other)


@dataclass(slots=True)
class SymbolFlow(Flow):
    """Reports of one symbol each.

    Attributes:
        kind: Of the frames; one column of symbols.
        epochs: In which frames are sent.
        declared: P(report | input), one row per input.
        planted: The same with noise a quarter too small.
        cost: What accounts call a report, and what it costs.
        tests: Of the fit.
        seen: Reports of witnesses with both of their inputs, their bits and unused bits.
    """

    kind: Kind
    epochs: range
    declared: Floats
    planted: Floats
    cost: LedgerPrice
    tests: SymbolFit = field(init=False)
    seen: list[tuple[Values, Values, Values, Flags, Flags]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tests = SymbolFit(self.declared, self.planted)

    @property
    def name(self) -> str:
        """That of the kind."""
        return self.kind.name

    @property
    def columns(self) -> dict[str, str]:
        """One symbol."""
        return {"symbol": np.min_scalar_type(self.declared.shape[1] - 1).name}

    def kind_at(self, epoch: int) -> Kind:
        """Return the one kind."""
        return self.kind

    @property
    def price(self) -> LedgerPrice:
        """What a report costs."""
        return self.cost

    def inspect(self, seen: SeenFrame) -> None:
        """Count reports by what they were made of, and keep those of witnesses."""
        truth = seen.truth
        if not isinstance(truth, SymbolTruth):
            raise TypeError("Symbols come with what they were made of.")
        places, reports = seen.in_order()
        self.tests.see(truth.values[places], reports)
        pairs = truth.pairs
        came, where = pairs.arrived(places)
        actual, other = truth.values[pairs.first][came], truth.other[came]
        bits = pairs.swapped[came], pairs.unused[came]
        self.seen.append((reports[where], actual, other, *bits))

    def fit(self) -> FitResult:
        """Test everything that was counted."""
        return self.tests.table.result()

    def bounds(self, chance: Generator) -> dict[str, LowerBound | None]:
        """Return what witnesses prove: audited, null, and with a planted fault.

        Args:
            chance: Of the draws with too little noise.
        """
        scores = WitnessScores(least=1e-9)
        if self.seen:
            columns: list[NDArray[Any]] = [
                np.concatenate(column) for column in zip(*self.seen, strict=True)
            ]
            reports, actual, other, swapped, unused = columns
            ends = np.cumsum(self.planted[actual], axis=1)
            drawn = (chance.random((len(actual), 1)) >= ends[:, :-1]).sum(axis=1)
            ratios = [self._ratio(some, actual, other, swapped) for some in (reports, drawn)]
            scores.see(ratios[0], swapped, unused)
            scores.see_planted(ratios[1], swapped)
        return {name: scores.bound(name) for name in scores.counts}

    def _ratio(self, reports: Values, actual: Values, other: Values, swapped: Flags) -> Floats:
        """Return ln P(report | swapped) - ln P(report | not), of each witness."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.declared)
        ratio = logs[other, reports] - logs[actual, reports]
        return np.asarray(np.where(swapped, -ratio, ratio))
