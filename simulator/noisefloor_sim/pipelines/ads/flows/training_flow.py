"""Training reports as they are inspected: their distribution given the ratings, and witnesses.

Two users exchange all their ratings, or do not, by one bit for the whole training; in rounds in
which only one of them reports, each holds the own ones, so that every sum of a round stays as it
is. The ratios of a user's reports are added up over all rounds: that is the claim of the training.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from noisefloor.accounting import Amount
from noisefloor.ads.training import (
    AdTraining,
    BitTraining,
    Broadcast,
    LaplaceTraining,
    Ratings,
    SpectralTraining,
)
from noisefloor.adversary.fit import FitResult, SeenUniforms, UniformFit
from noisefloor.checks import Floats
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
from noisefloor_sim.pipelines.ads.flows.bit_reference import BitReference
from noisefloor_sim.pipelines.ads.flows.laplace_reference import LaplaceReference
from noisefloor_sim.pipelines.ads.flows.report_reference import (
    RatingInputs,
    ReportReference,
    stepped_tastes,
)
from noisefloor_sim.pipelines.ads.flows.spectral_reference import SpectralReference
from noisefloor_sim.pipelines.ads.flows.training_truth import (
    ArrivedReports,
    ArrivedWitnesses,
    RoundWitnesses,
    Rows,
    TrainingTruth,
)
from noisefloor_sim.scenario import Scenario

TRAINING = "training"
"""The name of the flow."""

TRAINING_REPORT = "training report"
"""What accounts call a report."""

MOST_REPORTS = 1 << 16
"""Reports of a round whose noise is tested, those of the first cohorts."""

MOST_PAIRED = 1 << 13
"""Reports of a round that are compared with each other, and of which all that is uniform is
tested: noise that is used twice shows in few of them."""

MOST_SPECTRAL = 1 << 14
"""The same where the candidates of each report have to be ranked."""

MOST_GRADIENTS = 1 << 13
"""The same where a report has many numbers, which are all tested."""

FEWEST_COHORTS = 2
"""Cohorts that are tested however large they are: noise that two of them share shows only so."""

UNIT = 2.0**-32
"""Ratios are added up in these steps: whole numbers have the same sum in any order."""


@dataclass(slots=True)
class TrainingFlow(Flow):
    """The reports of one training.

    Attributes:
        training: The way of training.
        scenario: At one point of a sweep.
        source: Of draws of witnesses, of transforms and of planted faults.
        epochs: The rounds.
        reference: What is declared of the reports.
        tests: Of the fit.
        drawn: Pairs of users, by cohort and group.
        arrived: By round, what came of witnesses: their pairs, reports and inputs.
        waiting: By cohort and round, what came of reports that are tested.
        tastes: Of each cohort, where devices remember them over rounds.
    """

    training: AdTraining
    scenario: Scenario
    source: SeededSource
    epochs: range = field(init=False)
    reference: ReportReference = field(init=False)
    tests: UniformFit = field(default_factory=UniformFit)
    drawn: dict[tuple[int, int], WitnessPairs] = field(default_factory=dict)
    arrived: dict[int, list[ArrivedWitnesses]] = field(default_factory=dict)
    waiting: dict[tuple[int, int], list[ArrivedReports]] = field(default_factory=dict)
    tastes: dict[int, Floats] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.epochs = range(self.training.rounds)
        self.reference = reference_of(self.training)

    @property
    def name(self) -> str:
        """The name of the flow."""
        return TRAINING

    @property
    def columns(self) -> dict[str, str]:
        """Those of the first round."""
        return self.columns_at(0)

    def columns_at(self, epoch: int) -> dict[str, str]:
        """Return the one column of a round: a cell and a bit, a gradient, or signs."""
        training = self.training
        if isinstance(training, BitTraining):
            return {"symbol": np.min_scalar_type(2 * training.cells - 1).name}
        if isinstance(training, LaplaceTraining):
            numbers = training.ads * training.dimension
            return {"gradient": f"fixed_size_binary[{math.ceil(training.ads / 8) + 4 * numbers}]"}
        if not isinstance(training, SpectralTraining):
            raise TypeError(f"{type(training).__name__} has no declared columns.")
        lengths = training.rated.length, training.directions.length, training.axes.length
        is_lite = epoch == len(lengths) - 1 and training.form == "lite"
        signs = 2 * training.ads if is_lite else lengths[epoch]
        name = "signs" if epoch == len(lengths) - 1 else "bits"
        return {name: f"fixed_size_binary[{math.ceil(signs / 8)}]"}

    @property
    def mechanism_name(self) -> str:
        """The name of the mechanism."""
        return type(self.training).__name__

    def kind_at(self, epoch: int) -> Kind:
        """Return the kind of a round."""
        return self.training.kind(epoch)

    @property
    def price(self) -> LedgerPrice | None:
        """What a report of the first round costs."""
        return self.price_at(0)

    def price_at(self, epoch: int) -> LedgerPrice | None:
        """Return what a report of a round costs."""
        return LedgerPrice(TRAINING_REPORT, Amount.cost(self.training.cost(epoch)).micro_epsilon)

    @property
    def reports_once(self) -> bool:
        """Whether a user reports in one round only, by lot."""
        if isinstance(self.training, BitTraining):
            return self.training.once
        return isinstance(self.training, SpectralTraining)

    def witnesses(self, cohort: int, number: int, users: Rows, ratings: Ratings) -> RoundWitnesses:
        """Return who of a round's reporting users may hold each other's ratings.

        Args:
            cohort: Its number.
            number: Of the round.
            users: Who report, increasing.
            ratings: Of those.
        """
        group = number if self.reports_once else 0
        key = cohort, group
        if key not in self.drawn:
            # Who reports in all rounds is drawn in the first of them.
            is_first = number == group
            self.drawn[key] = self._draw(key, users, ratings) if is_first else no_pairs()
        drawn = self.drawn[key]
        places = [np.searchsorted(users, some) for some in (drawn.first, drawn.second)]
        report = np.ones(len(drawn), dtype=np.bool_)
        for place, some in zip(places, (drawn.first, drawn.second), strict=True):
            report &= (users[np.minimum(place, len(users) - 1)] == some) if len(users) else False
        ids = np.flatnonzero(report)
        pairs = WitnessPairs(places[0][ids], places[1][ids], drawn.swapped[ids], drawn.unused[ids])
        own, partners = pairs.first, pairs.second
        inputs, other = np.where(pairs.swapped, [partners, own], [own, partners])
        rows = RatingInputs(ratings.rated, ratings.rating)
        return RoundWitnesses(pairs, ids, group, rows[inputs], rows[other])

    def _draw(self, key: tuple[int, int], users: Rows, ratings: Ratings) -> WitnessPairs:
        """Draw pairs among users who have rated anything; both report in this round."""
        most = most_pairs(self.scenario, key[0])
        if not most:
            return no_pairs()
        chance = self.source.child("witness", *key).generator()
        places = draw_pairs(np.flatnonzero(ratings.rated.any(axis=1)), most, chance)
        suits = (ratings.rated[places[0]] != ratings.rated[places[1]]).any(axis=1)
        first, second = (users[some[suits]][:most] for some in places)
        return with_bits(first, second, chance)

    def truth(
        self,
        cohort: int,
        size: int,
        number: int,
        sent: Broadcast,
        users: Rows,
        ratings: Ratings,
        witnesses: RoundWitnesses,
    ) -> TrainingTruth:
        """Return what the reports of a cohort's round are made of.

        Args:
            cohort: Its number.
            size: Its users.
            number: Of the round.
            sent: The broadcast.
            users: Who report, increasing.
            ratings: What each report is about, those of witnesses exchanged.
            witnesses: Of this round.
        """
        inputs = RatingInputs(ratings.rated, ratings.rating)
        training = self.training
        is_stepped = isinstance(training, BitTraining | LaplaceTraining) and (
            training.local == "step"
        )
        if is_stepped:
            inputs, witnesses = self._stepped(cohort, size, sent, users, inputs, witnesses)
        return TrainingTruth(number, sent, size, np.arange(len(users)), users, inputs, witnesses)

    def _stepped(
        self,
        cohort: int,
        size: int,
        sent: Broadcast,
        users: Rows,
        inputs: RatingInputs,
        witnesses: RoundWitnesses,
    ) -> tuple[RatingInputs, RoundWitnesses]:
        """Move remembered tastes one step: a taste goes with the ratings that it is made of."""
        training, pairs = self.training, witnesses.pairs
        if not isinstance(training, BitTraining | LaplaceTraining):
            raise TypeError("Only gradients are reported in steps.")
        if cohort not in self.tastes:
            self.tastes[cohort] = np.zeros((size, sent.model.dimension))
        before = np.asarray(pairs.exchange(self.tastes[cohort][users]), dtype=np.float64)
        radius = 1.0
        if isinstance(training, LaplaceTraining) and not training.bounded:
            radius = math.inf
        now = stepped_tastes(
            sent.model,
            inputs,
            before,
            rate=training.taste_rate,
            weight=training.weight,
            radius=radius,
        )
        self.tastes[cohort][users] = pairs.exchange(now)
        rows = RatingInputs(inputs.rated, inputs.rating, now)
        # Both of a pair have been exchanged: what one holds, the other would with the other bit.
        moved = RoundWitnesses(
            pairs, witnesses.ids, witnesses.group, rows[pairs.first], rows[pairs.second]
        )
        return rows, moved

    def inspect(self, seen: SeenFrame) -> None:
        """Transform reports by what they were made of, and add up the ratios of witnesses."""
        truth = seen.truth
        if not isinstance(truth, TrainingTruth):
            raise TypeError("Training reports come with their ratings.")
        is_tested = self._is_tested(seen.cohort, truth.number)
        if not (is_tested or len(truth.witnesses.ids)):
            return
        rows = np.flatnonzero(seen.order < len(truth.places))
        places = truth.places[seen.order[rows]]
        if is_tested and len(rows):
            reports = seen.rows if len(rows) == len(seen.order) else seen.rows[rows]
            if isinstance(self.reference, LaplaceReference):
                self.reference.see_bits(self.tests.table, reports, truth.inputs.rated[places])
            some = np.flatnonzero(places < self.reference.most)
            self._wait(seen.cohort, ArrivedReports(truth, len(rows), places[some], reports[some]))
        self._keep_witnesses(seen, truth, rows, places)

    def _wait(self, cohort: int, part: ArrivedReports) -> None:
        """Test the reports of a cohort's round together, once the last of them has come."""
        key = cohort, part.truth.number
        parts = self.waiting.setdefault(key, [])
        parts.append(part)
        if sum(one.count for one in parts) == len(part.truth.users):
            self._test(cohort, self.waiting.pop(key))

    def _is_tested(self, cohort: int, number: int) -> bool:
        """Whether the noise of a cohort's reports is tested."""
        if isinstance(self.training, SpectralTraining):
            return self._is_first(cohort, number, MOST_SPECTRAL)
        if isinstance(self.training, LaplaceTraining):
            return self._is_first(cohort, number, MOST_GRADIENTS)
        return self._is_first(cohort, number, MOST_REPORTS)

    def _is_first(self, cohort: int, number: int, most: int) -> bool:
        """Whether a cohort is among the first, whose reports of a round are tested."""
        share = 1.0
        if isinstance(self.training, SpectralTraining):
            share = self.training.shares[number]
        elif self.reports_once:
            share = 1 / self.training.rounds
        size = min(self.scenario.population.cohort, self.scenario.population.users)
        return cohort < FEWEST_COHORTS or cohort * size * share < most

    def _test(self, cohort: int, parts: list[ArrivedReports]) -> None:
        """Transform reports, in the order of the devices, and count them."""
        truth, places = parts[0].truth, np.concatenate([part.places for part in parts])
        reports = np.concatenate([part.reports for part in parts])
        source = self.source.child("inspection", cohort, truth.number)
        draws, inputs = source.generator().random((len(truth.users), 2)), truth.inputs
        if len(places) == len(truth.users):
            placed = np.empty_like(reports)
            placed[places] = reports
            places, reports = np.arange(len(places)), placed
        else:
            back = np.argsort(places)
            places, reports = places[back], reports[back]
            draws, inputs = draws[places], inputs[places]
        if not self._is_first(cohort, truth.number, MOST_PAIRED):
            for name, values, fault in self.reference.noise(
                truth.number, truth.sent, reports, inputs, draws
            ):
                self.tests.see(name, values, fault)
            return
        found = self.reference.transformed(truth.number, truth.sent, reports, inputs, draws)
        for name, values, fault in found.named:
            self.tests.see(name, values, fault)
        places = places[: len(found.values)]
        self.tests.see_frame(
            SeenUniforms(
                cohort,
                truth.number,
                truth.size,
                len(truth.users),
                truth.users[places],
                places,
                found.values,
            )
        )

    def _keep_witnesses(
        self, seen: SeenFrame, truth: TrainingTruth, rows: Rows, places: Rows
    ) -> None:
        """Keep the reports of witnesses that are in this frame."""
        witnesses = truth.witnesses
        if not len(witnesses.ids):
            return
        row_of = np.full(len(truth.users), -1)
        row_of[places] = rows
        came = row_of[witnesses.pairs.first]
        some = np.flatnonzero(came >= 0)
        if len(some):
            self.arrived.setdefault(truth.number, []).append(
                ArrivedWitnesses(
                    (seen.cohort, witnesses.group),
                    truth.sent,
                    witnesses.ids[some],
                    seen.rows_at(came[some]),
                    witnesses.inputs[some],
                    witnesses.other[some],
                )
            )

    def fit(self) -> FitResult:
        """Test everything that was counted, and what waits for reports that never came."""
        for cohort, number in sorted(self.waiting):
            self._test(cohort, self.waiting[cohort, number])
        self.waiting.clear()
        return self.tests.table.result()

    def bounds(self) -> dict[str, LowerBound | None]:
        """Return what witnesses prove of the whole training: audited, null, and planted."""
        keys = sorted(self.drawn)
        ends = np.cumsum([len(self.drawn[key]) for key in keys])
        start_of = {
            key: int(end) - len(self.drawn[key]) for key, end in zip(keys, ends, strict=True)
        }
        swapped, unused = (
            np.concatenate([_NO_BITS, *(getattr(self.drawn[key], name) for key in keys)])
            for name in ("swapped", "unused")
        )
        sums = np.zeros((2, len(swapped)), dtype=np.int64)
        for number, parts in sorted(self.arrived.items()):
            parts.sort(key=lambda part: (part.key, int(part.ids[0])))
            ids = np.concatenate([start_of[part.key] + part.ids for part in parts])
            for row, ratio in enumerate(self._ratios(number, parts)):
                towards = np.where(swapped[ids], -ratio, ratio)
                np.add.at(sums[row], ids, np.rint(towards / UNIT).astype(np.int64))
        return summed_bounds(sums[0] * UNIT, sums[1] * UNIT, swapped, unused)

    def _ratios(self, number: int, parts: list[ArrivedWitnesses]) -> tuple[Floats, Floats]:
        """Return ln P(report | other) - ln P(report | inputs): as arrived, and planted."""
        sent, reference = parts[0].sent, self.reference
        inputs, other = (
            RatingInputs.joined([getattr(part, name) for part in parts])
            for name in ("inputs", "other")
        )
        reports = np.concatenate([part.reports for part in parts])
        again = reference.planted(number, sent, inputs, self.source.child("planted", number))
        first, second = (
            reference.log_likelihood(number, sent, drawn, other)
            - reference.log_likelihood(number, sent, drawn, inputs)
            for drawn in (reports, again)
        )
        return first, second


_NO_BITS = np.zeros(0, dtype=np.bool_)


def reference_of(training: AdTraining) -> ReportReference:
    """Return what is declared of a way of training."""
    if isinstance(training, BitTraining):
        return BitReference(training)
    if isinstance(training, LaplaceTraining):
        return LaplaceReference(training)
    if isinstance(training, SpectralTraining):
        return SpectralReference(training)
    raise TypeError(f"{type(training).__name__} has no declared distribution.")
