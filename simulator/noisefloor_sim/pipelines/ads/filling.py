"""Filling slots with ads: asked for once a day, or for every impression, as the budget goes."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads.delivery import Delivery
from noisefloor.ads.factors import Single
from noisefloor.mechanisms.base import Reports
from noisefloor.randomness import SeededSource
from noisefloor_sim.behaviour import Visits

Ads = NDArray[np.uint16]
Flags = NDArray[np.bool_]
Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Filled:
    """The ad in each slot, and which slots were filled by a request."""

    ad: Ads
    personal: Flags


@dataclass(frozen=True, slots=True)
class Memory:
    """What a cohort's devices were given last: a request of the day, or the ad shown last.

    Attributes:
        requests: One per user.
        has: Who was given anything.
    """

    requests: Reports
    has: Flags

    @classmethod
    def none(cls, users: int, delivery: Delivery, *, is_daily: bool) -> Self:
        """Return the memory of users who have asked for nothing yet."""
        is_wide = delivery.is_slate and is_daily
        shape = (users, delivery.slate) if is_wide else (users,)
        dtype = np.min_scalar_type(delivery.ads - 1)
        return cls(np.zeros(shape, dtype=dtype), np.zeros(users, dtype=np.bool_))


@dataclass(frozen=True, slots=True)
class Slots:
    """The slots of a cohort's day, as devices fill them.

    Attributes:
        visits: The slots.
        is_open: Which are on a device in contact: others show popular ads.
        scores: Of each user for each ad.
        granted: How many fresh requests each user has paid for.
        per_view: Slots on a page.
    """

    visits: Visits
    is_open: Flags
    scores: Single
    granted: Counts
    per_view: int


def fill_daily(
    delivery: Delivery, slots: Slots, memory: Memory, coins: SeededSource, *, repeat: bool
) -> Filled:
    """Ask once a day, and show what came in every slot: using it again costs nothing.

    Args:
        delivery: How devices ask.
        slots: What is to be filled.
        memory: What was given last; it is changed.
        coins: Of this day's requests.
        repeat: Whether whoever cannot pay shows the last request's ads again, or popular ones.
    """
    asked, user = np.flatnonzero(slots.granted), slots.visits.user
    if not repeat:
        memory.has[:] = False
    memory.requests[asked] = delivery.request(slots.scores[asked], coins)
    memory.has[asked] = True
    personal = slots.is_open & memory.has[user]
    ad = slots.visits.popular.copy()
    if delivery.is_slate:
        width = min(slots.per_view, delivery.slate)
        ranked = delivery.ranked(memory.requests, slots.scores, width)
        place = np.flatnonzero(personal) % slots.per_view
        ad[personal] = ranked[user[personal], place % width]
    else:
        ad[personal] = memory.requests[user[personal]]
    return Filled(ad, personal)


def fill_each(
    delivery: Delivery, slots: Slots, memory: Memory, coins: SeededSource, *, repeat: bool
) -> Filled:
    """Ask for every slot, as far as the budget goes; then show the last ad again, or popular ones.

    Args:
        delivery: How devices ask.
        slots: What is to be filled.
        memory: What was shown last; it is changed.
        coins: Of this day's requests.
        repeat: Whether whoever cannot pay shows the last ad again, or popular ones.
    """
    places, granted = np.flatnonzero(slots.is_open), slots.granted
    users = slots.visits.user[places]
    first = np.searchsorted(users, np.arange(len(granted)))
    is_fresh = np.arange(len(users)) - first[users] < granted[users]
    rows = users[is_fresh]
    given = np.zeros(len(users), dtype=np.uint16)
    requests = delivery.request(slots.scores[rows], coins)
    given[is_fresh] = delivery.shown(requests, slots.scores[rows])
    asked = np.flatnonzero(granted)
    memory.requests[asked] = given[first[asked] + granted[asked] - 1]
    memory.has[asked] = True
    has = is_fresh
    if repeat:
        has = is_fresh | memory.has[users]
        again = has & ~is_fresh
        given[again] = memory.requests[users[again]]
    ad, personal = slots.visits.popular.copy(), np.zeros(len(slots.is_open), dtype=np.bool_)
    ad[places[has]] = given[has]
    personal[places[has]] = True
    return Filled(ad, personal)
