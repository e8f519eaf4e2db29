"""The engine: SimPy owns time; cohorts, network and server are its processes.

Inside a cohort everything is arrays. A cohort is made anew at each wake, so that memory is bounded
by the cohort, not by the population. Nothing depends on the order in which cohorts wake: their
random numbers are named, the network's too, and the server adds integers.

Ads are a part of the world only where a pipeline needs them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
import simpy

from noisefloor.accounting import MICRO, Amount
from noisefloor.privacy import FlowEvidence
from noisefloor.randomness import SeededSource
from noisefloor.roles import (
    IMPRESSIONS,
    CollectionConfig,
    FrameCounters,
    PublicationServer,
    TrainingServer,
)
from noisefloor.tasks import TrainingTask
from noisefloor.wire import Kind
from noisefloor.wire.messages import DataSetMessage
from noisefloor_sim.deploy.hosting import InProcessHost, MethodBuilder, Receiver, ServerHost
from noisefloor_sim.inspection import DeviceFrame, Flow, FrameTap, PlainFlow, Transcript
from noisefloor_sim.pipelines import (
    Findings,
    Metric,
    NamedClaim,
    Pipeline,
    PipelineType,
    formula_coverage,
)
from noisefloor_sim.runs.ad_serving import AdServing
from noisefloor_sim.runs.protections import stated_protections
from noisefloor_sim.runs.user_claims import UserLedger
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
    cohort_sizes,
    make_cohort,
)

DAY_S = 24 * HOUR_S
_ORDER = (
    *("views_per_user_day", "impressions_per_user_day", "clicks_per_user_day"),
    "click_rate",
    *("devices_per_user", "ratings_per_user", "rating_mean", "silent_share", "left_share"),
    "impressions_counted",
)
"""In which metrics of the world are written."""

Progress = Callable[[int, int], None]


@dataclass(slots=True)
class PeopleCounts:
    """Who there was, in integer sums over all cohorts."""

    user_days: int = 0
    devices: int = 0
    silent: int = 0
    left: int = 0

    def add(self, cohort: Cohort, day: int, days: int) -> None:
        """Count a cohort on one of several days."""
        self.user_days += int(np.count_nonzero(cohort.leaves > day))
        if day == 0:
            self.devices += int(np.count_nonzero(cohort.owns))
        self.silent += int(np.count_nonzero(cohort.owns & cohort.silent[:, :, day]))
        if day == days - 1:
            self.left += int(np.count_nonzero(cohort.leaves <= day))

    def metrics(self, users: int, days: int) -> list[Metric]:
        """Return what people own, and how many are out of contact or have left."""
        owned = max(1, self.devices) * days
        return [
            Metric("devices_per_user", self.devices / users, n=users),
            Metric("silent_share", self.silent / owned, n=owned),
            Metric("left_share", self.left / users, n=users),
        ]


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What a run of one point gives."""

    findings: Mapping[str, Findings]
    world: tuple[Metric, ...]
    world_claims: tuple[NamedClaim, ...] = ()
    flows: tuple[FlowEvidence, ...] = ()

    @property
    def all_findings(self) -> dict[str, Findings]:
        """The findings of the pipelines, and of the world as ``world``."""
        return {**self.findings, "world": Findings(self.world, self.world_claims, self.flows)}


class Engine:
    """One world: people, network, server and pipelines, for one point of a sweep.

    Args:
        scenario: Without a sweep.
        types: The pipelines that exist, by name.
        order: The order in which cohorts wake; any order gives the same results.
        watched: A user whose spends are recorded.
        hosting: Where the server's roles run; in this process by default.
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
        self.pipelines: dict[str, Pipeline] = {
            name: types[name].build(scenario) for name in sorted(scenario.pipelines)
        }
        self.ledger = UserLedger(scenario, tuple(self.pipelines.values()))
        kinds = [kind for pipeline in self.pipelines.values() for kind in pipeline.kinds]
        requests = [kind for one in self.pipelines.values() for kind in one.request_kinds]
        world = None if scenario.behaviour is None else AdWorld.of(scenario)
        collection = self._collection([*kinds, *requests], world)
        self._collected = collection.kinds
        self.hosted = (hosting or InProcessHost()).open(collection)
        self.aggregator = self.hosted.servers.aggregator
        self.tap = FrameTap(is_linked=scenario.threat.linked, collection=self.hosted.collection)
        for pipeline in self.pipelines.values():
            self.tap.open(pipeline.flows, self.aggregator)
        self._to_aggregator = self.hosted.receiver(
            "reports", self.tap.watch(self.aggregator.apply)
        )
        self.env = simpy.Environment()
        self.network = SimulatedNetwork(self.env, scenario.network, self.source)
        self.ads = None if world is None else self._serving(world)
        self.census = PeopleCounts()
        count = len(cohort_sizes(scenario.population.users, scenario.population.cohort))
        self.order = list(range(count)) if order is None else list(order)
        self.accounts: dict[int, BudgetAccount] = {}
        self._watched = watched
        self._kinds = [kind.name for kind in kinds]
        self._progress: Progress | None = None
        self._wakes = 0

    def run(self, progress: Progress | None = None) -> RunOutcome:
        """Let all days pass, then let every pipeline read and score."""
        try:
            self.run_days(progress)
            servers, seen = self.hosted.servers, self._evidence()
            found = {
                name: pipeline.finish(servers, seen) for name, pipeline in self.pipelines.items()
            }
            spent, claims = self.ledger.finish(self.accounts.values())
            flows = tuple(seen.values())
            covered = formula_coverage(found.values())
            return RunOutcome(found, (*self._world_metrics(), *covered, *spent), claims, flows)
        finally:
            self.hosted.close()

    def run_days(self, progress: Progress | None = None) -> None:
        """Let all days pass."""
        self._progress = progress
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
                cohort.owns, budget, watched if is_here else None, first=cohort.first
            )
        return self.accounts[cohort.number]

    def send(self, frame: DeviceFrame, receive: Receiver, *name: str | int) -> None:
        """Start a frame on its way to a role."""
        if self.tap.is_named(frame.flow):
            frame = frame.addressed(self._collected, self.hosted.collection)
        self.tap.expect(frame)
        self.network.send(frame.data, receive, *name)

    def learner(
        self, task: TrainingTask, flows: Iterable[Flow]
    ) -> tuple[TrainingServer, Receiver]:
        """Return the server of a training task, and what brings the frames of flows to it."""
        learner = self.hosted.learner(task)
        self.tap.open(flows, learner)
        handle = self.tap.watch(learner.apply)
        return learner, self.hosted.receiver(f"course-{task.kind(0).name}", handle)

    def watch(self, flows: Iterable[Flow], receive: Receiver) -> Receiver:
        """Return a receiver of frames that nothing is released of, such as queries."""
        self.tap.open(flows, None)
        return self.tap.watch(receive)

    def transcript(self, flow: str) -> Transcript | None:
        """Return what was seen of a flow's connections, if the server can tell them apart."""
        return self.tap.transcript(flow)

    def collected(self, kind: str, epoch: int) -> pa.RecordBatch:
        """Return the rows that the aggregator collected in a closed epoch, sorted by content."""
        return self.aggregator.release_rows(kind, epoch)

    def retire(self, kind: str, epoch: int) -> None:
        """Have the aggregator drop what it keeps of a closed epoch."""
        self.tap.compare(kind, epoch)  # nothing is released of it any more
        self.aggregator.retire(kind, epoch)

    def publisher(
        self, data_set: DataSetMessage, source: SeededSource, methods: MethodBuilder, method: str
    ) -> PublicationServer:
        """Return the server that publishes from a data set."""
        return self.hosted.publisher(data_set, source, methods, method)

    @property
    def ad_world(self) -> AdWorld:
        """The ads, in a world that has any."""
        if self.ads is None:
            raise TypeError("This world has no ads.")
        return self.ads.world

    def _serving(self, world: AdWorld) -> AdServing:
        server = self.hosted.servers.ad_server
        if server is None:
            raise TypeError("A world with ads needs an ad server.")
        columns = {"symbol": np.min_scalar_type(len(world.catalogue) - 1).name}
        shown_ads = PlainFlow(IMPRESSIONS, server.kind, range(self.scenario.days), columns)
        self.tap.open([shown_ads], server)
        for pipeline in self.pipelines.values():
            self.tap.open(pipeline.request_flows, server)
        shown, requested = (
            self._sender(self.hosted.receiver(topic, self.tap.watch(handle)))
            for topic, handle in (
                ("impressions", server.apply),
                ("requests", server.apply_requests),
            )
        )
        return AdServing(world, self.pipelines.values(), server, shown, requested, self.source)

    def _sender(self, receive: Receiver) -> Callable[..., None]:
        """Return what starts a frame on its way to a receiver."""

        def send(frame: DeviceFrame, *name: str | int) -> None:
            self.send(frame, receive, *name)

        return send

    def _collection(self, kinds: Sequence[Kind], world: AdWorld | None) -> CollectionConfig:
        """Return what the servers of this world collect."""
        tasks = [
            one.training_task for one in self.pipelines.values() if one.training_task is not None
        ]
        task = tasks[0] if tasks else None
        catalogue = None if world is None else world.catalogue
        plain = () if catalogue is None else (IMPRESSIONS,)
        # Simulated people need no minimum: a world may have fewer than services ask for.
        return CollectionConfig(
            catalogue,
            {kind.name: kind for kind in kinds},
            task=task,
            minimum_batch=1,
            protections=stated_protections(self.pipelines.values(), plain),
        )

    def _day(self, day: int) -> Steps:
        """Wake every cohort at the end of the day."""
        yield self.env.timeout((day + 1) * DAY_S)
        for cohort in self.cohorts():
            self._wake(cohort, day)
        self.ledger.close_day(day, self.accounts.values())

    def _wake(self, cohort: Cohort, day: int) -> None:
        number, account = cohort.number, self.account(cohort)
        self.census.add(cohort, day, self.scenario.days)
        shown = None if self.ads is None else self.ads.show(cohort, day, account)
        for name, pipeline in self.pipelines.items():
            frames = pipeline.wake(cohort, day, account)
            if shown is not None:
                frames = chain(frames, pipeline.wake_with_ads(cohort, day, shown[0], account))
            for place, frame in enumerate(frames):
                self.send(frame, self._to_aggregator, name, number, day, place)
        if self.ads is not None and shown is not None and shown[1].is_public:
            self.ads.report(shown[0].ad, number, day)

    def _close(self, day: int) -> Steps:
        """Close the day's epochs when their grace is over."""
        yield self.env.timeout((day + 1) * DAY_S + self.scenario.grace_h * HOUR_S)
        for kind in self._kinds:
            self.aggregator.close(kind, day)
        if self.ads is not None:
            self.ads.server.close(day)

    def _evidence(self) -> dict[str, FlowEvidence]:
        """Return what was seen of every flow, and whether all budgets add up."""
        spent: dict[str, int] = {}
        gone = 0
        budget = Amount.budget(self.scenario.budget, 0.0).micro_epsilon
        for account in self.accounts.values():
            left = account.device_budgets.left
            gone += budget * len(left) - int(left.sum())
            for name, micro in account.spent.items():
                spent[name] = spent.get(name, 0) + micro
        seen = self.tap.evidence(spent)
        faults = []
        if gone != sum(spent.values()):
            faults.append(
                f"flows were debited {sum(spent.values()) / MICRO:.6g} in all, and devices' "
                f"budgets are less by {gone / MICRO:.6g}"
            )
        if self.tap.given_up != self.network.traffic.given_up:
            faults.append(
                f"{self.tap.given_up:,} frames never arrived, and the network gave up "
                f"{self.network.traffic.given_up:,}"
            )
        if faults:
            seen["accounts"] = FlowEvidence("accounts", faults=tuple(faults))
        return seen

    def _world_metrics(self) -> list[Metric]:
        users, days = self.scenario.population.users, self.scenario.days
        found, roles = self.census.metrics(users, days), [self.aggregator.counters]
        if self.ads is not None:
            found += self.ads.metrics(users, self.census.user_days, days)
            roles.append(self.ads.server.counters)
        found.sort(key=lambda metric: _ORDER.index(metric.name))
        roles += [role for pipeline in self.pipelines.values() for role in pipeline.counters]
        return found + _traffic_metrics(self.network.traffic, roles)


def explain_spending(
    scenario: Scenario, types: Mapping[str, PipelineType], user: int
) -> list[str]:
    """Return day by day what spent a user's budget: the user's cohort is simulated again.

    What is spent follows from who is in contact and what is requested, never from what others
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
