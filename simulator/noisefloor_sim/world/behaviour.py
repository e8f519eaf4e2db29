"""What people do in a day, in a world with ads: page views, ads shown, clicks.

An event is one row of arrays, not an object; a cohort's day is drawn at once. Which ads are shown
is decided by the pipeline that serves them; clicks depend on how much the user cares for the ad
and on its position on the page.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from noisefloor.randomness import Generator, SeededSource
from noisefloor.roles import Ad, Catalogue
from noisefloor_sim.scenario import Behaviour, Scenario
from noisefloor_sim.world.population import DEVICES, Cohort
from noisefloor_sim.world.tastes import TasteModel

_WHEEL = 1 << 16
"""Ads and hours are drawn from a table of this many entries: shares in steps of one in 65,536."""

_DEVICE_WEIGHT = np.array([6.0, 3.0, 1.0])
"""How much time people spend on phone, laptop and wearable."""


@dataclass(frozen=True)
class AdWorld:
    """The ads and how they are served: public, and the same for all users."""

    shape: Behaviour
    tastes: TasteModel

    @classmethod
    def of(cls, scenario: Scenario) -> "AdWorld":
        """Make the ads that a scenario describes; its world has to have some."""
        source, shape = SeededSource(scenario.seed, "world"), scenario.ad_behaviour
        tastes = TasteModel(scenario.tastes, shape, scenario.population.topics, source)
        return cls(shape, tastes)

    @cached_property
    def catalogue(self) -> Catalogue:
        """The catalogue of the ad server."""
        topics = enumerate(self.tastes.topic.tolist())
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
    def base_rate(self) -> NDArray[np.float32]:
        """The click rate of each ad in the first position, without any interest."""
        even = np.full(self.shape.ads, self.shape.click_base_rate, dtype=np.float32)
        if self.shape.click_rates == "even":
            return even
        from noisefloor.tables import click_rates

        real = click_rates().rate.astype(np.float32)
        return even * np.resize(real / real.mean(), self.shape.ads)

    @cached_property
    def position(self) -> NDArray[np.float32]:
        """By how much a click is less likely in each position on the page."""
        return np.float32(self.shape.position_decay) ** np.arange(
            self.shape.slots_per_view, dtype=np.float32
        )


@dataclass(frozen=True, slots=True)
class DayActivity:
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
class Visits:
    """The slots for ads of a cohort's day, before anybody has filled them; one row per slot.

    Attributes:
        users: Users in the cohort.
        views: Page views of each user.
        user: The user of each slot, in order.
        device: The device it is on.
        hour: The hour of the day.
        popular: The ad that a server would show that knows nobody.
        click_draw: Uniform in [0, 1): below the chance of a click it is clicked.
    """

    users: int
    views: NDArray[np.int64]
    user: NDArray[np.int64]
    device: NDArray[np.uint8]
    hour: NDArray[np.uint8]
    popular: NDArray[np.uint16]
    click_draw: NDArray[np.float32]


def draw_visits(world: AdWorld, cohort: Cohort, day: int, source: SeededSource) -> Visits:
    """Let a cohort look at pages for one day, from the day's own stream."""
    generator = source.child("behaviour", cohort.number, day).generator()
    shape = world.shape
    busy = cohort.engagement * (shape.weekend_factor if day % 7 in (5, 6) else 1.0)
    views = generator.poisson(busy)
    views[day >= cohort.leaves] = 0
    viewer = np.repeat(np.arange(len(cohort)), views)
    hour = world.clock[generator.integers(0, _WHEEL, len(viewer), dtype=np.uint16)]
    device = _device(cohort, viewer, generator)
    user = np.repeat(viewer, shape.slots_per_view)
    return Visits(
        len(cohort),
        views,
        user,
        np.repeat(device, shape.slots_per_view),
        np.repeat(hour, shape.slots_per_view),
        world.wheel[generator.integers(0, _WHEEL, len(user), dtype=np.uint16)],
        generator.random(len(user), dtype=np.float32),
    )


def draw_pages(
    world: AdWorld, cohort: Cohort, visits: Visits, source: SeededSource
) -> NDArray[np.int64]:
    """Return the topic of the page of each slot: people visit pages of what they care for.

    Args:
        world: Its ``page_affinity`` says how strongly pages follow likings.
        cohort: Whose visits they are.
        visits: The slots of a day.
        source: Of this day's pages.
    """
    weight = world.tastes.topic_affinity(cohort).astype(np.float64) ** world.shape.page_affinity
    ends = np.cumsum(weight, axis=1)
    viewer = visits.user[:: world.shape.slots_per_view]
    drawn = source.generator().random(len(viewer)) * ends[viewer, -1]
    page = (drawn[:, None] >= ends[viewer, :-1]).sum(axis=1)
    return np.repeat(page, world.shape.slots_per_view)


def draw_clicks(
    world: AdWorld, cohort: Cohort, visits: Visits, ad: NDArray[np.uint16]
) -> DayActivity:
    """Show ads in the slots, and let people click."""
    clicked = visits.click_draw < _click_chance(world, cohort, visits.user, ad)
    return DayActivity(
        visits.users, visits.views, visits.user, visits.device, visits.hour, ad, clicked
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


def click_chances(world: AdWorld, cohort: Cohort) -> NDArray[np.float32]:
    """Return each user's chance to click each ad in the first position: one row per user."""
    lift = 1 + np.float32(world.shape.interest_lift) * world.tastes.interest(cohort)
    return np.asarray(np.minimum(world.base_rate * lift, 1), dtype=np.float32)


def _click_chance(
    world: AdWorld, cohort: Cohort, user: NDArray[np.int64], ad: NDArray[np.uint16]
) -> NDArray[np.float32]:
    """Return the chance of a click: base rate, raised by interest, lowered by position."""
    cared = world.tastes.interest_in(cohort, user, ad)
    chance = world.base_rate[ad] * (1 + np.float32(world.shape.interest_lift) * cared)
    by_view = chance.reshape(-1, world.shape.slots_per_view) * world.position
    return np.asarray(np.minimum(by_view, 1).reshape(-1), dtype=np.float32)
