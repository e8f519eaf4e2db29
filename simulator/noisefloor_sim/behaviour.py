"""What people do in a day: page views, ads shown, clicks; all of a cohort's at once.

An event is one row of arrays, not an object. Clicks depend on how much the user cares for the ad's
topic and on the ad's position on the page.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from noisefloor.randomness import Generator, SeededSource
from noisefloor.roles.catalogue import Ad, Catalogue
from noisefloor_sim.population import DEVICES, Cohort
from noisefloor_sim.scenario.world import Behaviour

_WHEEL = 1 << 16
"""Ads and hours are drawn by a wheel of so many notches: shares in steps of one in 65,536."""

_DEVICE_WEIGHT = np.array([6.0, 3.0, 1.0])
"""How much time people spend on phone, laptop and wearable."""


@dataclass(frozen=True)
class AdWorld:
    """The ads and how they are served: the same for everybody, known to everybody."""

    shape: Behaviour
    topics: int

    @cached_property
    def topic(self) -> NDArray[np.intp]:
        """The topic of each ad, in turn."""
        return np.arange(self.shape.ads) % self.topics

    @cached_property
    def catalogue(self) -> Catalogue:
        """The ads as the ad server hands them out."""
        topics = enumerate(self.topic.tolist())
        return Catalogue(1, tuple(Ad(f"ad-{place}", topic) for place, topic in topics))

    @cached_property
    def wheel(self) -> NDArray[np.uint16]:
        """The ad behind each notch; popularity falls as a power of the ad's rank."""
        return _wheel((np.arange(self.shape.ads) + 1.0) ** -self.shape.popularity)

    @cached_property
    def clock(self) -> NDArray[np.uint8]:
        """The hour behind each notch of a wheel: a bump of some hours at each peak."""
        away = np.abs(np.arange(24)[:, None] + 0.5 - np.array(self.shape.peak_hours))
        away = np.minimum(away, 24 - away)
        wave = 0.1 + np.exp(-((away / 2.5) ** 2) / 2).sum(axis=1)
        return _wheel(wave).astype(np.uint8)

    @cached_property
    def position(self) -> NDArray[np.float32]:
        """By how much a click is less likely in each position on the page."""
        return np.float32(self.shape.position_decay) ** np.arange(
            self.shape.slots_per_view, dtype=np.float32
        )


@dataclass(frozen=True, slots=True)
class Day:
    """One day of a cohort, one row per impression.

    Attributes:
        users: Users in the cohort.
        views: Page views of each user.
        user: The user of each impression.
        device: The device it was on.
        hour: The hour of the day.
        ad: Which ad was shown.
        clicked: Whether it was clicked.
    """

    users: int
    views: NDArray[np.int64]
    user: NDArray[np.int64]
    device: NDArray[np.uint8]
    hour: NDArray[np.uint8]
    ad: NDArray[np.uint16]
    clicked: NDArray[np.bool_]

    def matrix(self, rows: NDArray[np.bool_], ads: int) -> NDArray[np.bool_]:
        """Return, for each user and ad, whether any of the chosen impressions is there."""
        bits = np.zeros(self.users * ads, dtype=np.bool_)
        bits[self.user[rows] * ads + self.ad[rows]] = True
        return bits.reshape(self.users, ads)


@dataclass(frozen=True, slots=True)
class Ratings:
    """What a cohort's devices hold about ads: one row per user, one column per ad.

    Attributes:
        rated: Whether the device holds a rating.
        rating: In [0, 1]; meaningless where nothing is held.
    """

    rated: NDArray[np.bool_]
    rating: NDArray[np.float32]


def hold_ratings(world: AdWorld, cohort: Cohort, source: SeededSource) -> Ratings:
    """Make the ratings that devices hold: interest in the ad's topic, the ad's appeal, and noise.

    They never leave the device. Users are drawn row by row, so that adding some moves nobody.
    """
    generator = source.child("ratings", cohort.number).generator()
    size, ads = cohort.interests.shape[0], world.shape.ads
    appeal = source.child("appeal").generator().normal(0.0, 0.1, ads).astype(np.float32)
    rows = (generator.random((size, 2 * ads), dtype=np.float32)).reshape(size, 2, ads)
    # Logistic noise: smooth, and one expression of one uniform number.
    noise = 0.06 * np.log(np.maximum(rows[:, 1], 1e-6) / np.maximum(1 - rows[:, 1], 1e-6))
    topics = cohort.interests.shape[1]
    cared = np.minimum(cohort.interests[:, world.topic] * topics / 4, 1)
    rating = np.clip(0.3 + 0.4 * cared + appeal + noise, 0, 1)
    return Ratings(rows[:, 0] < world.shape.rated_share, rating)


def live(world: AdWorld, cohort: Cohort, day: int, source: SeededSource) -> Day:
    """Let a cohort live through one day, from the day's own stream."""
    generator = source.child("behaviour", cohort.number, day).generator()
    shape = world.shape
    busy = cohort.engagement * (shape.weekend_factor if day % 7 in (5, 6) else 1.0)
    views = generator.poisson(busy)
    views[day >= cohort.leaves] = 0
    viewer = np.repeat(np.arange(len(cohort)), views)
    hour = world.clock[generator.integers(0, _WHEEL, len(viewer), dtype=np.uint16)]
    device = _device(cohort, viewer, generator)
    user = np.repeat(viewer, shape.slots_per_view)
    ad = world.wheel[generator.integers(0, _WHEEL, len(user), dtype=np.uint16)]
    chance = _click_chance(world, cohort, user, ad)
    clicked = generator.random(len(user), dtype=np.float32) < chance
    return Day(
        len(cohort),
        views,
        user,
        np.repeat(device, shape.slots_per_view),
        np.repeat(hour, shape.slots_per_view),
        ad,
        clicked,
    )


def _wheel(weights: NDArray[np.floating]) -> NDArray[np.uint16]:
    """Return which outcome lies behind each notch of a wheel, in proportion to the weights."""
    ends = np.rint(np.cumsum(weights / weights.sum()) * _WHEEL).astype(np.int64)
    return np.repeat(np.arange(len(weights)), np.diff(ends, prepend=0)).astype(np.uint16)


def _device(cohort: Cohort, viewer: NDArray[np.int64], generator: Generator) -> NDArray[np.uint8]:
    """Choose the device of each view among those the user owns, by time spent on it."""
    ends = np.cumsum(cohort.owns * _DEVICE_WEIGHT, axis=1)
    ends /= ends[:, -1:]
    drawn = generator.random(len(viewer))
    chosen = np.zeros(len(viewer), dtype=np.uint8)
    for place in range(len(DEVICES) - 1):
        chosen += drawn >= ends[viewer, place]
    return chosen


def _click_chance(
    world: AdWorld, cohort: Cohort, user: NDArray[np.int64], ad: NDArray[np.uint16]
) -> NDArray[np.float32]:
    """Return the chance of a click: base rate, raised by interest, lowered by position."""
    topics = cohort.interests.shape[1]
    cared = cohort.interests.reshape(-1)[user * topics + world.topic[ad]]
    lift = 1 + np.float32(world.shape.interest_lift) * cared
    chance = np.float32(world.shape.click_base_rate) * lift
    by_view = chance.reshape(-1, world.shape.slots_per_view) * world.position
    return np.asarray(np.minimum(by_view, 1).reshape(-1), dtype=np.float32)
