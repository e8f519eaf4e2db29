"""The ad pipeline: a model is trained, ads are asked for and, if need be, sold."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from noisefloor.accounting import MICRO, Amount
from noisefloor.ads.auction import BID_REQUESTS
from noisefloor.privacy import FlowEvidence, Guarantee
from noisefloor.randomness import SeededSource
from noisefloor.roles import FrameCounters
from noisefloor.tasks import TrainingTask
from noisefloor.wire import Kind
from noisefloor_sim.deploy.hosting import Servers
from noisefloor_sim.inspection import DeviceFrame, Flow, PlainFlow
from noisefloor_sim.pipelines import api
from noisefloor_sim.pipelines.ads.attacks import attack
from noisefloor_sim.pipelines.ads.block import block_of
from noisefloor_sim.pipelines.ads.choices import choice_metrics
from noisefloor_sim.pipelines.ads.claims import (
    claims_of,
    daily_release_metrics,
    daily_releases,
    other_releases,
    paper_claim,
    planned_claims,
    prices_of,
    with_evidence,
    witness_bounds,
)
from noisefloor_sim.pipelines.ads.delivery import DeliveryPhase
from noisefloor_sim.pipelines.ads.market import MarketPhase, market_source
from noisefloor_sim.pipelines.ads.panel import Panel
from noisefloor_sim.pipelines.ads.training import TrainingPhase
from noisefloor_sim.scenario import Scenario
from noisefloor_sim.world import AdWorld, BudgetAccount, Cohort, DayActivity, Steps, Visits


@dataclass(slots=True)
class AdsPipeline(api.Pipeline):
    """Advertising without identifiers, at one point of a sweep."""

    scenario: Scenario
    source: SeededSource = field(init=False)
    training: TrainingPhase = field(init=False)
    delivery: DeliveryPhase = field(init=False)
    market: MarketPhase | None = field(init=False)
    accounts: dict[int, BudgetAccount] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.source = SeededSource(self.scenario.seed, "pipeline", "ads")
        self.training = TrainingPhase(self.scenario, self.source.child("training"))
        self.delivery = DeliveryPhase(self.scenario, self.source.child("delivery"), self.training)
        self.market = None
        if block_of(self.scenario).auction.run:
            randomness = market_source(self.scenario)
            self.market = MarketPhase(self.scenario, randomness, self.delivery.delivery)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Those of delivery and of the auction's panel; training has a server of its own."""
        panel = () if self.market is None else (self.market.panel.kind,)
        return (*self.delivery.kinds, *panel)

    @property
    def request_kinds(self) -> tuple[Kind, ...]:
        """Requests for ads and, where impressions are sold, bid requests."""
        bids = () if self.market is None else (self.market.kind,)
        return (self.delivery.request_kind, *bids)

    @property
    def training_task(self) -> TrainingTask | None:
        """What the training's server learns."""
        return self.training.task

    @property
    def counters(self) -> tuple[FrameCounters, ...]:
        """Those of the training's server."""
        return self.training.counters

    def phases(self, context: api.SimulationContext) -> Iterable[Steps]:
        """Train from the first hour on."""
        return (self.training.run(context),)

    @property
    def phase_wakes(self) -> int:
        """Every round wakes every cohort."""
        return self.training.rounds

    def serve(
        self, world: AdWorld, cohort: Cohort, day: int, visits: Visits, account: BudgetAccount
    ) -> api.ServedAds:
        """Let devices ask for ads."""
        self.accounts[cohort.number] = account
        served = self.delivery.serve(world, cohort, day, visits, account)
        if self.market is None:
            return served
        released = self.delivery.released(cohort)
        return self.market.serve(world, cohort, day, visits, released, served)

    @property
    def _panel(self) -> Panel | None:
        return None if self.market is None else self.market.panel

    @property
    def request_flows(self) -> tuple[Flow, ...]:
        """Requests of devices, and bid requests where impressions are sold."""
        if self.market is None:
            return (self.delivery.flow,)
        ads, topics = self.scenario.ad_behaviour.ads, self.scenario.population.topics
        largest = {"symbol": ads, "topic": topics - 1}
        columns = {name: np.min_scalar_type(most).name for name, most in largest.items()}
        days = range(self.scenario.days)
        return self.delivery.flow, PlainFlow(BID_REQUESTS, self.market.kind, days, columns)

    @property
    def flows(self) -> tuple[Flow, ...]:
        """Those of delivery and of the auction's panel."""
        panel = () if self.market is None else (self.market.panel.flow,)
        return (*self.delivery.flows, *panel)

    @property
    def training_flows(self) -> tuple[Flow, ...]:
        """Reports of the training's rounds, where devices train."""
        return () if self.training.flow is None else (self.training.flow,)

    def wake(self, cohort: Cohort, day: int, account: BudgetAccount) -> Iterator[DeviceFrame]:
        """Report what slates hide."""
        return self.delivery.wake(cohort, day, account)

    def wake_with_ads(
        self, cohort: Cohort, day: int, activity: DayActivity, account: BudgetAccount
    ) -> Iterator[DeviceFrame]:
        """Let the auction's panel report its clicks."""
        if self.market is not None:
            yield from self.market.wake(cohort, day, activity, account)

    def prices(self) -> Mapping[str, api.Price]:
        """Return the guarantees of each report, and of a request."""
        return prices_of(self.scenario, self.training, self.delivery, self._panel)

    def paper_claim(self) -> Guarantee:
        """Return what the paper claims: training, and one request on each day."""
        return paper_claim(self.prices(), self.training, self.scenario.days)

    def planned_claims(self) -> tuple[api.PlannedClaim, ...]:
        """Return the claims of training, of a request and, with one request a day, of all days."""
        flows = daily_releases(self.scenario, self.training, self.delivery, self._panel)
        return planned_claims(self.scenario, flows, other_releases(self.scenario))

    def finish(self, servers: Servers, evidence: Mapping[str, FlowEvidence]) -> api.Findings:
        """Score predictions, relevance and sales; let the adversary guess; state the claims."""
        flows = daily_releases(self.scenario, self.training, self.delivery, self._panel)
        others = other_releases(self.scenario)
        metrics = [
            *self.training.finish(),
            *self.delivery.finish(servers.aggregator),
            *self._looks(),
            *budget_metrics(self.scenario, self.accounts.values()),
            *daily_release_metrics([*flows, *others], self.delivery),
            *([] if self.market is None else self.market.finish(servers.aggregator)),
        ]
        bounds = witness_bounds(self.scenario, self.training, self.delivery, self._panel)
        claims = claims_of(self.scenario, flows, others, bounds)
        return api.Findings(tuple(metrics), with_evidence(claims, evidence))

    def _looks(self) -> list[api.Metric]:
        """Weigh the choices and let the adversary guess: both take a second look at people."""
        context = self.training.context
        if context is None:
            return []
        games = attack(self.training, self.delivery, context, self.source.child("canary"))
        return choice_metrics(self.scenario, context) + games


def budget_metrics(scenario: Scenario, accounts: Iterable[BudgetAccount]) -> list[api.Metric]:
    """Tell what each flow took of a mean user, and that nobody passed the cap.

    What is left and what all flows took has to add up to what there was.
    """
    users, cap = scenario.population.users, Amount.budget(scenario.budget, 0.0).micro_epsilon
    flows: dict[str, int] = {}
    broken, gone = 0, 0
    for account in accounts:
        left = account.device_budgets.left
        broken += int((left < 0).any(axis=1).sum())
        gone += cap * len(left) - int(left.sum())
        for name, micro in account.spent.items():
            flows[name] = flows.get(name, 0) + micro
    spent = [
        api.Metric(f"spent.{name.replace(' ', '_')}", flows[name] / MICRO / users, n=users)
        for name in sorted(flows)
    ]
    return [
        *spent,
        api.Metric("budget_overspent", float(broken), n=users),
        api.Metric("budget_unaccounted", (gone - sum(flows.values())) / MICRO, n=users),
    ]
