"""What a pipeline is to the simulator: the one interface that engine, runner and report know."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
import simpy
from numpy.typing import NDArray

from noisefloor.accounting import sequential
from noisefloor.ads.clicks import CONFIDENCE_LEVEL, normal_quantile
from noisefloor.ads.training import Single
from noisefloor.mechanisms import Reports
from noisefloor.privacy import Claim, FlowEvidence, Guarantee
from noisefloor.randomness import SeededSource
from noisefloor.roles import FrameCounters, PublicationServer, TrainingServer
from noisefloor.tasks import TrainingTask
from noisefloor.wire import Kind, SealedFrame
from noisefloor.wire.messages import DataSetMessage
from noisefloor_sim.deploy import ServiceSettings, no_settings
from noisefloor_sim.deploy.hosting import MethodBuilder, Receiver, Servers
from noisefloor_sim.inspection import DeviceFrame, Flow, Transcript
from noisefloor_sim.report import Section
from noisefloor_sim.scenario import PipelineBlock, Scenario
from noisefloor_sim.world import AdWorld, BudgetAccount, Cohort, DayActivity, Steps, Visits

Z = normal_quantile(CONFIDENCE_LEVEL)
"""Half the width of a 95 % normal interval, in standard errors."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One measured number, with its confidence interval where it has one.

    Attributes:
        name: Without the pipeline's name, which the runner puts before it.
        value: The number.
        low: Lower end of the 95 % interval; NaN if there is none.
        high: Upper end.
        n: What it was measured on: users, reports, guesses.
    """

    name: str
    value: float
    low: float = math.nan
    high: float = math.nan
    n: int = 0

    @classmethod
    def normal(cls, name: str, value: float, error: float, n: int = 0) -> "Metric":
        """Make a number whose interval is normal, from its standard error."""
        return cls(name, value, value - Z * error, value + Z * error, n)


@dataclass(frozen=True, slots=True)
class NamedClaim:
    """A claim and the mechanism it is about."""

    mechanism: str
    claim: Claim


@dataclass(frozen=True, slots=True)
class PlannedClaim:
    """A claim that follows from settings alone, before anything is run.

    Attributes:
        mechanism: As a run names it; ``whole-run`` is what all days take together.
        per: What it covers: a report, a request, a question, a day, a release, or the run.
        claim: Claimed and proved; nothing is audited.
        debited: Epsilon that the run would take from the budget, if that is known. It is not
            always what is claimed: a paper may claim one release of many, and what is sent
            without noise has nothing to debit.
        budget: Epsilon that it is taken from, if not the user's budget of the scenario.
    """

    mechanism: str
    per: str
    claim: Claim
    debited: float | None = None
    budget: float | None = None


@dataclass(frozen=True, slots=True)
class Price:
    """The guarantees of one release that a user pays for, or of what all send in the open.

    Attributes:
        claimed: What the configuration or the paper says of one release.
        proved: What follows from the mechanism.
        is_sent_by_all: Whether every user sends it once without the account being asked: what is
            sent without noise has nothing to debit.
    """

    claimed: Guarantee
    proved: Guarantee
    is_sent_by_all: bool = False


def repeated_claim(claim: Claim, times: int) -> Claim:
    """Return a claim about several releases of one kind, by adding up."""
    return Claim(sequential([claim.claimed] * times), sequential([claim.proved] * times))


@dataclass(frozen=True, slots=True)
class Findings:
    """What one pipeline found at one point of a sweep."""

    metrics: tuple[Metric, ...]
    claims: tuple[NamedClaim, ...]
    flows: tuple[FlowEvidence, ...] = ()


@dataclass(frozen=True, slots=True)
class PointFindings:
    """The findings of a pipeline at one point, for its report section."""

    settings: tuple[tuple[str, object], ...]
    scenario: Scenario
    findings: Findings

    def metric(self, name: str) -> Metric | None:
        """Return a metric by name, if it was measured here."""
        return next((found for found in self.findings.metrics if found.name == name), None)


@dataclass(frozen=True, slots=True, eq=False)
class SentRequests:
    """The fresh requests of a cohort's day, as frames, and what only scoring reads beside them.

    Row ``i`` of a frame is request ``frame.order[i]`` of all of them.

    Attributes:
        kind: Of the frames.
        epoch: The day.
        frames: What is sent to the ad server.
        requests: As they were drawn: an ad's index, or a row of indices for slates.
        users: Whose each request is, as a row of the cohort.
        scores: The raw scores of the cohort's users, from which the requests were drawn.
        truth: What the flow that inspects the frames reads.
    """

    kind: Kind
    epoch: int
    frames: tuple[SealedFrame, ...]
    requests: Reports
    users: NDArray[np.int64]
    scores: Single
    truth: object = None


@dataclass(frozen=True, slots=True, eq=False)
class SentBidRequests:
    """What the bid requests of a day tell bidders, as frames, and whose impressions they offer.

    Row ``i`` of a frame is impression ``frame.order[i]`` of all of them.

    Attributes:
        kind: Of the frames.
        epoch: The day.
        frames: What is sent to the ad server, which is the exchange.
        columns: The symbol and the topic of each impression, in the order of sale.
        users: Whose each impression is; no bidder gets it.
    """

    kind: Kind
    epoch: int
    frames: tuple[SealedFrame, ...]
    columns: Mapping[str, NDArray[np.int64]]
    users: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ServedAds:
    """What a pipeline that serves ads put into the slots of a cohort's day.

    Attributes:
        ad: The ad in each slot.
        is_public: Whether the server sees which ads are shown, because devices request them by
            index. Where it does not, impressions are not counted in the open.
        requests: Which devices sent for it, if any did.
        bid_requests: Of a day whose impressions are sold now that all cohorts are served.
    """

    ad: NDArray[np.uint16]
    is_public: bool = True
    requests: SentRequests | None = None
    bid_requests: SentBidRequests | None = None


@dataclass(frozen=True, slots=True)
class DailyRelease:
    """What one user releases in a day through one flow.

    Attributes:
        name: Of the flow.
        releases: How often the user releases something fresh.
        each: What is claimed of one release, and what is proved.
        claimed: What is claimed of all of them; the paper counts one request.
        proved: What is proved of all of them.
    """

    name: str
    releases: int
    each: tuple[Guarantee, Guarantee]
    claimed: Guarantee
    proved: Guarantee


@runtime_checkable
class ServesAds(Protocol):
    """The block of a pipeline that decides which ads are shown, as other pipelines see it."""

    @property
    def hidden_ad_key(self) -> str:
        """The setting that keeps the shown ad secret on the device; empty if it is public."""
        ...


@runtime_checkable
class ReleasesDaily(Protocol):
    """The block of a pipeline in which each user releases something every day."""

    def daily_release(self, scenario: Scenario) -> DailyRelease:
        """Return what a user releases in a day, for claims about a user's whole day."""
        ...


class SimulationContext(Protocol):
    """The world as a pipeline with phases of its own uses it, beyond its daily wakes."""

    @property
    def env(self) -> simpy.Environment:
        """The SimPy environment."""
        ...

    @property
    def ad_world(self) -> AdWorld:
        """The ads; there are none in a world in which no pipeline needs them."""
        ...

    def cohorts(self) -> Iterator[Cohort]:
        """Make every cohort anew, one after the other."""
        ...

    def cohort(self, number: int) -> Cohort:
        """Make one cohort anew: the same people at each call."""
        ...

    def account(self, cohort: Cohort) -> BudgetAccount:
        """Return the budgets of the cohort's users."""
        ...

    def send(self, frame: DeviceFrame, receive: Receiver, *name: str | int) -> None:
        """Start a frame on its way to a role; ``name`` names its stream of chances."""
        ...

    def learner(
        self, task: TrainingTask, flows: Iterable[Flow]
    ) -> tuple[TrainingServer, Receiver]:
        """Return the server of a training task, and what brings the frames of flows to it."""
        ...

    def watch(self, flows: Iterable[Flow], receive: Receiver) -> Receiver:
        """Return a receiver of frames that nothing is released of, such as queries."""
        ...

    def transcript(self, flow: str) -> Transcript | None:
        """Return what was seen of a flow's connections, if the server can tell them apart."""
        ...

    def collected(self, kind: str, epoch: int) -> pa.RecordBatch:
        """Return the rows that the aggregator collected in a closed epoch, sorted by content."""
        ...

    def retire(self, kind: str, epoch: int) -> None:
        """Have the aggregator drop what it keeps of a closed epoch."""
        ...

    def publisher(
        self, data_set: DataSetMessage, source: SeededSource, methods: MethodBuilder, method: str
    ) -> PublicationServer:
        """Return the server that publishes from a data set; see ``HostedServers.publisher``."""
        ...


class Pipeline(ABC):
    """A pipeline at work in one world.

    ``serve`` and ``wake_with_ads`` are called in worlds with ads only: where the block of some
    pipeline has ``needs_ads``.
    """

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of frames that it sends to the aggregator."""
        return ()

    @property
    def request_kinds(self) -> tuple[Kind, ...]:
        """The kinds of requests that ``serve`` sends to the ad server."""
        return ()

    @property
    def training_task(self) -> TrainingTask | None:
        """What a server trains from rounds of reports, if anything."""
        return None

    def phases(self, context: SimulationContext) -> Iterable[Steps]:
        """Return processes of its own on the clock, such as rounds of training."""
        return ()

    @property
    def phase_wakes(self) -> int:
        """How often its phases wake each cohort, for the progress bar."""
        return 0

    @property
    def counters(self) -> tuple[FrameCounters, ...]:
        """Frames by outcome, at roles of its own."""
        return ()

    def serve(
        self, world: AdWorld, cohort: Cohort, day: int, visits: Visits, account: BudgetAccount
    ) -> ServedAds | None:
        """Fill the slots of a cohort's day, if this pipeline serves ads."""
        return None

    @property
    def request_flows(self) -> tuple[Flow, ...]:
        """What is declared of the requests that it sends to the ad server."""
        return ()

    @property
    def flows(self) -> tuple[Flow, ...]:
        """What is declared of the flows that it sends to the aggregator."""
        return ()

    @property
    def training_flows(self) -> tuple[Flow, ...]:
        """What is declared of the reports of the rounds of its training task."""
        return ()

    def wake(self, cohort: Cohort, day: int, account: BudgetAccount) -> Iterator[DeviceFrame]:
        """Let a cohort's devices report at the end of a day: frames that go to the aggregator."""
        return iter(())

    def wake_with_ads(
        self, cohort: Cohort, day: int, activity: DayActivity, account: BudgetAccount
    ) -> Iterator[DeviceFrame]:
        """Report, after ``wake``, on what people were shown and clicked on the day."""
        return iter(())

    def prices(self) -> Mapping[str, Price]:
        """Return the guarantees of one release of each flow, by the flow's name in the account.

        A flow that spends and has no price counts as one without any guarantee.
        """
        return {}

    def paper_claim(self) -> Guarantee | None:
        """Return what the paper claims of one user over the whole run; None if it is nothing.

        It is used in the paper's variant; elsewhere the scenario's budget is the claim.
        """
        return None

    def planned_claims(self) -> tuple[PlannedClaim, ...]:
        """Return the claims that are known before the run; the same figures as after it."""
        return ()

    @abstractmethod
    def finish(self, servers: Servers, evidence: Mapping[str, FlowEvidence]) -> Findings:
        """Read what the servers released, let the adversary guess, and score.

        Args:
            servers: What was released.
            evidence: What was seen of each flow, by name.
        """


@dataclass(frozen=True, slots=True)
class PipelineType:
    """Everything a pipeline adds, in one place.

    Attributes:
        name: As in a scenario's ``pipelines``.
        block: The model of its settings there.
        build: Makes the pipeline for a scenario.
        section: Describes its part of the report from the findings at all points.
        service_settings: What services that are started for experiments have to be told, by the
            names of their settings; files are written in the folder that is given.
    """

    name: str
    block: type[PipelineBlock]
    build: Callable[[Scenario], Pipeline]
    section: Callable[[Sequence[PointFindings]], Section]
    service_settings: ServiceSettings = no_settings
