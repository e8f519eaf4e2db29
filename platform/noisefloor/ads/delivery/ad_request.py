"""Delivery: how a device asks for an ad without saying what its owner likes.

A device scores the ads on its own and sends a request that was randomised; the server returns
what was requested. The guarantee is one request's. Every fresh request costs as much again; a
request that is kept and used again costs nothing more, and neither does whatever a device does
with the answer (see ``MemoisedRequests``). Not covered by any epsilon: that somebody asks, when,
how often, and from which address.

Scores outside [low, high] are clipped on the device, before anything else. The range is public
and chosen beforehand: one that is taken from the data would say something about them.

What private delivery is measured against: an ad at random, and the best ad in the open.

Requests that are drawn once an epoch and used until it ends.

A kept request is the same release, however often it is used: reuse is post-processing. A kept
slate may be ranked anew by fresh scores each time, because the ranking stays on the device.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from noisefloor import mechanisms
from noisefloor.ads.delivery import slates
from noisefloor.ads.delivery.request_kinds import ad_requests_kind, ad_slates_kind
from noisefloor.ads.delivery.shown_distribution import shown_chances
from noisefloor.checks import Array, Floats, blocks, check_finite, check_rows
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source
from noisefloor.wire import Kind


@dataclass(frozen=True, slots=True)
class RandomAd(mechanisms.SelectionMechanism):
    """Ask for an ad that is drawn without looking at anything.

    Guarantee:  pure DP, epsilon = 0: the request does not depend on the user.
    Neighbours: all of them (local model).
    Domain:     rows of reals in the range of ``scores``; others are refused.
    Reference:  none needed.
    """

    scores: mechanisms.ScoreGrid

    def randomise(self, values: object, source: Source) -> NDArray[np.unsignedinteger]:
        """Return the index of the ad each user asks for."""
        rows, picks = self.scores.check(values), source.stage("pick")
        reports = np.empty(len(rows), dtype=np.min_scalar_type(self.scores.size - 1))
        for some in blocks(len(rows)):
            reports[some] = picks.below(self.scores.size, len(reports[some]))
        return reports

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return zero."""
        return Guarantee(0.0, neighbours)

    def chances(self, value: object) -> Floats:
        """Return the chance of each ad: all alike."""
        return np.full(self.scores.size, 1 / self.scores.size)


@dataclass(frozen=True, slots=True)
class BestAd(mechanisms.SelectionMechanism):
    """Ask for the best ad, in the open: what an advertiser who tracks everybody gets.

    Guarantee:  none: the request is a function of the scores.
    Neighbours: none (local model).
    Domain:     rows of reals in the range of ``scores``; others are refused. Ties go to the first.
    Reference:  none needed.
    """

    scores: mechanisms.ScoreGrid

    def randomise(self, values: object, source: Source) -> NDArray[np.unsignedinteger]:
        """Return the index of the ad each user asks for; no coin is tossed."""
        places = slates.favourites_of(self.scores.check(values))
        return places.astype(np.min_scalar_type(self.scores.size - 1))

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return no guarantee, and why."""
        return Guarantee.none("the best ad is requested in the open", neighbours)

    def chances(self, value: object) -> Floats:
        """Return the chance of each ad: one for the best."""
        row = self.scores.check(np.asarray(value, dtype=np.float64)[None]).reshape(-1)
        return np.asarray(np.arange(len(row)) == row.argmax(), dtype=np.float64)

    def log_likelihood(self, reports: mechanisms.Reports, value: object) -> Floats:
        """Return 0 for the best ad and minus infinity for the others."""
        best = int(self.chances(value).argmax())
        return np.where(np.asarray(reports) == best, 0.0, -np.inf)


class AdSelection(Enum):
    """How a row of scores becomes a request."""

    PRINTED = "printed"  # the paper's: noisy max, Laplace noise of scale 1 / epsilon
    NOISY_MAX = "noisy-max"  # Laplace noise of the least scale that keeps epsilon
    EXPONENTIAL = "exponential"  # exponential mechanism
    PERMUTE_AND_FLIP = "permute-and-flip"
    ARGMAX = "argmax"  # k-ary response on the best ad
    TOP_SET = "top-set"  # response on the set of the best few
    SLATE = "slate"  # several ads around the favourite; the device shows the best of them
    RANDOM = "random"  # any ad: epsilon 0
    RANDOM_SLATE = "random-slate"  # any several ads: epsilon 0
    EXACT = "exact"  # the best ad in the open: no privacy


SLATES = frozenset({AdSelection.SLATE, AdSelection.RANDOM_SLATE})
"""Choices whose request does not say which ad was shown."""

DATA_INDEPENDENT = frozenset({AdSelection.RANDOM, AdSelection.RANDOM_SLATE})
"""Choices that do not look at the scores."""


class RequestMechanism(mechanisms.Mechanism, mechanisms.FiniteMechanism, Protocol):
    """A mechanism whose reports are requests, and can be listed."""

    @property
    def scores(self) -> mechanisms.ScoreGrid:
        """The declared range of the scores."""
        ...


@dataclass(frozen=True, slots=True)
class AdDelivery:
    """One way to ask for ads, for users who score them in [low, high].

    Guarantee:  that of the mechanism behind the choice, per fresh request: requests add up.
                PRINTED: the paper claims epsilon; up to 2 (high - low) epsilon is proved. RANDOM
                and RANDOM_SLATE: 0. EXACT: none.
    Neighbours: user: any row of scores to any other (local model).
    Domain:     rows of ``ads`` reals, clipped to [low, high] on the device; NaN is refused.
    Reference:  ads paper, section on delivery (PRINTED); the mechanisms name their own.

    Attributes:
        ads: Ads in the catalogue.
        epsilon: What is claimed of one request; RANDOM, RANDOM_SLATE and EXACT do not use it.
        choice: How a row of scores becomes a request.
        top: Size of the set of TOP_SET.
        slate: Ads per request of SLATE and RANDOM_SLATE.
        low: The least score.
        high: The greatest score.
        steps: Grid steps between them, for the choices that add noise to scores or weigh them.
        mechanism: What randomises the clipped scores.
    """

    ads: int
    epsilon: float
    choice: AdSelection
    top: int = 3
    slate: int = 5
    low: float = 0.0
    high: float = 1.0
    steps: int = 64
    mechanism: RequestMechanism = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if check_finite(self.epsilon, "epsilon") < 0:
            raise BadParameter("epsilon", self.epsilon, ">= 0")
        object.__setattr__(self, "mechanism", _MAKERS[self.choice](self))

    @property
    def scores(self) -> mechanisms.ScoreGrid:
        """The declared range of the scores."""
        return mechanisms.ScoreGrid(self.ads, self.low, self.high, self.steps)

    @property
    def is_slate(self) -> bool:
        """Whether a request is for several ads, and hides which of them was shown."""
        return self.choice in SLATES

    @property
    def kind(self) -> Kind:
        """The kind of frame that carries the requests, and nothing besides."""
        return (
            ad_slates_kind(self.ads, self.slate) if self.is_slate else ad_requests_kind(self.ads)
        )

    @property
    def claimed(self) -> Guarantee:
        """What is said of one request; for PRINTED, what the paper says."""
        if self.choice in DATA_INDEPENDENT or self.choice is AdSelection.EXACT:
            return self.guarantee()
        return Guarantee(self.epsilon, Neighbours.USER)

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return what is proved of one fresh request."""
        return self.mechanism.guarantee(neighbours)

    def request(self, scores: object, source: Source) -> mechanisms.Reports:
        """Return one request per user: an ad's index, or a row of indices for slates."""
        return self.mechanism.randomise(self.clipped(scores), source)

    def randomise(self, values: object, source: Source) -> mechanisms.Reports:
        """Return the requests: the name that the auditor knows them by."""
        return self.request(values, source)

    def shown(self, requests: mechanisms.Reports, scores: object) -> mechanisms.Reports:
        """Return the ad that each user sees: the requested one, or the best of the slate."""
        if not self.is_slate:
            return requests
        return slates.best_of(requests, self.clipped(scores))

    def ranked(
        self, requests: mechanisms.Reports, scores: object, slots: int
    ) -> mechanisms.Reports:
        """Return the ads for n slots of a page, the best first, out of one slate."""
        if not self.is_slate:
            raise BadParameter("choice", self.choice.value, "a slate, to fill several slots")
        return slates.ranked_slates(requests, self.clipped(scores), slots)

    def clipped(self, scores: object) -> Array:
        """Return the scores within the public range; only what has to be clipped is copied."""
        rows = check_rows(scores, "scores", self.ads)
        if not rows.size or rows.dtype.kind not in "iuf":
            return rows  # the mechanism refuses what is no number
        if rows.min().item() >= self.low and rows.max().item() <= self.high:
            return rows
        if rows.dtype.kind != "f":
            rows = rows.astype(np.float64)
        low, high = _inside(rows.dtype, self.low, np.inf), _inside(rows.dtype, self.high, -np.inf)
        return np.clip(rows, low, high)

    def _clipped_row(self, row: object) -> Array:
        return self.clipped(np.asarray(row, dtype=np.float64)[None]).reshape(-1)

    def chances(self, row: object) -> Floats:
        """Return the exact chance of each ad to be requested; for slates, to be in the slate."""
        clipped = self._clipped_row(row)
        if isinstance(self.mechanism, slates.FavouriteSlate | slates.RandomSlate):
            return self.mechanism.chances(clipped)
        return np.asarray(np.exp(self.mechanism.log_likelihood(np.arange(self.ads), clipped)))

    def log_likelihood(self, requests: mechanisms.Reports, row: Any) -> Floats:
        """Return the exact ln P(request | row of scores)."""
        return self.mechanism.log_likelihood(requests, self._clipped_row(row))

    def tally(self, requests: mechanisms.Reports) -> mechanisms.Tally:
        """Return how many requests each ad is in: the impressions, if a request is for one ad."""
        return self.mechanism.tally(requests)

    def estimate(self, tally: mechanisms.Tally, n: int) -> mechanisms.Estimate:
        """Return what the mechanism says of n users' tastes: its own docstring tells what."""
        return self.mechanism.estimate(tally, n)

    def outputs(self) -> mechanisms.Reports:
        """Return every request; refused when there are too many to list."""
        return self.mechanism.outputs()

    def worst_pairs(self, neighbours: Neighbours = Neighbours.USER) -> list[tuple[Any, Any]]:
        """Return rows of scores among which the largest ratio is reached."""
        return list(self.mechanism.worst_pairs(neighbours))

    def worst_pair(self) -> tuple[Any, Any]:
        """Return the two rows of scores that one request tells apart best."""
        pairs = self.worst_pairs()
        # Ties go to the first ad, so the extremes are the first ad's pair and the last one's.
        ends = [(pairs[0], 0), (pairs[-1], self.ads - 1)]
        if len(pairs) == 1 or self.choice in DATA_INDEPENDENT or self.choice is AdSelection.EXACT:
            return pairs[0]
        return max(ends, key=lambda end: self._ratio(*end))[0]

    def _ratio(self, pair: tuple[Any, Any], ad: int) -> float:
        one, other = (self.log_likelihood(np.array([ad]), row) for row in pair)
        return float(abs(one - other)[0])

    def shown_chances(self, scores: object) -> Floats:
        """Return the exact chance of each ad to be shown, for each row of scores."""
        return shown_chances(self.mechanism, self.mechanism.scores.check(self.clipped(scores)))


def _inside(dtype: np.dtype[Any], bound: float, inwards: float) -> Any:
    """Return the bound as the type holds it, rounded to the inside of the range."""
    with np.errstate(over="ignore"):
        near = dtype.type(bound)
    is_outside = float(near) < bound if inwards > 0 else float(near) > bound
    return np.nextafter(near, dtype.type(inwards)) if is_outside else near


def _printed(delivery: AdDelivery) -> RequestMechanism:
    span = delivery.high - delivery.low
    noise = mechanisms.printed_noisy_max(
        delivery.ads, delivery.epsilon, high=span, steps=delivery.steps
    )
    return mechanisms.NoisyMax(delivery.scores, noise.noise)


def _range(delivery: AdDelivery) -> dict[str, float]:
    return {"low": delivery.low, "high": delivery.high}


_MAKERS: Mapping[AdSelection, Callable[[AdDelivery], RequestMechanism]] = MappingProxyType(
    {
        AdSelection.PRINTED: _printed,
        AdSelection.NOISY_MAX: lambda it: mechanisms.NoisyMax.laplace(
            it.ads, it.epsilon, low=it.low, high=it.high, steps=it.steps
        ),
        AdSelection.EXPONENTIAL: lambda it: mechanisms.ExponentialMechanism(
            it.ads, it.epsilon, it.low, it.high, it.steps
        ),
        AdSelection.PERMUTE_AND_FLIP: lambda it: mechanisms.PermuteAndFlip(
            it.ads, it.epsilon, it.low, it.high, it.steps
        ),
        AdSelection.ARGMAX: lambda it: mechanisms.ArgmaxResponse(it.ads, it.epsilon, **_range(it)),
        AdSelection.TOP_SET: lambda it: mechanisms.TopSetResponse(
            it.ads, it.epsilon, it.top, **_range(it)
        ),
        AdSelection.SLATE: lambda it: slates.FavouriteSlate(
            it.ads, it.epsilon, it.slate, **_range(it)
        ),
        AdSelection.RANDOM: lambda it: RandomAd(it.scores),
        AdSelection.RANDOM_SLATE: lambda it: slates.RandomSlate(it.ads, it.slate, **_range(it)),
        AdSelection.EXACT: lambda it: BestAd(it.scores),
    }
)


@dataclass(frozen=True, slots=True, eq=False)
class MemoisedRequests:
    """One epoch's requests of some users, as their devices remember them.

    Attributes:
        delivery: How they were drawn.
        requests: One per user, in the users' order.
    """

    delivery: AdDelivery
    requests: mechanisms.Reports

    @classmethod
    def draw(cls, delivery: AdDelivery, scores: object, source: Source) -> "MemoisedRequests":
        """Draw the epoch's requests: the only step that costs anything."""
        return cls(delivery, delivery.request(scores, source))

    def shown(self, scores: object) -> mechanisms.Reports:
        """Return the ad that each user sees now, by the scores of now."""
        return self.delivery.shown(self.requests, scores)

    def ranked(self, scores: object, slots: int) -> mechanisms.Reports:
        """Return the ads for n slots of a page now, out of the kept slate."""
        return self.delivery.ranked(self.requests, scores, slots)

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return what is proved of the whole epoch: one request, however often it is used."""
        return self.delivery.guarantee(neighbours)


@dataclass(frozen=True, slots=True)
class Utility:
    """One row of the table.

    Attributes:
        choice: How ads are asked for.
        claimed: The epsilon that is said of one request.
        proved: The epsilon that is proved of it.
        top_one: How often the best ad is shown.
        expected_score: The mean score of the ad that is shown.
    """

    choice: AdSelection
    claimed: float
    proved: float
    top_one: float
    expected_score: float


def utility_of(delivery: AdDelivery, rows: object) -> Utility:
    """Return what a way of delivery is worth to these users, on average."""
    scores, chances = delivery.clipped(rows), delivery.shown_chances(rows)
    best = np.take_along_axis(chances, scores.argmax(axis=1)[:, None], axis=1)
    return Utility(
        delivery.choice,
        delivery.claimed.epsilon,
        delivery.guarantee().epsilon,
        float(best.mean()),
        float((chances * scores).sum(axis=1).mean()),
    )
