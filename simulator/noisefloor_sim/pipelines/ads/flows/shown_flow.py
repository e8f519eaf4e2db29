"""Reports of shown ads as they are inspected: their distribution given the ad, and witnesses.

Two users exchange the ad that each reports, or do not, by a bit for each day: no sum changes.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import Amount
from noisefloor.ads.clicks import ImpressionReport
from noisefloor.adversary.audit import PLANTED_FACTOR as PLANTED
from noisefloor.adversary.fit import FitResult, SeenUniforms, UniformFit, raised_fault
from noisefloor.checks import Floats
from noisefloor.distributions import ONE
from noisefloor.mechanisms import KaryResponse, Reports, SubsetSelection
from noisefloor.privacy import LowerBound
from noisefloor.randomness import SeededSource
from noisefloor.wire import Kind
from noisefloor_sim.inspection import (
    Flow,
    LedgerPrice,
    SeenFrame,
    WitnessPairs,
    draw_pairs,
    most_pairs,
    no_pairs,
    summed_bounds,
    with_bits,
)
from noisefloor_sim.pipelines.ads.flows.choice_reference import SetReference, place_uniforms
from noisefloor_sim.scenario import Scenario

SHOWN = "shown-ad report"
"""What accounts call a report."""

MOST_USERS = 1 << 15
"""Users whose reports are tested, those of the first cohorts."""

Ads = NDArray[np.integer]
Rows = NDArray[np.int64]
Witnessed = tuple[Reports, Ads, Ads, NDArray[np.bool_], NDArray[np.bool_]]
"""Reports of witnesses, what they hold, what they would hold, their bits and unused bits."""


@dataclass(frozen=True, slots=True, eq=False)
class ShownTruth:
    """What the reports of a cohort's day are about; only scoring reads it.

    Attributes:
        day: Of the reports.
        size: Users in the cohort.
        users: The user of each report, increasing.
        ads: What each report is about, those of witnesses exchanged.
        pairs: Witnesses, as places among the reports.
    """

    day: int
    size: int
    users: Rows
    ads: Ads
    pairs: WitnessPairs


@dataclass(slots=True)
class ShownFlow(Flow):
    """Reports of shown ads.

    Attributes:
        report: What protects them.
        scenario: At one point of a sweep.
        source: Of draws of witnesses, of transforms and of planted faults.
        chances: The probability of each distance from the ad, where one ad is reported; declared,
            and with noise a quarter too small.
        sets: What is declared where a set is reported.
        tests: Of the fit.
        witnesses: What came of witnesses, by day, cohort and frame.
    """

    report: ImpressionReport
    scenario: Scenario
    source: SeededSource
    epochs: range = field(init=False)
    chances: tuple[Floats, Floats] = field(init=False)
    sets: SetReference | None = field(init=False)
    tests: UniformFit = field(default_factory=UniformFit)
    witnesses: dict[tuple[int, int, bytes], Witnessed] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.epochs = range(self.scenario.days)
        self.chances = self._kary(1.0), self._kary(PLANTED)
        self.sets = self._set_reference()

    @property
    def name(self) -> str:
        """That of the kind."""
        return self.report.kind.name

    @property
    def columns(self) -> dict[str, str]:
        """One ad's index, or a set of ads."""
        if isinstance(self.report.response, KaryResponse):
            return {"symbol": np.min_scalar_type(self.report.ads - 1).name}
        return {"bits": f"fixed_size_binary[{math.ceil(self.report.ads / 8)}]"}

    @property
    def mechanism_name(self) -> str:
        """The name of the mechanism."""
        return type(self.report.response).__name__

    def kind_at(self, epoch: int) -> Kind:
        """Return the one kind."""
        return self.report.kind

    @property
    def price(self) -> LedgerPrice | None:
        """What is claimed of a report."""
        return LedgerPrice(SHOWN, Amount.cost(self.report.guarantee()).micro_epsilon)

    def pairs(self, cohort: int, day: int, ads: Ads) -> WitnessPairs:
        """Draw who may report about each other's ad, as places among the reports."""
        most = most_pairs(self.scenario, cohort)
        if not most:
            return no_pairs()
        chance = self.source.child("shown-witness", cohort, day).generator()
        first, second = draw_pairs(np.arange(len(ads)), most, chance)
        suits = ads[first] != ads[second]
        return with_bits(first[suits][:most], second[suits][:most], chance)

    def inspect(self, seen: SeenFrame) -> None:
        """Transform reports by the ad that they are about."""
        truth = seen.truth
        if not isinstance(truth, ShownTruth):
            raise TypeError("Reports of shown ads come with the ads.")
        places, reports = seen.in_order()
        ads = truth.ads[places].astype(np.int64)
        size = min(self.scenario.population.cohort, self.scenario.population.users)
        if seen.cohort < 2 or seen.cohort * size < MOST_USERS:
            source = self.source.child("shown-inspection", seen.cohort, truth.day)
            draws = source.child(seen.frame.batch_id.hex()).generator().random((len(ads), 2))
            values = self._transformed(reports, ads, draws)
            users, count = truth.users[places], len(truth.users)
            self.tests.see_frame(
                SeenUniforms(seen.cohort, truth.day, truth.size, count, users, places, values)
            )
        self._keep_witnesses(seen, truth, places, reports)

    def _transformed(self, reports: Reports, ads: Rows, draws: Floats) -> Floats:
        """Count reports by how far they are from their ad, round the catalogue."""
        name = "a shown-ad report"
        if self.sets is not None:
            turned = (ads[:, None] + np.arange(self.report.ads)) % self.report.ads
            flags = np.take_along_axis(np.asarray(reports, dtype=np.bool_), turned, axis=1)
            return self.sets.see(self.tests, name, flags, draws)
        chances, larger = self.chances
        places = (reports.astype(np.int64) - ads) % self.report.ads
        values = place_uniforms(chances, places, draws[:, 0])
        self.tests.see(name, values, raised_fault(float(chances[0]), float(larger[0])))
        return values[:, None]

    def _kary(self, times: float) -> Floats:
        keep = KaryResponse(self.report.ads, times * self.report.epsilon).keep / ONE
        chances = np.full(self.report.ads, (1 - keep) / (self.report.ads - 1))
        chances[0] = keep
        return chances

    def _set_reference(self) -> SetReference | None:
        response = self.report.response
        if not isinstance(response, SubsetSelection):
            return None
        larger = SubsetSelection(response.size, PLANTED * response.epsilon, response.subset)
        holds = response.hold / ONE, larger.hold / ONE
        return SetReference(response.size, response.subset, *holds)

    def _keep_witnesses(
        self, seen: SeenFrame, truth: ShownTruth, places: Rows, reports: Reports
    ) -> None:
        """Keep the reports of witnesses that are in this frame."""
        pairs = truth.pairs
        came, where = pairs.arrived(places)
        if came.any():
            inputs, other = truth.ads[pairs.first[came]], truth.ads[pairs.second[came]]
            bits = pairs.swapped[came], pairs.unused[came]
            found = reports[where], inputs, other, *bits
            self.witnesses[truth.day, seen.cohort, seen.frame.batch_id] = found

    def fit(self) -> FitResult:
        """Test everything that was counted."""
        return self.tests.table.result()

    def bounds(self) -> dict[str, LowerBound | None]:
        """Return what witnesses prove: audited, null, and with a planted fault."""
        if not self.witnesses:
            return dict.fromkeys(("audited", "null", "planted"))
        reports, inputs, other, swapped, unused = (
            np.concatenate(column)
            for column in zip(
                *(self.witnesses[key] for key in sorted(self.witnesses)), strict=True
            )
        )
        again = self._planted(inputs, self.source.child("shown-planted"))
        found = [
            np.where(swapped, -ratio, ratio)
            for ratio in (self._log_ratio(drawn, inputs, other) for drawn in (reports, again))
        ]
        return summed_bounds(found[0], found[1], swapped, unused)

    def _planted(self, inputs: Ads, source: SeededSource) -> Reports:
        response, epsilon = self.report.response, PLANTED * self.report.epsilon
        if isinstance(response, KaryResponse):
            return KaryResponse(response.size, epsilon).randomise(inputs, source)
        return SubsetSelection(response.size, epsilon, response.subset).randomise(inputs, source)

    def _log_ratio(self, reports: Reports, inputs: Ads, other: Ads) -> Floats:
        """Return ln P(report | other) - ln P(report | inputs)."""
        if self.sets is not None:
            each, rows = np.arange(len(reports)), np.asarray(reports, dtype=np.bool_)
            return self.sets.log_ratio(rows[each, other], rows[each, inputs])
        logs = np.log(self.chances[0][:2])
        return np.asarray(
            np.where(reports == other, logs[0], logs[1])
            - np.where(reports == inputs, logs[0], logs[1])
        )
