"""An exchange that takes one auction after the other: the oracle of the columnar one.

Written from the rules and in Python's own integers; it shares no code with what it checks.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from noisefloor.ads.auction.bidders import Campaign

_WORD = (1 << 64) - 1


def key(draw: int, place: int) -> int:
    """Return the key of a place in the random order of an auction: splitmix64."""
    state = (draw + (place + 1) * 0x9E3779B97F4A7C15) & _WORD
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _WORD
    return state ^ (state >> 31)


def best(offers: Sequence[int], draw: int) -> int:
    """Return the place of the highest offer; the first in order among those that tie."""
    top = max(offers)
    return max((key(draw, i), i) for i, offer in enumerate(offers) if offer == top)[1]


@dataclass
class Exchange:
    """Campaigns with what they have left; a campaign that cannot pay is out for good."""

    campaigns: Sequence[Campaign]
    left: list[int]
    is_first_price: bool = False
    stopped: set[int] = field(default_factory=set)

    def sell(self, bids: Sequence[int], floor: int, draw: int) -> tuple[int, int]:
        """Return the winning campaign and the price, or (-1, 0)."""
        while True:
            offers = [0 if c in self.stopped else bid for c, bid in enumerate(bids)]
            winner, price = self._cleared(offers, floor, draw)
            if winner < 0 or price <= self.left[winner]:
                break
            self.stopped.add(winner)
        if winner >= 0:
            self.left[winner] -= price
        return winner, price

    def _cleared(self, offers: Sequence[int], floor: int, draw: int) -> tuple[int, int]:
        entries, chosen = [], []
        for bidder in range(max(one.bidder for one in self.campaigns) + 1):
            own = [c for c, one in enumerate(self.campaigns) if one.bidder == bidder]
            pick = own[best([offers[c] for c in own], ~draw & _WORD)]
            entries.append(offers[pick])
            chosen.append(pick)
        place = best(entries, draw)
        top = entries.pop(place)
        if top < max(floor, 1):
            return -1, 0
        return chosen[place], top if self.is_first_price else max([floor, *entries])
