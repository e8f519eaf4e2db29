"""The engine: SimPy owns time; cohorts, network and server are its processes.

Inside a cohort everything is arrays. A cohort is made anew at each wake, so that memory is bounded
by the cohort, not by the population. Nothing depends on the order in which cohorts wake: their
coins are named, the network's chances are named, and the server adds integers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import simpy
from numpy.typing import NDArray

from noisefloor.randomness import SeededSource
from noisefloor.roles.ad_server import AdServer
from noisefloor.roles.aggregator import Aggregator
from noisefloor.roles.outcomes import Counters
from noisefloor.wire.bus import Bus, drain
from noisefloor.wire.frames import split_frames
from noisefloor.wire.memory_bus import MemoryBus
from noisefloor_sim.behaviour import AdWorld, hold_ratings, live
from noisefloor_sim.network import HOUR_S, Network, Steps, Traffic
from noisefloor_sim.pipelines.base import Findings, Metric, Pipeline, PipelineType
from noisefloor_sim.population import cohort_sizes, make_cohort
from noisefloor_sim.scenario.model import Scenario

DAY_S = 24 * HOUR_S

Progress = Callable[[int, int], None]


@dataclass(slots=True)
class Census:
    """What the generated world looks like, in integer sums over all cohorts."""

    user_days: int = 0
    views: int = 0
    impressions: int = 0
    clicks: int = 0
    devices: int = 0
    ratings: int = 0
    rating_thousandths: int = 0
    silent: int = 0
    left: int = 0

    def events(self) -> int:
        """Page views, impressions and clicks decided."""
        return self.views + self.impressions + self.clicks


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run of one point gives."""

    findings: Mapping[str, Findings]
    world: tuple[Metric, ...]


class Engine:
    """One world: people, network, server and pipelines, for one point of a sweep.

    Args:
        scenario: Without a sweep.
        types: The pipelines that exist, by name.
        order: The order in which cohorts wake; any order gives the same results.
    """

    def __init__(
        self,
        scenario: Scenario,
        types: Mapping[str, PipelineType],
        *,
        order: Sequence[int] | None = None,
    ) -> None:
        self.scenario = scenario
        self.source = SeededSource(scenario.seed, "world")
        self.world = AdWorld(scenario.behaviour, scenario.population.topics)
        self.pipelines: dict[str, Pipeline] = {
            name: types[name].build(scenario) for name in sorted(scenario.pipelines)
        }
        kinds = [kind for pipeline in self.pipelines.values() for kind in pipeline.kinds]
        self.aggregator = Aggregator(kinds)
        self.ad_server = AdServer(self.world.catalogue)
        self.bus: Bus = MemoryBus()
        self.env = simpy.Environment()
        self.network = Network(self.env, scenario.network, self.source)
        self.census = Census()
        count = len(cohort_sizes(scenario.population.users, scenario.population.cohort))
        self.order = list(range(count)) if order is None else list(order)
        self._kinds = [kind.name for kind in kinds]

    def run(self, progress: Progress | None = None) -> Outcome:
        """Let all days pass, then let every pipeline read and score."""
        for day in range(self.scenario.days):
            self.env.process(self._day(day, progress))
            self.env.process(self._close(day))
        self.env.run()
        findings = {
            name: pipeline.finish(self.aggregator) for name, pipeline in self.pipelines.items()
        }
        return Outcome(findings, tuple(self._world_metrics()))

    def _day(self, day: int, progress: Progress | None) -> Steps:
        """Wake every cohort at the end of the day."""
        yield self.env.timeout((day + 1) * DAY_S)
        for place, number in enumerate(self.order):
            self._wake(number, day)
            if progress:
                progress(day * len(self.order) + place + 1, self.scenario.days * len(self.order))

    def _wake(self, number: int, day: int) -> None:
        scenario = self.scenario
        cohort = make_cohort(
            scenario.population, scenario.devices, scenario.days, number, self.source
        )
        lived = live(self.world, cohort, day, self.source)
        census = self.census
        census.user_days += int(np.count_nonzero(cohort.leaves > day))
        census.views += int(lived.views.sum())
        census.impressions += len(lived.user)
        census.clicks += int(np.count_nonzero(lived.clicked))
        if day == 0:
            census.devices += int(np.count_nonzero(cohort.owns))
            held = hold_ratings(self.world, cohort, self.source)
            census.ratings += int(np.count_nonzero(held.rated))
            census.rating_thousandths += int(np.rint(1000 * held.rating[held.rated]).sum())
        census.silent += int(np.count_nonzero(cohort.owns & cohort.silent[:, :, day]))
        if day == scenario.days - 1:
            census.left += int(np.count_nonzero(cohort.leaves <= day))
        for name, pipeline in self.pipelines.items():
            for place, frame in enumerate(pipeline.wake(cohort, day, lived)):
                self.network.send(frame, self._to_aggregator, name, number, day, place)
        self._count_impressions(lived.ad, number, day)

    def _count_impressions(self, ads: NDArray[np.uint16], number: int, day: int) -> None:
        """Tell the ad server which ads were shown: indices, in random order, and nothing else."""
        if not len(ads):
            return
        coins = self.source.child("impressions", number, day)
        for place, frame in enumerate(split_frames(self.ad_server.kind, day, ads, coins)):
            self.network.send(frame, self._to_ad_server, "impressions", number, day, place)

    def _to_aggregator(self, data: bytes) -> None:
        self.bus.publish("reports", data)
        drain(self.bus, "reports", self.aggregator.apply)

    def _to_ad_server(self, data: bytes) -> None:
        self.bus.publish("impressions", data)
        drain(self.bus, "impressions", self.ad_server.apply)

    def _close(self, day: int) -> Steps:
        """Close the day's epochs when their grace is over."""
        yield self.env.timeout((day + 1) * DAY_S + self.scenario.grace_h * HOUR_S)
        for kind in self._kinds:
            self.aggregator.close(kind, day)
        self.ad_server.close(day)

    def _world_metrics(self) -> list[Metric]:
        census, users = self.census, self.scenario.population.users
        days = max(1, census.user_days)
        owned = max(1, census.devices) * self.scenario.days
        shares = [
            Metric("views_per_user_day", census.views / days, n=census.user_days),
            Metric("impressions_per_user_day", census.impressions / days, n=census.user_days),
            Metric("clicks_per_user_day", census.clicks / days, n=census.user_days),
            Metric("devices_per_user", census.devices / users, n=users),
            Metric("ratings_per_user", census.ratings / users, n=users),
            Metric(
                "rating_mean",
                census.rating_thousandths / 1000 / max(1, census.ratings),
                n=census.ratings,
            ),
            Metric("silent_share", census.silent / owned, n=owned),
            Metric("left_share", census.left / users, n=users),
        ]
        counted = sum(
            int(self.ad_server.impressions(day).sum()) for day in range(self.scenario.days)
        )
        shares.append(Metric("impressions_counted", float(counted), n=census.impressions))
        roles = (self.aggregator.counters, self.ad_server.counters)
        return shares + _traffic_metrics(self.network.traffic, roles)


def _traffic_metrics(traffic: Traffic, roles: Sequence[Counters]) -> list[Metric]:
    """Return what became of the frames, as counts that add up over the roles."""
    counts = {
        "frames_sent": traffic.sent,
        "frames_attempts": traffic.attempts,
        "frames_lost": traffic.lost,
        "frames_given_up": traffic.given_up,
        "frames_delivered": traffic.delivered,
        "frames_counted": sum(role.counted for role in roles),
        "frames_duplicate": sum(role.duplicates for role in roles),
        "frames_late": sum(role.late for role in roles),
        "frames_dead": sum(role.dead_letters for role in roles),
        "longest_queue": traffic.longest_queue,
    }
    return [Metric(name, float(count), n=traffic.sent) for name, count in counts.items()]
