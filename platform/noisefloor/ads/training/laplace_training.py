"""Training by noisy gradients, the ads paper's first version: every ad's gradient in each round.

It costs a factor of rounds times ads in the bits and again in the noise; what it can learn from
how many users it takes is given by ``gradient_deviation`` and ``users_needed``.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import product_up, sum_up
from noisefloor.ads.training.columns import gradient_noise_kind
from noisefloor.ads.training.factorisation import AdModel, Ratings, Single, random_model
from noisefloor.ads.training.gradient_noise import GradientBound, GradientReport
from noisefloor.ads.training.rounds import (
    Broadcast,
    RoundReports,
    SamplingKeys,
    check_settings,
    first_step_length,
    gradient_step,
    update_tastes,
)
from noisefloor.checks import blocks, check_count, check_finite
from noisefloor.errors import BadParameter, OutOfDomain
from noisefloor.mechanisms import Tally
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source
from noisefloor.wire import Kind

_MOST_RATE = 5.0
"""A rate at which steps settle even if everybody rated every ad."""

_ROUNDING = 1e-5
"""Factors of a broadcast may pass the unit ball by this, for single precision."""


@dataclass(frozen=True, slots=True)
class LaplaceTraining:
    """Learn the ads' model from noisy gradients of all ads, in every round.

    Guarantee:  pure DP, ``rounds`` times that of one report, by sequential composition. As
                printed it is more than claimed where the dimension is small, and nothing if
                tastes are not bounded.
    Neighbours: user: all ratings and the taste of one user become anything else (local model).
    Domain:     PRINTED and bounded: held ratings in [0, 1], and a broadcast whose factors lie in
                the unit ball; others are refused. The other forms clip and assume nothing.
    Reference:  ads paper, version 1 of private matrix factorisation.

    Attributes:
        ads: Ads in the catalogue.
        dimension: Latent factors.
        rounds: How often devices report.
        epsilon_bits: For which ads are rated, over all rounds.
        epsilon_values: For the gradients, over all rounds.
        form: What bounds a gradient before noise.
        clip: Of the forms that clip.
        bounded: Whether tastes and factors are kept in unit balls; the paper does not say so.
        rate: Step length of the server in the first round, falling linearly; None follows
            ``rate_for``.
        weight: Pull of the factors (and of tastes that take steps) towards 0.
        local: How the taste is updated: "ridge" or "step".
        seed: Of the untrained model.
        centre: Of the rating scale.
        ridge: Weight of the local ridge regression.
        taste_rate: Length of a local gradient step.
    """

    ads: int
    dimension: int
    rounds: int
    epsilon_bits: float
    epsilon_values: float
    form: GradientBound = GradientBound.COORDINATE
    clip: float = 1.0
    bounded: bool = True
    rate: float | None = None
    weight: float = 0.002
    local: str = "ridge"
    seed: int = 0
    centre: float = 0.5
    ridge: float = 0.1
    taste_rate: float = 0.1
    noise: GradientReport = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_settings(
            local=self.local,
            rate=self.rate,
            centre=self.centre,
            weight=self.weight,
            ridge=self.ridge,
            taste_rate=self.taste_rate,
        )
        report = GradientReport(
            self.ads,
            self.dimension,
            self.rounds,
            self.epsilon_bits,
            self.epsilon_values,
            self.form,
            clip=self.clip,
            bounded=self.bounded,
            spread=max(self.centre, 1 - self.centre),
        )
        object.__setattr__(self, "noise", report)

    @property
    def claimed(self) -> Guarantee:
        """What is said of a user who takes part in everything."""
        return Guarantee(sum_up([self.epsilon_bits, self.epsilon_values]), Neighbours.USER)

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return what follows from the weights as rounded, for all rounds."""
        one = self.noise.guarantee(neighbours)
        return Guarantee(product_up(one.epsilon, self.rounds), neighbours, reason=one.reason)

    def cost(self, number: int) -> Guarantee:
        """Return what one report is said to cost."""
        return self.noise.claimed

    def kind(self, number: int) -> Kind:
        """Return the kind of frame, the same in all rounds."""
        return gradient_noise_kind(self.ads, self.dimension)

    def start(self) -> Broadcast:
        """Return the untrained model."""
        return Broadcast(random_model(self.ads, self.dimension, self.seed, centre=self.centre))

    def reporters(self, number: int, sampling_keys: SamplingKeys) -> NDArray[np.bool_]:
        """Return everybody."""
        return np.ones(len(sampling_keys), dtype=np.bool_)

    def report(
        self, number: int, sent: Broadcast, tastes: Single, ratings: Ratings, source: Source
    ) -> RoundReports:
        """Update tastes in place, and return every user's noisy gradients of all ads."""
        self._check_bounds(sent.model, ratings)
        update_tastes(
            sent.model,
            tastes,
            ratings,
            local=self.local,
            ridge=self.ridge,
            rate=self.taste_rate,
            weight=self.weight,
            radius=self._radius,
        )
        respond = self.noise.sampler(source)
        reports = np.empty((len(ratings), self.ads, 1 + self.dimension), dtype=np.int32)
        clipped, values, squares = 0, 0, 0.0
        for rows in blocks(len(ratings), self.ads * self.dimension):
            true = self.noise.check(gradients(sent.model, tastes[rows], ratings[rows]))
            reports[rows] = respond(true)
            clipped += self._clipped(true[:, :, 1:])
            values += len(true) if self.form is GradientBound.BLOCK else true[:, :, 1:].size
            squares += float(np.sum(np.square(true[:, :, 1:], dtype=np.float64)))
        norm = math.sqrt(squares / max(1, len(ratings) * self.ads * self.dimension))
        return RoundReports(reports, clipped=clipped, values=values, norm=norm)

    @property
    def _radius(self) -> float:
        return 1.0 if self.bounded else math.inf

    def _check_bounds(self, model: AdModel, ratings: Ratings) -> None:
        """Refuse what the proof of the printed form does not cover: nobody has to trust it."""
        if self.form is not GradientBound.PRINTED or not self.bounded:
            return
        norms = np.linalg.norm(model.factors.astype(np.float64), axis=1)
        if not norms.max(initial=0.0) <= 1 + _ROUNDING or model.offsets.any():
            raise BadParameter("factors", "<array>", "within the unit ball, and no offsets")
        if model.centre != self.centre:
            raise BadParameter("centre", model.centre, f"to be {self.centre}")
        for rows in blocks(len(ratings), self.ads):
            kept = ratings.rating[rows][ratings.rated[rows]]
            if kept.size and not (kept.min() >= 0 and kept.max() <= 1):
                raise OutOfDomain("Expected ratings in [0, 1].")

    def _clipped(self, true: NDArray[np.float32]) -> int:
        """Return how many numbers, or blocks, lie beyond the clip."""
        if self.form is GradientBound.PRINTED:
            return 0
        size = np.abs(true)
        if self.form is GradientBound.BLOCK:
            size = size.sum(axis=(1, 2))
        return int(np.count_nonzero(size > self.clip))

    def update(self, number: int, sent: Broadcast, tally: Tally, n: int) -> Broadcast:
        """Take one step along the gradient that the reports estimate."""
        slope = self.noise.estimate(tally, n).value.reshape(self.ads, self.dimension)
        rate = self.rate_for(n) * (1 - number / self.rounds)
        return Broadcast(gradient_step(sent.model, slope, rate, self.weight, radius=self._radius))

    def gradient_deviation(self, n: int) -> float:
        """Return the standard deviation of one number of the mean gradient of n users.

        About (k m / epsilon_bits) times sqrt(2) times the scale of the noise, over sqrt(n).
        """
        return self.noise.deviation(check_count(n, "n", most=1 << 62))

    def users_needed(self, deviation: float) -> int:
        """Return how many users it takes until the mean gradient has that deviation."""
        if check_finite(deviation, "deviation") <= 0:
            raise BadParameter("deviation", deviation, "> 0")
        return math.ceil((self.gradient_deviation(1) / deviation) ** 2)

    def rate_for(self, n: int) -> float:
        """Return the server's step length in the first round, for rounds of n reports."""
        if self.rate is not None:
            return self.rate
        return first_step_length(self.gradient_deviation(n), self.rounds, _MOST_RATE)


def gradients(model: AdModel, tastes: Single, ratings: Ratings) -> Single:
    """Return, for each user and ad, whether it is rated and the gradient of its factors.

    The gradient of an ad that is not rated is 0: the paper leaves open what is sent there.
    """
    model.check(tastes, ratings)
    error = ratings.above(model.predict(tastes))
    rows = np.empty((*error.shape, 1 + model.dimension), dtype=np.float32)
    rows[:, :, 0] = ratings.rated
    np.multiply(-2 * error[:, :, None], tastes[:, None, :], out=rows[:, :, 1:])
    return rows
