"""Ad requests as they are inspected: their distribution given the scores, and witnesses.

Scores are worked out here anew from ratings and model, in double precision. Ads are put in order
of the score, the favourite first, and a request is transformed by its place in that order: so a
favourite that is requested too often shows, whatever the choice.

Two users make their requests of a day by each other's scores, or by their own, by a bit: the
requests of both together stay as they are, and what comes is shown to whom the scores belong.
"""

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import Amount
from noisefloor.ads.delivery import AD_REQUESTS, AdDelivery, AdSelection
from noisefloor.ads.training import AdModel, Ratings
from noisefloor.adversary.audit import PLANTED_FACTOR as PLANTED
from noisefloor.adversary.fit import (
    Distribution,
    FitResult,
    SeenUniforms,
    UniformFit,
    see_equal,
)
from noisefloor.checks import LARGEST_EPSILON, Floats
from noisefloor.distributions import ONE
from noisefloor.mechanisms import NoisyMax, Reports, SubsetSelection, TwoSidedGeometric
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
from noisefloor_sim.pipelines.ads.flows.choice_reference import (
    SetReference,
    noisy_max_chances,
    place_uniforms,
)
from noisefloor_sim.pipelines.ads.flows.report_reference import RatingInputs, ridge_tastes
from noisefloor_sim.scenario import Scenario

REQUEST = "ad request"
"""What accounts call a request."""

MOST_USERS = 1 << 13
"""Users whose requests are tested, those of the first cohorts."""

MOST_NOISY = 1 << 10
"""Users of a cohort where noise on scores has to be summed over, row by row."""

FEWEST_COHORTS = 2
"""Cohorts that are tested however large they are: noise that two of them share shows only so."""

NOISY = frozenset({AdSelection.PRINTED, AdSelection.NOISY_MAX})
WEIGHED = NOISY | {AdSelection.EXPONENTIAL, AdSelection.PERMUTE_AND_FLIP}
"""Choices in which more than the order of scores counts."""

UNPROTECTED = frozenset({AdSelection.RANDOM, AdSelection.RANDOM_SLATE, AdSelection.EXACT})
"""Choices whose noise has no epsilon, and cannot be too small."""

Rows = NDArray[np.int64]
Witnessed = tuple[Reports, Floats, Floats, NDArray[np.bool_], NDArray[np.bool_]]
"""First requests of witnesses, both rows of scores, their bits and unused bits."""


@dataclass(frozen=True, slots=True, eq=False)
class ScoredUsers:
    """The scores of the first users of a cohort, as they were worked out for one model.

    Attributes:
        model: The model.
        scores: One row per user.
        order: The ads of each row, the favourite first.
        chances: The probability of each place in that order: one row for all users, or one each.
    """

    model: AdModel
    scores: Floats
    order: Rows
    chances: Floats


@dataclass(frozen=True, slots=True, eq=False)
class RequestTruth:
    """What the requests of a cohort's day were made of; only scoring reads it.

    Attributes:
        day: Of the requests.
        size: Users in the cohort.
        users: Whose each request is, increasing.
        lender: By whose scores each user made requests.
        scored: The scores of the first users; None where the cohort is not tested.
        pairs: Witnesses, as users of the cohort.
        inputs: The scores by which the first of each pair made requests.
        other: Those by which it would have with the other bit.
    """

    day: int
    size: int
    users: Rows
    lender: Rows
    scored: ScoredUsers | None
    pairs: WitnessPairs
    inputs: Floats
    other: Floats


@dataclass(slots=True)
class RequestFlow(Flow):
    """Requests for ads.

    Attributes:
        delivery: How devices ask.
        scenario: At one point of a sweep.
        ridge: With which devices fit their tastes.
        source: Of draws of witnesses, of transforms and of planted faults.
        tests: Of the fit.
        scored: By cohort, the scores that were worked out last.
        larger: The same with noise a quarter too small.
        sets: What is declared of slates.
        faults: How too little noise would distribute the transforms, once that is known.
        witnesses: What came of witnesses, by day, cohort and frame.
    """

    delivery: AdDelivery
    scenario: Scenario
    ridge: float
    source: SeededSource
    epochs: range = field(init=False)
    larger: AdDelivery = field(init=False)
    sets: SetReference | None = field(init=False)
    tests: UniformFit = field(default_factory=UniformFit)
    scored: dict[int, ScoredUsers] = field(default_factory=dict)
    faults: dict[str, Distribution | None] = field(default_factory=dict)
    witnesses: dict[tuple[int, int, bytes], Witnessed] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.epochs = range(self.scenario.days)
        epsilon = min(PLANTED * self.delivery.epsilon, LARGEST_EPSILON)
        self.larger = replace(self.delivery, epsilon=epsilon)
        self.sets = self._set_reference()

    def _set_reference(self) -> SetReference | None:
        ads, slate = self.delivery.ads, self.delivery.slate
        if self.delivery.choice is AdSelection.RANDOM_SLATE:
            return SetReference(ads, slate, slate / ads, None)
        if self.delivery.choice is not AdSelection.SLATE:
            return None
        holds = [
            SubsetSelection(ads, one.epsilon, slate).hold / ONE
            for one in (self.delivery, self.larger)
        ]
        return SetReference(ads, slate, holds[0], holds[1])

    @property
    def name(self) -> str:
        """The same for requests of one ad and of a slate."""
        return AD_REQUESTS

    @property
    def columns(self) -> dict[str, str]:
        """One ad's index, or a set of ads; nothing else."""
        if self.delivery.is_slate:
            return {"slate": f"fixed_size_binary[{math.ceil(self.delivery.ads / 8)}]"}
        return {"symbol": np.min_scalar_type(self.delivery.ads - 1).name}

    @property
    def mechanism_name(self) -> str:
        """The name of the mechanism."""
        return f"{type(self.delivery).__name__} {self.delivery.choice.value}"

    def kind_at(self, epoch: int) -> Kind:
        """Return the one kind."""
        return self.delivery.kind

    @property
    def price(self) -> LedgerPrice | None:
        """What is claimed of a request; what is sent in the open costs nothing."""
        claimed = self.delivery.claimed
        return LedgerPrice(REQUEST, Amount.cost(claimed).micro_epsilon if claimed.is_finite else 0)

    def pairs(self, cohort: int, day: int, granted: Rows) -> WitnessPairs:
        """Draw users who may ask by each other's scores; both make the same number of requests.

        Args:
            cohort: Its number.
            day: Of the requests.
            granted: How many requests each user makes.
        """
        most = most_pairs(self.scenario, cohort)
        if not most or self.delivery.choice in UNPROTECTED:
            return no_pairs()
        chance = self.source.child("request-witness", cohort, day).generator()
        asked = np.flatnonzero(granted)
        if granted.max(initial=0) > 1:
            # Users next to each other in order of their number, so that many pairs suit.
            shuffled = asked[chance.permutation(len(asked))]
            ranked = shuffled[np.argsort(granted[shuffled], kind="stable")]
            half = len(ranked) // 2
            ranked = ranked[: 2 * half].reshape(half, 2)[chance.permutation(half)]
            first, second = ranked[:, 0], ranked[:, 1]
        else:
            first, second = draw_pairs(asked, most, chance)
        suits = granted[first] == granted[second]
        return with_bits(first[suits][:most], second[suits][:most], chance)

    def truth(
        self,
        cohort: int,
        day: int,
        users: Rows,
        pairs: WitnessPairs,
        ratings: Ratings,
        model: AdModel,
    ) -> RequestTruth:
        """Return what the requests of a cohort's day are made of.

        Args:
            cohort: Its number.
            day: Of the requests.
            users: Whose each request is, increasing.
            pairs: Witnesses.
            ratings: Of the cohort's users.
            model: That devices score the ads with.
        """
        size = len(ratings)
        lender = np.asarray(pairs.exchange(np.arange(size)))
        both = np.zeros((0, self.delivery.ads))
        if len(pairs):
            lenders = np.concatenate([lender[pairs.first], lender[pairs.second]])
            both = self._scores(model, ratings[lenders])
        inputs, other = both[: len(pairs)], both[len(pairs) :]
        scored = self._scored(cohort, ratings, model)
        return RequestTruth(day, size, users, lender, scored, pairs, inputs, other)

    def _scores(self, model: AdModel, ratings: Ratings) -> Floats:
        """Return the scores of users, from their ratings and the model."""
        inputs = RatingInputs(ratings.rated, ratings.rating)
        tastes = ridge_tastes(model, inputs, self.ridge, 1.0)
        base = model.offsets.astype(np.float64) + model.centre
        predicted = tastes @ model.factors.astype(np.float64).T + base
        # The precision of what a device holds: scores that tie for it tie here.
        single = (self.delivery.high * np.clip(predicted, 0.0, 1.0)).astype(np.float32)
        return single.astype(np.float64)

    def _scored(self, cohort: int, ratings: Ratings, model: AdModel) -> ScoredUsers | None:
        """Return the scores of a cohort's first users; they are kept while the model stays."""
        size = min(self.scenario.population.cohort, self.scenario.population.users)
        if cohort >= FEWEST_COHORTS and cohort * size >= MOST_USERS:
            return None
        known = self.scored.get(cohort)
        if known is None or known.model is not model:
            most = MOST_NOISY if self.delivery.choice in NOISY else MOST_USERS
            scores = self._scores(model, ratings[:most])
            order = np.argsort(-scores, axis=1, kind="stable")
            known = ScoredUsers(model, scores, order, self._chances(self.delivery, scores, order))
            self.scored[cohort] = known
            self._plant(scores, order)
        return known

    def _chances(self, delivery: AdDelivery, scores: Floats, order: Rows) -> Floats:
        """Return the probability of each place, for each user or for all."""
        if delivery.is_slate or delivery.choice is AdSelection.EXACT:
            return np.zeros(delivery.ads)
        if delivery.choice in WEIGHED:
            return np.take_along_axis(_ad_chances(delivery, scores), order, axis=1)
        falling = np.linspace(delivery.high, delivery.low, delivery.ads)
        return np.asarray(delivery.shown_chances(falling[None])[0])

    def _plant(self, scores: Floats, order: Rows) -> None:
        """Work out how too little noise would distribute the transforms, from a few users."""
        if self.faults or self.delivery.is_slate or self.delivery.choice in UNPROTECTED:
            self.faults.setdefault("", None)
            return
        own, larger = (
            np.atleast_2d(self._chances(one, scores[:64], order[:64]))
            for one in (self.delivery, self.larger)
        )
        self.faults[""] = _place_fault(own, larger)

    def inspect(self, seen: SeenFrame) -> None:
        """Transform requests by the scores that they were made of."""
        truth = seen.truth
        if not isinstance(truth, RequestTruth):
            raise TypeError("Requests come with their scores.")
        places, reports = seen.in_order()
        if truth.scored is not None:
            lender = truth.lender[truth.users[places]]
            some = lender < len(truth.scored.scores)
            self._test(seen, truth, places[some], reports[some], lender[some])
        self._keep_witnesses(seen, truth, places, reports)

    def _test(
        self, seen: SeenFrame, truth: RequestTruth, places: Rows, reports: Reports, lender: Rows
    ) -> None:
        scored = truth.scored
        if scored is None or not len(places):
            return
        order = scored.order[lender]
        if self.delivery.choice is AdSelection.EXACT:
            see_equal(self.tests.table, "requests for others than the best", order[:, 0], reports)
            return
        source = self.source.child("request-inspection", seen.cohort, truth.day)
        draws = source.child(seen.frame.batch_id.hex()).generator().random((len(places), 2))
        values = self._transformed(reports, order, lender, scored.chances, draws)
        users, count = truth.users[places], len(truth.users)
        self.tests.see_frame(
            SeenUniforms(seen.cohort, truth.day, truth.size, count, users, places, values)
        )

    def _transformed(
        self, reports: Reports, order: Rows, lender: Rows, chances: Floats, draws: Floats
    ) -> Floats:
        if self.sets is not None:
            flags = np.zeros(order.shape, dtype=np.bool_)
            np.put_along_axis(flags, reports.astype(np.int64), True, axis=1)
            ordered = np.take_along_axis(flags, order, axis=1)
            return self.sets.see(self.tests, "a requested slate", ordered, draws)
        place = (order == reports[:, None]).argmax(axis=1)
        rows = chances if chances.ndim == 1 else chances[lender]
        values = place_uniforms(rows, place, draws[:, 0])
        self.tests.see("a request, by the order of scores", values, self.faults.get(""))
        return values[:, None]

    def _keep_witnesses(
        self, seen: SeenFrame, truth: RequestTruth, places: Rows, reports: Reports
    ) -> None:
        """Keep the first request of each witness that is in this frame."""
        pairs = truth.pairs
        first = np.searchsorted(truth.users, pairs.first)
        where = np.searchsorted(places, first)
        came = where < len(places)
        came[came] = places[where[came]] == first[came]
        if came.any():
            bits = pairs.swapped[came], pairs.unused[came]
            found = reports[where[came]], truth.inputs[came], truth.other[came], *bits
            self.witnesses[truth.day, seen.cohort, seen.frame.batch_id] = found

    def fit(self) -> FitResult:
        """Test everything that was counted; noise that has no epsilon cannot be too small."""
        found = self.tests.table.result()
        is_found = found.finds_planted or self.delivery.choice in UNPROTECTED
        return replace(found, finds_planted=is_found)

    def bounds(self) -> dict[str, LowerBound | None]:
        """Return what witnesses prove: audited, null, and with a planted fault."""
        if not self.witnesses:
            return dict.fromkeys(("audited", "null", "planted"))
        reports, inputs, other, swapped, unused = (
            np.concatenate(column)[: self._most_witnesses]
            for column in zip(
                *(self.witnesses[key] for key in sorted(self.witnesses)), strict=True
            )
        )
        again = self.larger.request(inputs, self.source.child("request-planted"))
        found = [
            np.where(swapped, -ratio, ratio)
            for ratio in self._log_ratios((reports, again), inputs, other)
        ]
        return summed_bounds(found[0], found[1], swapped, unused)

    @property
    def _most_witnesses(self) -> int:
        return MOST_NOISY if self.delivery.choice in NOISY else 1 << 20

    def _log_ratios(
        self, drawn: tuple[Reports, Reports], inputs: Floats, other: Floats
    ) -> list[Floats]:
        """Return ln P(request | other) - ln P(request | inputs) of several requests each."""
        each = np.arange(len(inputs))
        if self.sets is not None:
            best = [rows.argmax(axis=1)[:, None] for rows in (other, inputs)]
            return [
                self.sets.log_ratio(*((some == one).any(axis=1) for one in best)) for some in drawn
            ]
        chances = [_ad_chances(self.delivery, rows) for rows in (other, inputs)]
        return [np.log(chances[0][each, some]) - np.log(chances[1][each, some]) for some in drawn]


def _ad_chances(delivery: AdDelivery, scores: Floats) -> Floats:
    """Return the declared probability of each ad, for each row of scores."""
    mechanism = delivery.mechanism
    if not isinstance(mechanism, NoisyMax) or not isinstance(mechanism.noise, TwoSidedGeometric):
        return delivery.shown_chances(scores)
    span = delivery.high - delivery.low
    grid = np.rint((scores - delivery.low) * (delivery.steps / span)).astype(np.int64)
    return noisy_max_chances(mechanism.noise, grid, delivery.steps)


def _place_fault(own: Floats, larger: Floats) -> Distribution:
    """Return how transforms are distributed if places have other chances than declared.

    Args:
        own: The declared chances of places, one row for each of some users.
        larger: The chances as they are.
    """
    ends = [np.cumsum(np.pad(rows, ((0, 0), (1, 0))), axis=1) for rows in (own, larger)]

    def below(x: Floats) -> Floats:
        rows = [np.interp(x, one, other) for one, other in zip(*ends, strict=True)]
        return np.asarray(np.mean(rows, axis=0))

    return below
