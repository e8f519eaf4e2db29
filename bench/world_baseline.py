"""The world as a plain SimPy program: one process per user, one event per page view.

The same behaviour as ours (population, devices, page views, ads, clicks, one-click reports and
lists of ads shown over a network to a server that adds up), written as such a program is written:
scalars from Python's ``random``, which are cheaper than numpy's, and numpy only for what
``random`` does not have. It is no straw man: interests and weights are lists, counting costs once
a day, nothing is encoded or decoded. Networks that lose, duplicate or hold back frames are not
modelled, and no budget is kept: neither matters in the scenario that is timed.
"""

import math
import random
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import simpy

from noisefloor_sim.scenario import Scenario

HOUR_S, DAY_S = 3600.0, 86400.0

Steps = Generator[simpy.Event, Any, None]
Clicks = list[tuple[str, int]]  # device and ad
Ads = list[int]

WEIGHTS = {"phone": 6.0, "laptop": 3.0, "wearable": 1.0}
"""How much time people spend on each device."""


def _ads_by_rank(ads: int, popularity: float) -> list[float]:
    return [(rank + 1.0) ** -popularity for rank in range(ads)]


def _hourly(peaks: tuple[float, ...]) -> list[float]:
    """Return the activity in each hour of the day: a bump at each peak."""
    activity = []
    for hour in range(24):
        away = [abs(hour + 0.5 - peak) for peak in peaks]
        bumps = (math.exp(-((min(a, 24 - a) / 2.5) ** 2) / 2) for a in away)
        activity.append(0.1 + sum(bumps))
    return activity


def _cumulated(weights: list[float]) -> list[float]:
    return [sum(weights[: place + 1]) for place in range(len(weights))]


@dataclass(slots=True)
class Server:
    """Counts what is sent to it, one message at a time: bits of reports, and ads shown."""

    env: simpy.Environment
    ads: int
    days: int
    service_s: float
    server_queue: simpy.Resource = field(init=False)
    ones: list[list[int]] = field(init=False)
    shown: list[list[int]] = field(init=False)

    def __post_init__(self) -> None:
        self.server_queue = simpy.Resource(self.env, capacity=1)
        self.ones = [[0] * self.ads for _ in range(self.days)]
        self.shown = [[0] * self.ads for _ in range(self.days)]

    def take(self, sums: list[int], ads: list[int], latency_s: float) -> Steps:
        """Let a message travel, wait for its turn, and count."""
        yield self.env.timeout(latency_s)
        with self.server_queue.request() as turn:
            yield turn
            yield self.env.timeout(self.service_s)
        for ad in ads:
            sums[ad] += 1


class World:
    """What all users share, and what is counted of each user and day.

    Args:
        scenario: With click statistics in the one-click form.
        epsilon: Of a report.
    """

    def __init__(self, scenario: Scenario, epsilon: float) -> None:
        self.scenario = scenario
        self.random = random.Random(scenario.seed)  # noqa: S311  protects nobody
        self.numpy = np.random.default_rng(scenario.seed)
        self.env = simpy.Environment()
        shape, users = scenario.ad_behaviour, scenario.population.users
        service_s = 1 / scenario.network.capacity_frames_per_s
        self.server = Server(self.env, shape.ads, scenario.days, service_s)
        self.ad_weights = _cumulated(_ads_by_rank(shape.ads, shape.popularity))
        self.hour_weights = _cumulated(_hourly(shape.peak_hours))
        self.topic = [ad % scenario.population.topics for ad in range(shape.ads)]
        self.decay = [shape.position_decay**place for place in range(shape.slots_per_view)]
        self.flip = 1 / (math.exp(epsilon) + 1)
        self.views = [[0] * scenario.days for _ in range(users)]
        self.clicks = [[0] * scenario.days for _ in range(users)]
        self.reports = [[0] * scenario.days for _ in range(users)]

    def run(self) -> None:
        """Start everybody and let all days pass."""
        for number in range(self.scenario.population.users):
            self.env.process(User(self, number).live())
        self.env.run()

    def counts(self) -> dict[str, list[list[int]]]:
        """Return what happened, by user and day."""
        slots = self.scenario.ad_behaviour.slots_per_view
        impressions = [[slots * views for views in days] for days in self.views]
        return {"impressions": impressions, "clicks": self.clicks, "reports": self.reports}

    def events(self) -> int:
        """Page views, impressions, clicks and reports decided."""
        views, clicks, reports = (
            sum(map(sum, counted)) for counted in (self.views, self.clicks, self.reports)
        )
        return views * (1 + self.scenario.ad_behaviour.slots_per_view) + clicks + reports


class User:
    """One person: draws interests, engagement and devices, then lives day by day."""

    def __init__(self, world: World, number: int) -> None:
        people, devices = world.scenario.population, world.scenario.devices
        draws = world.random
        self.world, self.number = world, number
        concentration = [people.interests_concentration] * people.topics
        self.interests = world.numpy.dirichlet(concentration).tolist()
        tail = people.engagement.tail_exponent
        heavy = draws.paretovariate(tail) * (tail - 1) / tail
        self.engagement = people.engagement.mean_views_per_day * heavy
        shares = devices.shares.model_dump()
        likeliest = max(shares, key=lambda name: shares[name])
        self.owned = [name for name in shares if draws.random() < shares[name]] or [likeliest]
        self.device_weights = _cumulated([WEIGHTS[name] for name in self.owned])
        self.offline_until = dict.fromkeys(self.owned, 0.0)

    def live(self) -> Steps:
        """Browse each day and report at its end, until the user leaves."""
        world, env = self.world, self.world.env
        churn = world.scenario.population.churn_per_day
        for day in range(world.scenario.days):
            if world.random.random() < churn:
                return
            shown: Ads = []
            clicks: Clicks = []
            yield from self._browse(day, shown, clicks)
            yield env.timeout((day + 1) * DAY_S - env.now)
            self._report(day, clicks)
            if shown:
                self._send(world.server.shown[day], shown)

    def _browse(self, day: int, seen: Ads, clicks: Clicks) -> Steps:
        """Look at pages at the hours that people keep, a Poisson number of them."""
        world, env, draws = self.world, self.world.env, self.world.random
        is_weekend = day % 7 in (5, 6)
        factor = world.scenario.ad_behaviour.weekend_factor if is_weekend else 1.0
        views = int(world.numpy.poisson(self.engagement * factor))
        hours = draws.choices(range(24), cum_weights=world.hour_weights, k=views)
        for at in sorted(day * DAY_S + (hour + draws.random()) * HOUR_S for hour in hours):
            yield env.timeout(at - env.now)
            self._view(seen, clicks)
        world.views[self.number][day] = views
        world.clicks[self.number][day] = len(clicks)

    def _view(self, seen: Ads, clicks: Clicks) -> None:
        """See one page's ads on some device, and click by interest and position."""
        world, draws, interests = self.world, self.world.random, self.interests
        shape = world.scenario.ad_behaviour
        device = draws.choices(self.owned, cum_weights=self.device_weights)[0]
        shown = draws.choices(
            range(shape.ads), cum_weights=world.ad_weights, k=shape.slots_per_view
        )
        seen += shown
        for ad, decay in zip(shown, world.decay, strict=True):
            lift = 1 + shape.interest_lift * interests[world.topic[ad]]
            if draws.random() < shape.click_base_rate * lift * decay:
                clicks.append((device, ad))

    def _in_contact(self, day: int) -> list[str]:
        """Return the devices that are online at the day's end and in step with their siblings."""
        draws, devices = self.world.random, self.world.scenario.devices
        for name in self.owned:
            if draws.random() < devices.offline.start_per_day:
                spell_s = HOUR_S * draws.expovariate(1 / devices.offline.mean_h)
                ends = (day + draws.random()) * DAY_S + spell_s
                self.offline_until[name] = max(self.offline_until[name], ends)
        end = (day + 1) * DAY_S
        online = [name for name in self.owned if self.offline_until[name] <= end]
        return [name for name in online if draws.random() < devices.sync_per_day]

    def _report(self, day: int, clicks: Clicks) -> None:
        """Send one of the clicks that the devices in contact know of, in optimised unary code."""
        contact = self._in_contact(day)
        if not contact:
            return
        world, draws = self.world, self.world.random
        known = sorted({ad for device, ad in clicks if device in contact})
        kept = draws.choice(known) if known else -1
        ads = range(world.server.ads)
        ones = [ad for ad in ads if draws.random() < (0.5 if ad == kept else world.flip)]
        self._send(world.server.ones[day], ones)
        world.reports[self.number][day] = 1

    def _send(self, sums: list[int], ads: Ads) -> None:
        """Start a message on its way."""
        latency = self.world.scenario.network.latency
        latency_s = latency.median_s * self.world.random.lognormvariate(0.0, latency.spread)
        self.world.env.process(self.world.server.take(sums, ads, latency_s))
