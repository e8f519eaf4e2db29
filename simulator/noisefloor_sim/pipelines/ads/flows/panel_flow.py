"""Clicks of the auction's panel as they are inspected: the cell as it is, the click protected.

Witnesses were shown the same ad on pages of the same topic, with the same released symbol; one
clicked it. They exchange their clicks, or do not, by a bit for each day: no sum changes.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import Amount
from noisefloor.ads.clicks import DeliveredClick
from noisefloor.adversary.audit import PLANTED_FACTOR as PLANTED
from noisefloor.adversary.fit import (
    BitDistribution,
    BitVectorFit,
    FitResult,
    SeenRows,
    see_equal,
)
from noisefloor.checks import Floats
from noisefloor.distributions import ONE
from noisefloor.mechanisms import Reports
from noisefloor.privacy import LowerBound
from noisefloor.randomness import SeededSource
from noisefloor.wire import Kind
from noisefloor_sim.inspection import Flow, LedgerPrice, SeenFrame, WitnessPairs, WitnessScores

PANEL_REPORT = "panel click report"
"""What accounts call a report."""

Rows = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class PanelTruth:
    """What the reports of a cohort's day are about; only scoring reads it.

    Attributes:
        day: Of the reports.
        size: Users in the cohort.
        users: The user of each report, increasing.
        symbols: 2 * cell + click of each report, clicks of witnesses exchanged.
        pairs: Witnesses, as places among the reports.
    """

    day: int
    size: int
    users: Rows
    symbols: Reports
    pairs: WitnessPairs


@dataclass(slots=True)
class PanelFlow(Flow):
    """Reports of the panel's clicks.

    Attributes:
        mechanism: What protects them.
        kind: Of the frames.
        epochs: The days.
        source: Of planted faults.
        tests: Of the fit.
        witnesses: Reports of witnesses, what they hold, their bits and unused bits.
    """

    mechanism: DeliveredClick
    kind: Kind
    epochs: range
    source: SeededSource
    tests: BitVectorFit = field(init=False)
    witnesses: list[tuple[Flags, Flags, Flags, Flags]] = field(default_factory=list)

    def __post_init__(self) -> None:
        lie, fault = (
            DeliveredClick(self.mechanism.ads, times * self.mechanism.epsilon).response.flip / ONE
            for times in (1.0, PLANTED)
        )
        ones = np.array([lie, 1 - lie])
        declared = (1 - lie, lie, None, False, np.outer(ones, ones), (1 - fault, fault))
        self.tests = BitVectorFit(BitDistribution(*declared))

    @property
    def name(self) -> str:
        """That of the kind."""
        return self.kind.name

    @property
    def columns(self) -> dict[str, str]:
        """A cell with a protected bit."""
        return {"symbol": np.min_scalar_type(2 * self.mechanism.ads - 1).name}

    @property
    def mechanism_name(self) -> str:
        """The name of the mechanism."""
        return type(self.mechanism).__name__

    def kind_at(self, epoch: int) -> Kind:
        """Return the one kind."""
        return self.kind

    @property
    def price(self) -> LedgerPrice | None:
        """What is claimed of a report."""
        return LedgerPrice(PANEL_REPORT, Amount.cost(self.mechanism.claimed).micro_epsilon)

    def inspect(self, seen: SeenFrame) -> None:
        """Count reported clicks by true ones, and compare the cells."""
        truth = seen.truth
        if not isinstance(truth, PanelTruth):
            raise TypeError("Reports of the panel come with their clicks.")
        places, reports = seen.in_order()
        made_of = truth.symbols[places]
        said, clicked = (_bits(one) for one in (reports, made_of))
        users = truth.users[places]
        self.tests.see(SeenRows(seen.cohort, truth.day, truth.size, users, said, clicked))
        see_equal(self.tests.table, "cells reported as others", made_of // 2, reports // 2)
        pairs = truth.pairs
        came, where = pairs.arrived(places)
        if came.any():
            bits = pairs.swapped[came], pairs.unused[came]
            self.witnesses.append((said[where, 0], clicked[where, 0], *bits))

    def fit(self) -> FitResult:
        """Test everything that was counted."""
        return self.tests.result()

    def bounds(self) -> dict[str, LowerBound | None]:
        """Return what witnesses prove: audited, null, and with a planted fault."""
        scores = WitnessScores(least=1e-9)
        if self.witnesses:
            reports, actual, swapped, unused = (
                np.concatenate(column) for column in zip(*self.witnesses, strict=True)
            )
            larger = DeliveredClick(2, PLANTED * self.mechanism.epsilon)
            drawn = larger.randomise(actual.astype(np.int64), self.source.child("panel-planted"))
            scores.see(self._score(reports, actual, swapped), swapped, unused)
            scores.see_planted(self._score(drawn.astype(np.bool_), actual, swapped), swapped)
        return {name: scores.bound(name) for name in scores.counts}

    def _score(self, reports: Flags, actual: Flags, swapped: Flags) -> Floats:
        """Return ln P(report | swapped) - ln P(report | not), of each witness."""
        lie = self.mechanism.response.flip / ONE
        towards = np.where(reports == actual, 1.0, -1.0) * np.log((1 - lie) / lie)
        return np.asarray(np.where(swapped, towards, -towards))


def _bits(symbols: Reports) -> Flags:
    return (np.asarray(symbols)[:, None] & 1).astype(np.bool_)
