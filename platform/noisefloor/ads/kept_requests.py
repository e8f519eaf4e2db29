"""Requests that are drawn once an epoch and used until it ends.

A kept request is the same release, however often it is used: reuse is post-processing. A kept
slate may be ranked anew by fresh scores each time, because the ranking stays on the device.
"""

from dataclasses import dataclass

from noisefloor.ads.delivery import Delivery
from noisefloor.mechanisms.base import Reports
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source


@dataclass(frozen=True, slots=True, eq=False)
class KeptRequests:
    """One epoch's requests of some users, as their devices remember them.

    Attributes:
        delivery: How they were drawn.
        requests: One per user, in the users' order.
    """

    delivery: Delivery
    requests: Reports

    @classmethod
    def draw(cls, delivery: Delivery, scores: object, source: Source) -> "KeptRequests":
        """Draw the epoch's requests: the only step that costs anything."""
        return cls(delivery, delivery.request(scores, source))

    def shown(self, scores: object) -> Reports:
        """Return the ad that each user sees now, by the scores of now."""
        return self.delivery.shown(self.requests, scores)

    def ranked(self, scores: object, slots: int) -> Reports:
        """Return the ads for so many slots of a page now, out of the kept slate."""
        return self.delivery.ranked(self.requests, scores, slots)

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return what is proved of the whole epoch: one request, however often it is used."""
        return self.delivery.guarantee(neighbours)
