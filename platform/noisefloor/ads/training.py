"""Training without identifiers: what a way to learn the ads' model from protected reports offers.

The server broadcasts a model, devices answer with protected reports, the server adds them up and
broadcasts the next; so many rounds. A way of training is a frozen value with a device half and
a server half; it keeps no state of its own, so that both halves can run anywhere.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads.factors import AdModel, Ratings, Single
from noisefloor.mechanisms.base import Tally
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source
from noisefloor.wire.kinds import Kind

Lots = NDArray[np.uint32]
"""One lot per user, uniform over 32 bits, drawn once without looking at anything."""


@dataclass(frozen=True, slots=True, eq=False)
class Broadcast:
    """What the server sends out before a round: everything a device needs to know.

    Attributes:
        model: The ads' model so far.
        rates: The estimated share of users who rated each ad, where the training learns it.
    """

    model: AdModel
    rates: Single | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Sent:
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


class Training(Protocol):
    """One way of training, for so many ads, latent factors and rounds."""

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

    def reporters(self, number: int, lots: Lots) -> NDArray[np.bool_]:
        """Return who reports in a round, by lot."""
        ...

    def report(
        self, number: int, sent: Broadcast, tastes: Single, ratings: Ratings, source: Source
    ) -> Sent:
        """Update the tastes of some users in place, and return their protected reports."""
        ...

    def update(self, number: int, sent: Broadcast, tally: Tally, n: int) -> Broadcast:
        """Return the next broadcast from the tally of a round's n reports."""
        ...
