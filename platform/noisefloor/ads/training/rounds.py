"""Training without identifiers: what a way to learn the ads' model from protected reports offers.

The server broadcasts a model, devices answer with protected reports, the server adds them up and
broadcasts the next; n rounds. A way of training is a frozen value with a device half and
a server half; it keeps no state of its own, so that both halves can run anywhere.

What trainings over several rounds share: shares of epsilon, local updates, server steps.
"""

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import product_up
from noisefloor.ads.training import factorisation
from noisefloor.checks import check_epsilon, check_finite
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import Tally
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source
from noisefloor.wire import Kind

LOCAL_UPDATES = ("ridge", "step")
"""How a device may update its taste: the best fit, or one gradient step."""

_WANDER = 0.21
"""How far noise alone may move a factor in all rounds together, one standard deviation."""

_OFFSET_SHARE = 0.2
"""Offsets take shorter steps: their gradients are larger, as everybody's taste for them is 1."""


def epsilon_share(epsilon: float, parts: int, name: str = "epsilon") -> float:
    """Return the largest float that is not above epsilon when it is taken ``parts`` times."""
    share = check_epsilon(epsilon, name, parts=parts) / parts
    while product_up(share, parts) > epsilon:
        share = math.nextafter(share, 0.0)
    return share


def check_settings(
    *, local: str, rate: float | None, centre: float, weight: float, **positive: float
) -> None:
    """Refuse settings of a training that break their rules; the named ones have to be > 0."""
    for name, value in positive.items():
        if check_finite(value, name) <= 0:
            raise BadParameter(name, value, "> 0")
    if check_finite(weight, "weight") < 0:
        raise BadParameter("weight", weight, ">= 0")
    if rate is not None and check_finite(rate, "rate") <= 0:
        raise BadParameter("rate", rate, "> 0, or None")
    if not 0 <= check_finite(centre, "centre") <= 1:
        raise BadParameter("centre", centre, "in [0, 1], the scale of ratings")
    if local not in LOCAL_UPDATES:
        raise BadParameter("local", local, f"one of {', '.join(LOCAL_UPDATES)}")


def first_step_length(deviation: float, rounds: int, most: float) -> float:
    """Return a step length for the first of rounds whose steps get shorter linearly.

    As long as noise alone moves a factor by 0.21 in all rounds together, if nothing pulls it back,
    but no longer than ``most``.

    Args:
        deviation: The standard deviation of one number of a round's gradient.
        rounds: How many rounds there are.
        most: The longest step.
    """
    # The squares of steps that shrink linearly add up to a third of those that stay.
    return min(most, _WANDER / (deviation * math.sqrt(rounds / 3)))


def gradient_step(
    model: factorisation.AdModel,
    slope: NDArray[np.float64],
    rate: float,
    weight: float,
    *,
    radius: float = 1.0,
) -> factorisation.AdModel:
    """Return the model after one step down a slope, factors projected to a ball.

    Args:
        model: Where the step starts.
        slope: One row per ad: its factors' gradient, and its offset's if that is trained.
        rate: Length of the step.
        weight: Pull of the factors towards 0.
        radius: Of the ball that each ad's factors stay in.
    """
    wide = model.dimension
    factors = model.factors - rate * (slope[:, :wide] + 2 * weight * model.factors)
    offsets = model.offsets
    if slope.shape[1] > wide:
        offsets = (offsets - _OFFSET_SHARE * rate * slope[:, wide]).astype(np.float32)
    return factorisation.AdModel(
        model.centre, offsets, factorisation.project(factors.astype(np.float32), radius)
    )


def update_tastes(
    model: factorisation.AdModel,
    tastes: factorisation.Single,
    ratings: factorisation.Ratings,
    *,
    local: str,
    ridge: float,
    rate: float,
    weight: float,
    radius: float = 1.0,
) -> None:
    """Update tastes in place, as devices do before they report."""
    if local == "step":
        factorisation.step_tastes(model, tastes, ratings, rate, weight, radius=radius)
    else:
        model.check(tastes, ratings)
        tastes[...] = factorisation.fit_tastes(model, ratings, ridge, radius=radius)


SamplingKeys = NDArray[np.uint32]
"""One lot per user, uniform over 32 bits, drawn once without looking at anything."""


@dataclass(frozen=True, slots=True, eq=False)
class Broadcast:
    """What the server sends out before a round: everything a device needs to know.

    Attributes:
        model: The ads' model so far.
        rates: The estimated share of users who rated each ad, where the training learns it.
    """

    model: factorisation.AdModel
    rates: factorisation.Single | None = None


@dataclass(frozen=True, slots=True, eq=False)
class RoundReports:
    """What devices sent in a round, and what only they know about it.

    Attributes:
        reports: Rows for the round's kind of frame.
        clipped: How many of the values behind the reports were clipped.
        values: How many values there were.
        norm: The root mean square of the values before clipping.
    """

    reports: Any
    clipped: int = 0
    values: int = 0
    norm: float = 0.0


class AdTraining(Protocol):
    """One way of training, for n ads, latent factors and rounds."""

    @property
    def rounds(self) -> int:
        """How often the server broadcasts and devices answer."""
        ...

    @property
    def claimed(self) -> Guarantee:
        """What is said of a user who takes part in everything."""
        ...

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return what is proved of a user who takes part in everything."""
        ...

    def cost(self, number: int) -> Guarantee:
        """Return what one report of a round is said to cost, for the ledger."""
        ...

    def kind(self, number: int) -> Kind:
        """Return the kind of frame of a round; rounds of one kind are its epochs."""
        ...

    def start(self) -> Broadcast:
        """Return the first broadcast."""
        ...

    def reporters(self, number: int, sampling_keys: SamplingKeys) -> NDArray[np.bool_]:
        """Return who reports in a round, by lot."""
        ...

    def report(
        self,
        number: int,
        sent: Broadcast,
        tastes: factorisation.Single,
        ratings: factorisation.Ratings,
        source: Source,
    ) -> RoundReports:
        """Update the tastes of some users in place, and return their protected reports."""
        ...

    def update(self, number: int, sent: Broadcast, tally: Tally, n: int) -> Broadcast:
        """Return the next broadcast from the tally of a round's n reports."""
        ...
