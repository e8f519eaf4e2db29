"""Training reports as they are inspected: their distribution given the ratings, and witnesses.

Two users exchange all their ratings, or do not, by one bit for the whole training; in rounds in
which only one of them reports, each holds the own ones, so that every sum of a round stays as it
is. The ratios of a user's reports are added up over all rounds: that is the claim of the training.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

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
from noisefloor.mechanisms import Reports
from noisefloor.privacy import LowerBound
from noisefloor.randomness import SeededSource
from noisefloor.wire import Kind
from noisefloor_sim.inspection import (
    Flow,
    Price,
    SeenFrame,
    WitnessPairs,
    draw_pairs,
    most_pairs,
    no_pairs,
    summed_bounds,
    with_bits,
)
from noisefloor_sim.pipelines.ads import training_reference
from noisefloor_sim.scenario import Scenario

TRAINING = "training"
"""The name of the flow."""

LEDGER = "training report"
"""What accounts call a report."""

MOST_REPORTS = 1 << 15
"""Reports of a round whose noise is tested, those of the first cohorts."""

MOST_SPECTRAL = 1 << 14
"""The same where the candidates of each report have to be ranked."""

MOST_GRADIENTS = 1 << 13
"""The same where a report has many numbers, which are all tested."""

UNIT = 2.0**-32
"""Ratios are added up in these steps: whole numbers have the same sum in any order."""

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class RoundWitnesses:
    """Witnesses among the reports of a cohort in one round.

    Attributes:
        pairs: As places among the cohort's reports of this round.
        ids: Which of the cohort's pairs they are.
        group: Under which those were drawn.
        held: What the first of each pair reports about.
        other: What it would report about with the other bit.
    """

    pairs: WitnessPairs
    ids: Rows
    group: int
    held: training_reference.HeldRatings
    other: training_reference.HeldRatings


@dataclass(frozen=True, slots=True, eq=False)
class TrainingTruth:
    """What the reports of a frame were made of; only scoring reads it.

    Reports come in two parts: honest ones, and forged ones.

    Attributes:
        number: Of the round.
        sent: The broadcast that they answer.
        size: Users in the cohort.
        count: Honest reports of the cohort in this round, over all frames.
        places: The place of each honest report of the frame among those.
        users: The user of each honest report.
        held: What each honest report is about.
        witnesses: Of the cohort in this round.
    """

    number: int
    sent: Broadcast
    size: int
    count: int
    places: Rows
    users: Rows
    held: training_reference.HeldRatings
    witnesses: RoundWitnesses

    def part(self, rows: NDArray[np.bool_]) -> "TrainingTruth":
        """Return the truth of those reports of the round that are sent together."""
        places = np.flatnonzero(rows)
        return TrainingTruth(
            self.number,
            self.sent,
            self.size,
            self.count,
            places,
            self.users[places],
            self.held[places],
            self.witnesses,
        )


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
        sums: Of each pair, the ratios that were added up: of reports that arrived, and of planted
            ones, in units.
        tastes: Of each cohort, where devices remember them over rounds.
    """

    training: AdTraining
    scenario: Scenario
    source: SeededSource
    epochs: range = field(init=False)
    reference: training_reference.ReportReference = field(init=False)
    tests: UniformFit = field(default_factory=UniformFit)
    drawn: dict[tuple[int, int], WitnessPairs] = field(default_factory=dict)
    sums: dict[tuple[int, int], NDArray[np.int64]] = field(default_factory=dict)
    tastes: dict[int, Floats] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.epochs = range(self.training.rounds)
        self.reference = training_reference.reference_of(self.training)

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

    def kind_at(self, epoch: int) -> Kind:
        """Return the kind of a round."""
        return self.training.kind(epoch)

    @property
    def price(self) -> Price | None:
        """What a report of the first round costs."""
        return self.price_at(0)

    def price_at(self, epoch: int) -> Price | None:
        """Return what a report of a round costs."""
        return Price(LEDGER, Amount.cost(self.training.cost(epoch)).micro_epsilon)

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
            self.sums[key] = np.zeros((2, len(self.drawn[key])), dtype=np.int64)
        drawn = self.drawn[key]
        places = [np.searchsorted(users, some) for some in (drawn.first, drawn.second)]
        report = np.ones(len(drawn), dtype=np.bool_)
        for place, some in zip(places, (drawn.first, drawn.second), strict=True):
            report &= (users[np.minimum(place, len(users) - 1)] == some) if len(users) else False
        ids = np.flatnonzero(report)
        pairs = WitnessPairs(
            places[0][ids], places[1][ids], drawn.swapped[ids], drawn.unused[ids]
        )
        own, partners = pairs.first, pairs.second
        held, other = np.where(pairs.swapped, [partners, own], [own, partners])
        rows = training_reference.HeldRatings(ratings.rated, ratings.rating)
        return RoundWitnesses(pairs, ids, group, rows[held], rows[other])

    def _draw(self, key: tuple[int, int], users: Rows, ratings: Ratings) -> WitnessPairs:
        """Draw pairs among users who have rated anything; both report in this round."""
        source, most = self.source.child("witness", *key), most_pairs(self.scenario, key[0])
        if not most:
            return no_pairs()
        places = draw_pairs(np.flatnonzero(ratings.rated.any(axis=1)), most, source)
        suits = (ratings.rated[places[0]] != ratings.rated[places[1]]).any(axis=1)
        first, second = (users[some[suits]][:most] for some in places)
        return with_bits(first, second, source)

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
        held = training_reference.HeldRatings(ratings.rated, ratings.rating)
        training = self.training
        is_stepped = isinstance(training, BitTraining | LaplaceTraining) and (
            training.local == "step"
        )
        if is_stepped:
            held, witnesses = self._stepped(cohort, size, sent, users, held, witnesses)
        count = len(users)
        return TrainingTruth(number, sent, size, count, np.arange(count), users, held, witnesses)

    def _stepped(
        self,
        cohort: int,
        size: int,
        sent: Broadcast,
        users: Rows,
        held: training_reference.HeldRatings,
        witnesses: RoundWitnesses,
    ) -> tuple[training_reference.HeldRatings, RoundWitnesses]:
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
        now = training_reference.stepped_tastes(
            sent.model,
            held,
            before,
            rate=training.taste_rate,
            weight=training.weight,
            radius=radius,
        )
        self.tastes[cohort][users] = pairs.exchange(now)
        rows = training_reference.HeldRatings(held.rated, held.rating, now)
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
        back = np.argsort(seen.order)
        rows, reports = seen.order[back], seen.rows[back]
        honest = rows < len(truth.places)
        rows, reports = rows[honest], reports[honest]
        if not len(rows):
            return
        source = self.source.child("inspection", seen.cohort, seen.frame.batch_id.hex())
        self.reference.see_all(self.tests.table, reports, truth.held[rows])
        if self._is_tested(seen.cohort, truth.number):
            self._test(seen.cohort, truth, rows, reports, source)
        self._score(seen.cohort, truth, truth.places[rows], reports, source)

    def _is_tested(self, cohort: int, number: int) -> bool:
        """Whether a cohort is among the first, which are enough."""
        training, most, share = self.training, MOST_REPORTS, 1.0
        if isinstance(training, SpectralTraining):
            most, share = MOST_SPECTRAL, training.shares[number]
        elif isinstance(training, LaplaceTraining):
            most = MOST_GRADIENTS
        elif self.reports_once:
            share = 1 / training.rounds
        size = min(self.scenario.population.cohort, self.scenario.population.users)
        return cohort * size * share < most

    def _test(
        self, cohort: int, truth: TrainingTruth, rows: Rows, reports: Reports, source: SeededSource
    ) -> None:
        draws = source.child("transform").generator().random((len(rows), 2))
        held = truth.held[rows]
        found = self.reference.transformed(truth.number, truth.sent, reports, held, draws)
        for name, values, fault in found.named:
            self.tests.see(name, values, fault)
        rows = rows[: len(found.values)]
        self.tests.see_frame(
            SeenUniforms(
                cohort,
                truth.number,
                truth.size,
                truth.count,
                truth.users[rows],
                truth.places[rows],
                found.values,
            )
        )

    def _score(
        self,
        cohort: int,
        truth: TrainingTruth,
        places: Rows,
        reports: Reports,
        source: SeededSource,
    ) -> None:
        """Add up the ratios of witnesses whose report is in this frame."""
        witnesses, number, sent = truth.witnesses, truth.number, truth.sent
        where = np.searchsorted(places, witnesses.pairs.first)
        came = where < len(places)
        came[came] = places[where[came]] == witnesses.pairs.first[came]
        if not came.any():
            return
        some = np.flatnonzero(came)
        held, other = witnesses.held[some], witnesses.other[some]
        again = self.reference.planted(number, sent, held, source.child("planted"))
        sums = self.sums[cohort, witnesses.group]
        for row, drawn in enumerate((reports[where[some]], again)):
            ratio = self.reference.log_likelihood(number, sent, drawn, other)
            ratio -= self.reference.log_likelihood(number, sent, drawn, held)
            towards = np.where(witnesses.pairs.swapped[some], -ratio, ratio)
            sums[row, witnesses.ids[some]] += np.rint(towards / UNIT).astype(np.int64)

    def fit(self) -> FitResult:
        """Test everything that was counted."""
        return self.tests.table.result()

    def bounds(self) -> dict[str, LowerBound | None]:
        """Return what witnesses prove of the whole training: audited, null, and planted."""
        keys = sorted(self.drawn)
        swapped, unused = (
            np.concatenate([np.zeros(0, np.bool_), *(getattr(self.drawn[key], name) for key in keys)])
            for name in ("swapped", "unused")
        )
        sums = np.concatenate([np.zeros((2, 0)), *(self.sums[key] * UNIT for key in keys)], axis=1)
        return summed_bounds(sums[0], sums[1], swapped, unused)
