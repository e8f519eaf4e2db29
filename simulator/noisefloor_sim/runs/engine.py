"""The engine: SimPy owns time; cohorts, network and server are its processes.

Inside a cohort everything is arrays. A cohort is made anew at each wake, so that memory is bounded
by the cohort, not by the population. Nothing depends on the order in which cohorts wake: their
coins are named, the network's chances are named, and the server adds integers.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import simpy
from numpy.typing import NDArray

from noisefloor.accounting import MICRO, Amount
from noisefloor.randomness import SeededSource
from noisefloor.roles import (
    CollectionConfig,
    FrameCounters,
    PublicationServer,
    TrainingServer,
)
from noisefloor.tasks import TrainingTask
from noisefloor.wire import Kind, split_frames
from noisefloor.wire.messages import DataSetMessage
from noisefloor_sim.deploy.hosting import InProcessHost, MethodBuilder, Receiver, ServerHost
from noisefloor_sim.pipelines import Findings, Metric, Pipeline, PipelineType, ServedAds
from noisefloor_sim.scenario import Scenario
from noisefloor_sim.world import (
    HOUR_S,
    AdWorld,
    BudgetAccount,
    Cohort,
    SimulatedNetwork,
    SpendRecord,
    Steps,
    TrafficCounts,
    Visits,
    cohort_sizes,
    draw_clicks,
    draw_visits,
    make_cohort,
)

DAY_S = 24 * HOUR_S

Progress = Callable[[int, int], None]


@dataclass(slots=True)
class WorldCounts:
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
class RunOutcome:
    """What a run of one point gives."""

    findings: Mapping[str, Findings]
    world: tuple[Metric, ...]


class Engine:
    """One world: people, network, server and pipelines, for one point of a sweep.

    Args:
        scenario: Without a sweep.
        types: The pipelines that exist, by name.
        order: The order in which cohorts wake; any order gives the same results.
        watched: A user whose spends are written down.
        hosting: Where the server's roles run; in this process if nothing is said.
    """

    def __init__(
        self,
        scenario: Scenario,
        types: Mapping[str, PipelineType],
        *,
        order: Sequence[int] | None = None,
        watched: int | None = None,
        hosting: ServerHost | None = None,
    ) -> None:
        self.scenario = scenario
        self.source = SeededSource(scenario.seed, "world")
        self.world = AdWorld.of(scenario)
        self.pipelines: dict[str, Pipeline] = {
            name: types[name].build(scenario) for name in sorted(scenario.pipelines)
        }
        kinds = [kind for pipeline in self.pipelines.values() for kind in pipeline.kinds]
        self.hosted = (hosting or InProcessHost()).open(self._collection(kinds))
        self.aggregator, self.ad_server = (
            self.hosted.servers.aggregator,
            self.hosted.servers.ad_server,
        )
        self._to_aggregator = self.hosted.receiver("reports", self.aggregator.apply)
        self._to_ad_server = self.hosted.receiver("impressions", self.ad_server.apply)
        self.env = simpy.Environment()
        self.network = SimulatedNetwork(self.env, scenario.network, self.source)
        self.census = WorldCounts()
        count = len(cohort_sizes(scenario.population.users, scenario.population.cohort))
        self.order = list(range(count)) if order is None else list(order)
        self.accounts: dict[int, BudgetAccount] = {}
        self._watched = watched
        self._kinds = [kind.name for kind in kinds]
        self._progress: Progress | None = None
        self._wakes = 0

    def run(self, progress: Progress | None = None) -> RunOutcome:
        """Let all days pass, then let every pipeline read and score."""
        self._progress = progress
        try:
            self.run_days()
            servers = self.hosted.servers
            found = {name: pipeline.finish(servers) for name, pipeline in self.pipelines.items()}
            return RunOutcome(found, tuple(self._world_metrics()))
        finally:
            self.hosted.close()

    def run_days(self) -> None:
        """Let all days pass."""
        for pipeline in self.pipelines.values():
            for phase in pipeline.phases(self):
                self.env.process(phase)
        for day in range(self.scenario.days):
            self.env.process(self._day(day))
            self.env.process(self._close(day))
        self.env.run()

    def cohorts(self) -> Iterator[Cohort]:
        """Make every cohort anew, in the order in which they wake."""
        passes = self.scenario.days
        passes += sum(pipeline.phase_wakes for pipeline in self.pipelines.values())
        for number in self.order:
            yield self.cohort(number)
            self._wakes += 1
            if self._progress:
                self._progress(self._wakes, passes * len(self.order))

    def cohort(self, number: int) -> Cohort:
        """Make one cohort anew."""
        people, devices = self.scenario.population, self.scenario.devices
        return make_cohort(people, devices, self.scenario.days, number, self.source)

    def account(self, cohort: Cohort) -> BudgetAccount:
        """Return where the cohort's users spend, over all pipelines."""
        if cohort.number not in self.accounts:
            budget = Amount.budget(self.scenario.budget, 0.0).micro_epsilon
            watched = None if self._watched is None else self._watched - cohort.first
            is_here = watched is not None and 0 <= watched < len(cohort)
            self.accounts[cohort.number] = BudgetAccount.open(
                cohort.owns, budget, watched if is_here else None
            )
        return self.accounts[cohort.number]

    def send(self, frame: bytes, receive: Receiver, *name: str | int) -> None:
        """Start a frame on its way to a role."""
        self.network.send(frame, receive, *name)

    def learner(self, task: TrainingTask) -> tuple[TrainingServer, Receiver]:
        """Return who learns from the rounds of a course, and how frames reach it."""
        learner = self.hosted.learner(task)
        return learner, self.hosted.receiver(f"course-{task.kind(0).name}", learner.apply)

    def publisher(
        self, data_set: DataSetMessage, source: SeededSource, methods: MethodBuilder
    ) -> PublicationServer:
        """Return the server that publishes from a data set."""
        return self.hosted.publisher(data_set, source, methods)

    def _collection(self, kinds: Sequence[Kind]) -> CollectionConfig:
        """Say what the servers of this world collect."""
        tasks = [
            one.training_task for one in self.pipelines.values() if one.training_task is not None
        ]
        task = tasks[0] if tasks else None
        return CollectionConfig(
            self.world.catalogue, {kind.name: kind for kind in kinds}, task=task
        )

    def _day(self, day: int) -> Steps:
        """Wake every cohort at the end of the day."""
        yield self.env.timeout((day + 1) * DAY_S)
        for cohort in self.cohorts():
            self._wake(cohort, day)

    def _wake(self, cohort: Cohort, day: int) -> None:
        scenario, number, account = self.scenario, cohort.number, self.account(cohort)
        visits = draw_visits(self.world, cohort, day, self.source)
        served = self._serve(cohort, day, visits)
        events = draw_clicks(self.world, cohort, visits, served.ad)
        census = self.census
        census.user_days += int(np.count_nonzero(cohort.leaves > day))
        census.views += int(events.views.sum())
        census.impressions += len(events.user)
        census.clicks += int(np.count_nonzero(events.clicked))
        if day == 0:
            census.devices += int(np.count_nonzero(cohort.owns))
            device_ratings = self.world.tastes.draw_ratings(cohort)
            census.ratings += int(np.count_nonzero(device_ratings.rated))
            census.rating_thousandths += int(
                np.rint(1000 * device_ratings.rating[device_ratings.rated]).sum()
            )
        census.silent += int(np.count_nonzero(cohort.owns & cohort.silent[:, :, day]))
        if day == scenario.days - 1:
            census.left += int(np.count_nonzero(cohort.leaves <= day))
        for name, pipeline in self.pipelines.items():
            for place, frame in enumerate(pipeline.wake(cohort, day, events, account)):
                self.network.send(frame, self._to_aggregator, name, number, day, place)
        if served.is_public:
            self._count_impressions(events.ad, number, day)

    def _serve(self, cohort: Cohort, day: int, visits: Visits) -> ServedAds:
        """Let the pipeline that serves ads fill the slots; without one, ads go by popularity."""
        for pipeline in self.pipelines.values():
            served = pipeline.serve(self.world, cohort, day, visits, self.account(cohort))
            if served is not None:
                return served
        return ServedAds(visits.popular)

    def _count_impressions(self, ads: NDArray[np.uint16], number: int, day: int) -> None:
        """Tell the ad server which ads were shown: indices, in random order, and nothing else."""
        if not len(ads):
            return
        draws = self.source.child("impressions", number, day)
        for place, frame in enumerate(split_frames(self.ad_server.kind, day, ads, draws)):
            self.network.send(frame, self._to_ad_server, "impressions", number, day, place)

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
        roles = [self.aggregator.counters, self.ad_server.counters]
        roles += [role for pipeline in self.pipelines.values() for role in pipeline.counters]
        return shares + _traffic_metrics(self.network.traffic, roles)


def explain_spending(
    scenario: Scenario, types: Mapping[str, PipelineType], user: int
) -> list[str]:
    """Say day by day what spent a user's budget: the user's cohort lives its days again.

    What is spent follows from who is in contact and what is asked for, never from what others
    reported: so one cohort is enough.
    """
    number = user // scenario.population.cohort
    engine = Engine(scenario, types, order=[number], watched=user)
    engine.run_days()
    cohort = next(engine.cohorts())
    row = user - cohort.first
    left = Amount.budget(scenario.budget, 0.0).micro_epsilon
    day_lines = []
    for day in range(scenario.days):
        lines = [line for line in engine.account(cohort).lines if line.day == day]
        spent = sum(line.micro for line in lines)
        left -= spent
        said = "; ".join(_said(line) for line in lines) or _silence(cohort, row, day)
        day_lines.append(f"day {day}: {said}; {spent / MICRO:g} spent, {left / MICRO:.6f} left")
    return day_lines


def _said(line: SpendRecord) -> str:
    refused = (
        f"{line.refused} refused, too little left on devices in contact" if line.refused else ""
    )
    granted = f"{line.granted} x {line.what}" if line.granted else ""
    return ", ".join(part for part in (granted, refused and f"{line.what}: {refused}") if part)


def _silence(cohort: Cohort, row: int, day: int) -> str:
    """Say why nothing was asked of a user's budget."""
    if cohort.leaves[row] <= day:
        return "the user has left"
    if not (cohort.owns[row] & ~cohort.silent[row, :, day]).any():
        return "no device in contact, nothing reported"
    return "nothing asked for"


def _traffic_metrics(traffic: TrafficCounts, roles: Sequence[FrameCounters]) -> list[Metric]:
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
