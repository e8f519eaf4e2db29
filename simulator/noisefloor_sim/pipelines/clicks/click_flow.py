"""Click reports as they are inspected: their distribution given the clicks, and witnesses.

What is declared is computed from raw clicks by formulas of its own; no step of a device is used.
"""

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import Amount
from noisefloor.ads.clicks import ClickEncoding, ClickReport, DeliveredClick, MemoisedClicks
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

ClickMechanism = ClickReport | MemoisedClicks | DeliveredClick
"""What guards clicks, in any of its forms."""

REMEMBERED_COHORTS = 4
"""The number of cohorts whose reports are remembered, to compare those that are sent again."""

Bits = NDArray[np.bool_]
Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class ClickTruth:
    """What the reports of a cohort's day were made of; only scoring reads it.

    Reports come in three parts: fresh ones, such as are sent again from memory, and forged ones.

    Attributes:
        day: Of the reports.
        size: Users in the cohort.
        fresh: The users of fresh reports, increasing.
        repeated: The users of reports that are sent again.
        clicks: What each fresh report is about: rows of bits, or symbols of delivered ads.
        pairs: Witnesses among fresh reports, as places there.
        other: What the first of each pair would have reported about with the other bit.
    """

    day: int
    size: int
    fresh: Rows
    repeated: Rows
    clicks: Reports
    pairs: WitnessPairs
    other: Reports


def bit_distribution(mechanism: ClickMechanism) -> BitDistribution:
    """Return what is declared of one bit of a report, from the mechanism's own weights."""
    if isinstance(mechanism, ClickReport):
        stay, rise = mechanism.encoding.stay / ONE, mechanism.encoding.rise / ONE
        chances, form = np.array([rise, stay]), mechanism.form
        is_whole = form in (ClickEncoding.PER_BIT, ClickEncoding.SPLIT)
        fault = replace(mechanism, epsilon=PLANTED * mechanism.epsilon).encoding
        return BitDistribution(
            stay,
            rise,
            None if is_whole else mechanism.most_clicks,
            form is ClickEncoding.PAD_AND_SAMPLE,
            np.outer(chances, chances),
            (fault.stay / ONE, fault.rise / ONE),
        )
    if isinstance(mechanism, DeliveredClick):
        lie = mechanism.response.flip / ONE
        fault_lie = DeliveredClick(mechanism.ads, PLANTED * mechanism.epsilon).response.flip / ONE
        chances = np.array([lie, 1 - lie])
        planted = 1 - fault_lie, fault_lie
        return BitDistribution(1 - lie, lie, None, False, np.outer(chances, chances), planted)
    lie, both = _memoised(mechanism)
    first = PLANTED * mechanism.first
    fault_lie, _ = _memoised(replace(mechanism, epsilon=PLANTED * mechanism.epsilon, first=first))
    return BitDistribution(1 - lie, lie, None, False, both, (1 - fault_lie, fault_lie))


def _memoised(mechanism: MemoisedClicks) -> tuple[float, Floats]:
    """Return the chance that a day's bit is flipped, and that of ones on two days.

    The permanent answer to a zero and that to a one are drawn apart: on two days with the same
    bit the answer is the same, otherwise the days are independent.
    """
    once, again = mechanism.response.permanent / ONE, mechanism.response.instant / ONE
    lie = once * (1 - again) + (1 - once) * again
    ones = np.array([lie, 1 - lie])
    both = np.outer(ones, ones)
    for bit, answer in ((0, once), (1, 1 - once)):  # how often the permanent answer is a one
        both[bit, bit] = answer * (1 - again) ** 2 + (1 - answer) * again**2
    return lie, both


@dataclass(slots=True)
class ClickFlow(Flow):
    """One flow of click reports.

    Attributes:
        mechanism: What guards the clicks.
        kind: Of the frames.
        epochs: The days.
        ledger: What accounts call a report.
        repeats: Whether devices without budget send their last report again.
        tests: Of the fit.
        last: The last fresh reports of the first cohorts, and who has sent one.
        witnesses: Reports of witnesses with both of their inputs, their bits and unused bits.
    """

    mechanism: ClickMechanism
    kind: Kind
    epochs: range
    ledger: str
    repeats: bool
    tests: BitVectorFit = field(init=False)
    last: dict[int, tuple[Reports, Bits]] = field(default_factory=dict)
    witnesses: list[tuple[Reports, Reports, Reports, Bits, Bits]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tests = BitVectorFit(bit_distribution(self.mechanism))

    @property
    def name(self) -> str:
        """That of the kind."""
        return self.kind.name

    @property
    def columns(self) -> dict[str, str]:
        """One protected vector, or the delivered ad with a protected bit; nothing else."""
        if isinstance(self.mechanism, DeliveredClick):
            return {"symbol": np.min_scalar_type(2 * self.mechanism.ads - 1).name}
        return {"bits": f"fixed_size_binary[{math.ceil(self.mechanism.width / 8)}]"}

    @property
    def mechanism_name(self) -> str:
        """The name of the mechanism."""
        return type(self.mechanism).__name__

    def kind_at(self, epoch: int) -> Kind:
        """Return the one kind."""
        return self.kind

    @property
    def price(self) -> LedgerPrice | None:
        """What the ledger debits for a report: what is claimed of it."""
        return LedgerPrice(self.ledger, Amount.cost(self.mechanism.claimed).micro_epsilon)

    def inspect(self, seen: SeenFrame) -> None:
        """Count fresh reports by what they were made of, and compare those sent again."""
        truth = seen.truth
        if not isinstance(truth, ClickTruth):
            raise TypeError("Click reports come with their clicks.")
        # Back in the order of the devices: rows next to each other are users next to each other.
        places, reports = seen.in_order()
        split = np.searchsorted(places, [len(truth.fresh), len(truth.fresh) + len(truth.repeated)])
        rows, again = places[: split[0]], places[split[0] : split[1]] - len(truth.fresh)
        fresh, is_all = reports[: split[0]], split[0] == len(truth.fresh)
        users, clicks = (one if is_all else one[rows] for one in (truth.fresh, truth.clicks))
        bits = self._as_bits(clicks)
        self.tests.see(
            SeenRows(seen.cohort, truth.day, truth.size, users, self._as_bits(fresh), bits)
        )
        if isinstance(self.mechanism, DeliveredClick):
            see_equal(
                self.tests.table, "delivered ads reported as others", clicks // 2, fresh // 2
            )
        if self.repeats and seen.cohort < REMEMBERED_COHORTS:
            self._remember(seen.cohort, truth, users, fresh, again, reports[split[0] : split[1]])
        self._see_witnesses(truth, rows, fresh, clicks)

    def _as_bits(self, reports: Reports) -> Bits:
        if isinstance(self.mechanism, DeliveredClick):
            return (reports[:, None] & 1).astype(np.bool_)
        return np.asarray(reports, dtype=np.bool_)

    def _remember(
        self,
        cohort: int,
        truth: ClickTruth,
        users: Rows,
        fresh: Reports,
        again: Rows,
        repeated: Reports,
    ) -> None:
        """Compare reports that are sent again with the fresh ones that they repeat."""
        if cohort not in self.last:
            rows = np.zeros((truth.size, *fresh.shape[1:]), dtype=fresh.dtype)
            self.last[cohort] = rows, np.zeros(truth.size, dtype=np.bool_)
        last, has = self.last[cohort]
        owners = truth.repeated[again]
        known = has[owners]
        name = "reports sent again that differ from the first"
        see_equal(self.tests.table, name, last[owners[known]], repeated[known])
        last[users], has[users] = fresh, True

    def _see_witnesses(
        self, truth: ClickTruth, rows: Rows, fresh: Reports, clicks: Reports
    ) -> None:
        """Keep the reports of witnesses that arrived."""
        pairs = truth.pairs
        came, where = pairs.arrived(rows)
        if came.any():
            bits = pairs.swapped[came], pairs.unused[came]
            self.witnesses.append((fresh[where], clicks[where], truth.other[came], *bits))

    def fit(self) -> FitResult:
        """Test everything that was counted."""
        return self.tests.result()

    def bounds(self, source: SeededSource) -> dict[str, LowerBound | None]:
        """Return what witnesses prove: audited, null, and with a planted fault.

        Args:
            source: Of the draws with too little noise.
        """
        # Scores are 0 or far from it: every guess that the report gives reason for is made.
        scores = WitnessScores(least=1e-9)
        if self.witnesses:
            reports, actual, other, swapped, unused = (
                np.concatenate(column) for column in zip(*self.witnesses, strict=True)
            )
            # ``actual`` is the partner's value where the pair is swapped, the own one otherwise.
            for bits, drawn in ((swapped, reports), (None, self._planted(actual, source))):
                ratio = self._log_ratio(drawn, actual, other)
                towards = np.where(swapped, -ratio, ratio)
                if bits is None:
                    scores.see_planted(towards, swapped)
                else:
                    scores.see(towards, swapped, unused)
        return {name: scores.bound(name) for name in scores.counts}

    def _planted(self, actual: Reports, source: SeededSource) -> Reports:
        """Randomise the witnesses' inputs again, with noise a quarter too small."""
        mechanism = self.mechanism
        if isinstance(mechanism, MemoisedClicks):
            larger = replace(
                mechanism,
                epsilon=PLANTED * mechanism.epsilon,
                first=PLANTED * mechanism.first,
            )
            return larger.report(
                actual, larger.memorise(len(actual), source.child("memory")), source
            )
        return replace(mechanism, epsilon=PLANTED * mechanism.epsilon).randomise(actual, source)

    def _log_ratio(self, reports: Reports, actual: Reports, other: Reports) -> Floats:
        """Return ln P(report | other) - ln P(report | actual), of each witness."""
        declared = self.tests.declared
        reports, actual, other = (self._as_bits(one) for one in (reports, actual, other))
        if declared.sampled:
            return _sampled_ratio(declared, reports, actual, other)
        ones = np.array([declared.rise, declared.stay])
        logs = np.log([1 - ones, ones])  # by report, then by bit
        found, at = reports.astype(np.intp), [bits.astype(np.intp) for bits in (other, actual)]
        return np.asarray((logs[found, at[0]] - logs[found, at[1]]).sum(axis=1))


def _sampled_ratio(declared: BitDistribution, reports: Bits, actual: Bits, other: Bits) -> Floats:
    """Return the ratio where one place of one click and its padding is picked.

    Padding that comes behind one click begins with its second place: the first stands for it.
    """
    odds = np.where(
        reports, declared.stay / declared.rise, (1 - declared.stay) / (1 - declared.rise)
    )
    width = actual.shape[1]
    padding = odds[:, width + 1 :].sum(axis=1)
    picked = [(odds[:, :width] * bits).sum(axis=1) for bits in (other, actual)]
    return np.asarray(np.log(picked[0] + padding) - np.log(picked[1] + padding))
