"""Training by sampled bits, the ads paper's second version: one bit about one number per round.

In each round a device updates its taste, draws one cell of the model without looking at its data,
and sends one randomised bit about its own gradient there. The noise grows with the clip: at the
printed clip of 1 it drowns what a million users say, while a clip far below the usual gradient
keeps most of what its sign tells.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import product_up
from noisefloor.ads.training import factorisation
from noisefloor.ads.training.rounds import (
    Broadcast,
    RoundReports,
    SamplingKeys,
    check_settings,
    epsilon_share,
    first_step_length,
    gradient_step,
    update_tastes,
)
from noisefloor.checks import check_count
from noisefloor.mechanisms import SampledBit, Tally
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source
from noisefloor.wire import Kind, symbol_kind

GRADIENT_BITS = "gradient-bits"
"""The kind of frame that carries one bit about one cell of the model."""

_MOST_MOVE = 2.0
"""How far one round may move a factor if every report were one and the same clipped value."""

_STABLE = 5.0
"""A rate at which steps settle without any clipping, even if everybody rated every ad."""


def gradient_bits_kind(size: int) -> Kind:
    """Make the kind of reports of a bit about one of ``size`` cells."""
    return symbol_kind(GRADIENT_BITS, 2 * size)


@dataclass(frozen=True, slots=True)
class BitTraining:
    """Learn the ads' model from one randomised bit per user and round.

    Guarantee:  pure DP, ``rounds`` times that of one bit at epsilon / rounds, by sequential
                composition, which holds although later rounds depend on earlier reports. With
                ``once`` each user sends one bit in all, at epsilon.
    Neighbours: user: all ratings and the taste of one user become anything else (local model).
    Domain:     any ratings; gradients are clipped, so that nothing is assumed of them.
    Reference:  ads paper, version 2 of private matrix factorisation.

    Attributes:
        ads: Ads in the catalogue.
        dimension: Latent factors.
        epsilon: For a user who takes part in every round.
        rounds: How often devices report.
        clip: Gradients are clipped to [-clip, clip]; 1 as printed.
        rate: Step length of the server in the first round; None follows ``rate_for``. It falls
            linearly, so that the last rounds average over the noise of the first.
        weight: Pull of the factors (and of tastes that take steps) towards 0.
        local: How the taste is updated: "ridge" or "step".
        once: Whether a user reports in one round only, drawn by lot.
        seed: Of the untrained model.
        centre: Of the rating scale.
        offsets: Whether offsets of ads are trained; as printed there are none.
        ridge: Weight of the local ridge regression.
        taste_rate: Length of a local gradient step.
    """

    ads: int
    dimension: int
    epsilon: float
    rounds: int
    clip: float = 1.0
    rate: float | None = None
    weight: float = 0.002
    local: str = "ridge"
    once: bool = False
    seed: int = 0
    centre: float = 0.5
    offsets: bool = True
    ridge: float = 0.1
    taste_rate: float = 0.1
    bit: SampledBit = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_count(self.ads, "ads", most=1 << 16)
        check_count(self.dimension, "dimension", most=1 << 10)
        check_count(self.rounds, "rounds", most=1 << 16)
        check_settings(
            local=self.local,
            rate=self.rate,
            centre=self.centre,
            clip=self.clip,
            weight=self.weight,
            ridge=self.ridge,
            taste_rate=self.taste_rate,
        )
        share = epsilon_share(self.epsilon, 1 if self.once else self.rounds)
        object.__setattr__(self, "bit", SampledBit(self.cells, share))

    @property
    def width(self) -> int:
        """Numbers per ad: its factors, and its offset if that is trained."""
        return self.dimension + self.offsets

    @property
    def cells(self) -> int:
        """Numbers in the model, of which a report is about one."""
        return self.ads * self.width

    @property
    def claimed(self) -> Guarantee:
        """What is said of a user who takes part in everything."""
        return Guarantee(self.epsilon, Neighbours.USER)

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return what follows from the bit's weights as rounded."""
        one = self.bit.guarantee(neighbours)
        times = 1 if self.once else self.rounds
        return Guarantee(product_up(one.epsilon, times), neighbours, reason=one.reason)

    def cost(self, number: int) -> Guarantee:
        """Return what one report costs: that of the bit."""
        return self.bit.guarantee(Neighbours.USER)

    def kind(self, number: int) -> Kind:
        """Return the kind of frame, the same in all rounds."""
        return gradient_bits_kind(self.cells)

    def start(self) -> Broadcast:
        """Return the untrained model."""
        return Broadcast(
            factorisation.random_model(self.ads, self.dimension, self.seed, centre=self.centre)
        )

    def reporters(self, number: int, sampling_keys: SamplingKeys) -> NDArray[np.bool_]:
        """Return everybody, or with ``once`` those whose lot is this round."""
        if not self.once:
            return np.ones(len(sampling_keys), dtype=np.bool_)
        return np.asarray(sampling_keys % np.uint32(self.rounds) == number)

    def report(
        self,
        number: int,
        sent: Broadcast,
        tastes: factorisation.Single,
        ratings: factorisation.Ratings,
        source: Source,
    ) -> RoundReports:
        """Update tastes in place, and return one cell and bit per user."""
        self.update_tastes(sent.model, tastes, ratings)
        cells = self.bit.choose(len(ratings), source)
        values = self.gradients(sent.model, tastes, ratings, cells)
        clipped = int(np.count_nonzero(np.abs(values) > self.clip))
        square = float(np.einsum("i,i->", values, values, dtype=np.float64))
        np.clip(values / np.float32(self.clip), -1.0, 1.0, out=values)
        reports = self.bit.answer(cells, values, source)
        norm = math.sqrt(square / max(1, len(values)))
        return RoundReports(reports, clipped=clipped, values=len(values), norm=norm)

    def update_tastes(
        self,
        model: factorisation.AdModel,
        tastes: factorisation.Single,
        ratings: factorisation.Ratings,
    ) -> None:
        """Update tastes in place, as devices do before they report."""
        update_tastes(
            model,
            tastes,
            ratings,
            local=self.local,
            ridge=self.ridge,
            rate=self.taste_rate,
            weight=self.weight,
        )

    def gradients(
        self,
        model: factorisation.AdModel,
        tastes: factorisation.Single,
        ratings: factorisation.Ratings,
        cells: NDArray[np.uint32],
    ) -> factorisation.Single:
        """Return each user's gradient in one cell of the model; 0 if the ad is not rated."""
        model.check(tastes, ratings)
        values, base = np.empty(len(cells), dtype=np.float32), model.base
        for rows in factorisation.user_blocks(len(cells)):
            ad, place = np.divmod(cells[rows].astype(np.intp), self.width)
            some, near, own = ratings[rows], tastes[rows], np.arange(len(ad))
            error = some.rating[own, ad] - base[ad]
            error -= np.einsum("ij,ij->i", near, model.factors[ad])
            # An offset is a factor for which everybody has the taste 1.
            taste = near[own, np.minimum(place, self.dimension - 1)]
            taste[place == self.dimension] = 1.0
            values[rows] = np.where(some.rated[own, ad], -2 * taste * error, 0)
        return values

    def update(self, number: int, sent: Broadcast, tally: Tally, n: int) -> Broadcast:
        """Take one step along the gradient that the reports estimate."""
        slope = self.clip * self.bit.estimate(tally, n).value.reshape(self.ads, self.width)
        rate = self.rate_for(n) * (1 - number / self.rounds)
        return Broadcast(gradient_step(sent.model, slope, rate, self.weight))

    def gradient_deviation(self, n: int) -> float:
        """Return the standard deviation of one cell of the gradient estimated from n reports.

        The closed form for values near 0: sqrt(cells) * coth(epsilon / (2 rounds)) * clip /
        sqrt(n). It is the noise that each round adds.
        """
        check_count(n, "n", most=1 << 62)
        return self.clip * self.bit.one_bit.size * math.sqrt(self.cells / n)

    def rate_for(self, n: int) -> float:
        """Return the server's step length in the first round, for rounds of n reports.

        Unless it is given: as long as ``first_step_length`` says, but no longer than moves a
        factor by 2 in one round if all reports agreed (or, with a clip too large for that to bound
        anything, than what is stable). Only public numbers are used; devices do not need it.
        """
        if self.rate is not None:
            return self.rate
        most = max(_MOST_MOVE / self.clip, _STABLE)
        return first_step_length(self.gradient_deviation(n), self.rounds, most)
