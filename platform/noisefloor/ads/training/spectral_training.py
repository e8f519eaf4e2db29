"""Spectral training: everybody reports once, and the server reads the factors off two moments.

Users are split by lot into three groups. The first tells which ads it rated, the second how it
rated them, the third, knowing both, along which axis its ratings vary. Each report is the whole
of a user's part, so that it takes the whole epsilon; nothing is learned by steps.
"""

import math
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from noisefloor import mechanisms
from noisefloor.ads.training import spectral_estimation
from noisefloor.ads.training.columns import sign_pair_kind
from noisefloor.ads.training.factorisation import AdModel, Ratings, Single
from noisefloor.ads.training.rounds import Broadcast, RoundReports, SamplingKeys
from noisefloor.checks import blocks, check_count, check_epsilon, check_finite
from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source
from noisefloor.wire import Kind, bit_vector_kind

Bits = NDArray[np.bool_]

RATED_BITS = "rated-bits"
"""The kind of frame that says which ads were rated."""

RATING_DIRECTIONS = "rating-directions"
"""The kind of frame that says how ads were rated."""

RATING_AXES = "rating-axes"
"""The kind of frame that says along which axis ratings vary."""

LEAST_ADS, MOST_ADS = 3, 256
"""Of which axes can be told apart."""

FORMS = ("full", "lite")
"""How the third group reports: by the best of many candidates, or by one bit about one product."""

_SPREAD_ABOVE = 2.5
"""Above this epsilon few ratings would drive a report to its bound: they are spread first."""

_MOST_ROWS = 128
"""More candidates would gain a few percent above epsilon 6, for twice the work."""

_LITE_LEAN = 0.69
"""Mean size of a lite product over its root mean square: 2 / pi = 0.64 for n ratings that
both factors are normal, 0.71 for two."""

_COUNT_WEIGHT = 0.05
"""Length of the place that counts ratings, for a user with as many as expected."""

_LARGEST_FACTOR = 100.0
"""No honest factor comes near it. Reports that do not follow their distribution may give larger
ones, with which a device could not solve its regression in single precision."""

_LEAST_SPREAD, _MOST_SPREAD = 0.1, 0.5
"""Root mean squares of ratings around the centre that are believed."""


def rated_bits_kind(size: int) -> Kind:
    """Make the kind of reports of ``size`` signs on which ads were rated."""
    return bit_vector_kind(RATED_BITS, size)


def rating_directions_kind(size: int) -> Kind:
    """Make the kind of reports of ``size`` signs on ratings."""
    return bit_vector_kind(RATING_DIRECTIONS, size)


def rating_axes_kind(size: int) -> Kind:
    """Make the kind of reports of ``size`` signs that are summed pair by pair."""
    return sign_pair_kind(RATING_AXES, size)


@dataclass(frozen=True, slots=True)
class SpectralTraining:
    """Learn rates, offsets and factors of ads from one report of each user.

    Guarantee:  pure DP, epsilon: each user reports in one round only, which lots decide that no
                data touch; the largest of the three mechanisms' guarantees.
    Neighbours: user: all ratings of a user to any others (local model).
    Domain:     ratings in [0, 1]; what is not rated does not count.
    Reference:  the groups and moments are our own; see LeaningSigns, LeaningAxis and spectrum.

    Attributes:
        ads: Ads in the catalogue.
        dimension: The most latent factors; fewer are used where the noise hides them.
        epsilon: What each user spends, once.
        shares: Parts of the users that tell rated ads, ratings and axes; they sum to 1. Where the
            last is 0, one mean for each ad is all that is learned.
        form: Of the third group: "full", or "lite" for devices that cannot rank candidates.
        ridge: Weight of the device's ridge regression that the factors are scaled for.
        centre: The middle of the rating scale.
    """

    ads: int
    dimension: int
    epsilon: float
    shares: tuple[float, float, float] = (0.05, 0.15, 0.8)
    form: str = "full"
    ridge: float = 0.1
    centre: float = 0.5
    rated: mechanisms.DirectionSigns = field(init=False, repr=False)
    directions: mechanisms.DirectionSigns = field(init=False, repr=False)
    axes: mechanisms.AxisSigns = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_count(self.ads, "ads", least=LEAST_ADS, most=MOST_ADS)
        check_count(self.dimension, "dimension", most=self.ads - 1)
        epsilon = check_epsilon(self.epsilon)
        if self.form not in FORMS:
            raise BadParameter("form", self.form, f"one of {', '.join(FORMS)}")
        if (
            min(self.shares[:2]) <= 0
            or self.shares[2] < 0
            or not math.isclose(sum(self.shares), 1)
        ):
            raise BadParameter("shares", self.shares, "three parts that sum to 1, the last >= 0")
        if check_finite(self.ridge, "ridge") <= 0:
            raise BadParameter("ridge", self.ridge, "> 0")
        if not 0 <= check_finite(self.centre, "centre") <= 1:
            raise BadParameter("centre", self.centre, "in [0, 1]")
        rows = min(mechanisms.rows_for(epsilon, _MOST_ROWS), _MOST_ROWS)
        # At least as many places as candidates, or large products come too seldom.
        wide = max(rows, 1 << self.ads.bit_length())
        axes = mechanisms.AxisSigns(
            self.ads, epsilon, wide if self.is_spread else 0, max(rows, wide)
        )
        object.__setattr__(self, "rated", mechanisms.DirectionSigns(self.ads, epsilon, wide, rows))
        object.__setattr__(
            self, "directions", mechanisms.DirectionSigns(self.ads + 1, epsilon, wide, rows)
        )
        object.__setattr__(self, "axes", axes)

    @property
    def is_spread(self) -> bool:
        """Whether the third group's vectors are spread before they are reported."""
        return self.epsilon > _SPREAD_ABOVE

    @property
    def rounds(self) -> int:
        """One for each group that has users."""
        return 2 if self.is_means else 3

    @property
    def is_means(self) -> bool:
        """Whether nobody reports axes: the model is then one mean for each ad."""
        return self.shares[2] == 0

    @property
    def bit(self) -> mechanisms.BinaryResponse:
        """What protects a lite report."""
        return mechanisms.BinaryResponse(self.epsilon)

    @property
    def claimed(self) -> Guarantee:
        """What is said of a user: epsilon, once."""
        return Guarantee(self.epsilon, Neighbours.USER)

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return the largest guarantee of the three rounds: nobody reports in two."""
        if neighbours not in (Neighbours.ITEM, Neighbours.USER):
            return Guarantee.none(f"no proof for {neighbours.value} neighbours", neighbours)
        worst = max(self.cost(number).epsilon for number in range(self.rounds))
        return Guarantee(worst, neighbours)

    def cost(self, number: int) -> Guarantee:
        """Return what a round's report costs."""
        lite = number == 2 and self.form == "lite"
        mechanism = self.bit if lite else (self.rated, self.directions, self.axes)[number]
        return mechanism.guarantee(Neighbours.USER)

    def kind(self, number: int) -> Kind:
        """Return the kind of frame of a round; each has its own."""
        if number == 0:
            return rated_bits_kind(self.rated.length)
        if number == 1:
            return rating_directions_kind(self.directions.length)
        return rating_axes_kind(2 * self.ads if self.form == "lite" else self.axes.length)

    def start(self) -> Broadcast:
        """Return a model that knows nothing."""
        factors = np.zeros((self.ads, self.dimension), dtype=np.float32)
        return Broadcast(AdModel(self.centre, np.zeros(self.ads, dtype=np.float32), factors))

    def reporters(self, number: int, sampling_keys: SamplingKeys) -> Bits:
        """Return the group that reports in a round."""
        ends = [round(end * (1 << 32)) for end in accumulate(self.shares)]
        # The last bound is fixed: rounded shares may not leave anybody out.
        bounds = [0, *ends[: self.rounds - 1], 1 << 32]
        wide = sampling_keys.astype(np.uint64)
        return np.asarray((wide >= bounds[number]) & (wide < bounds[number + 1]))

    def report(
        self, number: int, sent: Broadcast, tastes: Single, ratings: Ratings, source: Source
    ) -> RoundReports:
        """Return the protected reports of a round; tastes wait for the model."""
        sent.model.check(tastes, ratings)
        if number == 0:
            return RoundReports(self.rated.randomise(self._rated_vectors(ratings), source))
        if number == 1:
            return RoundReports(self.directions.randomise(self._directions(sent, ratings), source))
        above = ratings.above(sent.model.base)
        if self.form == "lite":
            return RoundReports(self._lite(above, source))
        return RoundReports(self.axes.randomise(above, source))

    def _rated_vectors(self, ratings: Ratings) -> Single:
        """Return plus or minus one for each ad, as a unit vector."""
        size = np.float32(1 / math.sqrt(self.ads))
        return np.where(ratings.rated, size, -size)

    def _directions(self, sent: Broadcast, ratings: Ratings) -> Single:
        """Return unit vectors of the ratings above the centre and of their number.

        The number tells by how much vectors were shortened: without it, their mean would be known
        only up to a factor.
        """
        base = np.full(self.ads, self.centre, dtype=np.float32)
        rows = np.empty((len(ratings), self.ads + 1), dtype=np.float32)
        rows[:, :-1] = ratings.above(base)
        rows[:, -1] = self._count_weight(_rates(sent, self.ads)) * ratings.rated.sum(axis=1)
        norm = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        # A user without ratings has a row of zeros, and keeps it.
        rows /= np.maximum(norm, np.float32(1e-9))[:, None]
        return rows

    def _count_weight(self, rates: spectral_estimation.Floats) -> np.float32:
        return np.float32(_COUNT_WEIGHT / math.sqrt(float(rates.sum())))

    def _lite(self, above: Single, source: Source) -> Bits:
        """Return two rows of signs, the second turned by the protected sign of one product.

        The product is that of the ratings' pairs with the signs' pairs; the signs are draws.
        """
        firsts, seconds, flips = (source.stage(name) for name in ("first", "second", "flip"))
        reports = np.empty((len(above), 2 * self.ads), dtype=np.bool_)
        for some in blocks(len(above), 2 * self.ads):
            rows = above[some]
            first = mechanisms.draw_signs(firsts, len(rows), self.ads)
            second = mechanisms.draw_signs(seconds, len(rows), self.ads)
            one, other = np.where(first, rows, -rows), np.where(second, rows, -rows)
            both = np.einsum("ij,ij->i", one, other)
            lean = one.sum(axis=1) * other.sum(axis=1) >= both
            lean ^= flips.bernoulli(self.bit.flip, len(rows))
            reports[some] = np.concatenate([first, second ^ ~lean[:, None]], axis=1)
        return reports

    def update(self, number: int, sent: Broadcast, tally: mechanisms.Tally, n: int) -> Broadcast:
        """Return the next broadcast; a round without reports teaches nothing."""
        if not n:
            return sent
        if number == 0:
            return Broadcast(sent.model, self._learn_rates(tally, n))
        rates = _rates(sent, self.ads)
        learn = self._learn_offsets if number == 1 else self._learn_factors
        return Broadcast(learn(sent.model, rates, tally, n), sent.rates)

    def _learn_rates(self, tally: mechanisms.Tally, n: int) -> Single:
        found = self.rated.estimate(tally, n)
        half = math.sqrt(self.ads) / 2
        rates = spectral_estimation.plausible_rates(
            0.5 + half * found.value, half * found.standard_error
        )
        return rates.astype(np.float32)

    def _learn_offsets(
        self, model: AdModel, rates: spectral_estimation.Floats, tally: mechanisms.Tally, n: int
    ) -> AdModel:
        """Divide the mean of unit vectors by what a rating adds to it on average."""
        found = self.directions.estimate(tally, n)
        expected = float(rates.sum())
        usual = 1 / math.sqrt(expected)
        # Of a user's ratings, the part of all that stands for one: mean k / length over mean k.
        inverse = float(found.value[-1]) / float(self._count_weight(rates)) / expected
        inverse = min(max(inverse, usual / _MOST_SPREAD), usual / _LEAST_SPREAD)
        unit = rates * inverse * spectral_estimation.mean_share(rates)
        offsets = spectral_estimation.shrunk_to_mean(
            found.value[:-1] / unit, found.standard_error[:-1] / unit
        )
        clipped = np.clip(offsets, -self.centre, 1 - self.centre).astype(np.float32)
        return AdModel(model.centre, clipped, model.factors)

    def axes_gain(self, n: int) -> tuple[float, float]:
        """Return by how much n reports lean towards an axis, and the noise of one moment."""
        if self.form == "lite":
            return _LITE_LEAN * (1 - 2 * self.bit.flip / ONE), math.sqrt(0.5 / n)
        return self.axes.gain, math.sqrt(1 / n)

    def _learn_factors(
        self, model: AdModel, rates: spectral_estimation.Floats, tally: mechanisms.Tally, n: int
    ) -> AdModel:
        is_lite = self.form == "lite"
        moments = _cross_moments(tally, n, self.ads) if is_lite else self.axes.moments(tally, n)
        gain, noise = self.axes_gain(n)
        spread = self.is_spread and self.form == "full"
        factors = spectral_estimation.factors_of(
            moments, self.dimension, noise, gain=gain, rates=rates, spread=spread
        )
        factors = spectral_estimation.for_ridge(factors, rates, self.ridge)
        factors = np.clip(factors, -_LARGEST_FACTOR, _LARGEST_FACTOR)
        return AdModel(model.centre, model.offsets, factors.astype(np.float32))


def _rates(sent: Broadcast, ads: int) -> spectral_estimation.Floats:
    """Return the rates that were broadcast, or a half where none were learned."""
    return np.full(ads, 0.5) if sent.rates is None else np.asarray(sent.rates, dtype=np.float64)


def _cross_moments(tally: mechanisms.Tally, n: int, ads: int) -> spectral_estimation.Floats:
    """Return the mean of a_i b_j, made symmetric, from how often 2 * ads signs agree."""
    square = np.zeros((2 * ads, 2 * ads))
    square[np.triu_indices(2 * ads, 1)] = 2 * np.asarray(tally) / n - 1
    cross = square[:ads, ads:]
    return np.asarray((cross + cross.T) / 2)
