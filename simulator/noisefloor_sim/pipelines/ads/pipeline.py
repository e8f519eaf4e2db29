"""The ad pipeline: a model is trained, ads are asked for and, if need be, sold."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from noisefloor.randomness import SeededSource
from noisefloor.wire.kinds import Kind
from noisefloor_sim.behaviour import AdWorld, Day, Visits
from noisefloor_sim.devices import Account
from noisefloor_sim.network import Steps
from noisefloor_sim.pipelines.ads.attacks import attack
from noisefloor_sim.pipelines.ads.block import block_of
from noisefloor_sim.pipelines.ads.choices import choice_metrics
from noisefloor_sim.pipelines.ads.claims import claims_of
from noisefloor_sim.pipelines.ads.delivery import DeliveryPhase
from noisefloor_sim.pipelines.ads.market import MarketPhase
from noisefloor_sim.pipelines.ads.training import TrainingPhase
from noisefloor_sim.pipelines.base import Findings, Metric, Pipeline, Served, Servers, Stage
from noisefloor_sim.population import Cohort
from noisefloor_sim.scenario.model import Scenario


@dataclass(slots=True)
class AdsPipeline(Pipeline):
    """Advertising without identifiers, at one point of a sweep."""

    scenario: Scenario
    source: SeededSource = field(init=False)
    training: TrainingPhase = field(init=False)
    delivery: DeliveryPhase = field(init=False)
    market: MarketPhase | None = field(init=False)
    accounts: dict[int, Account] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.source = SeededSource(self.scenario.seed, "pipeline", "ads")
        self.training = TrainingPhase(self.scenario, self.source.child("training"))
        self.delivery = DeliveryPhase(self.scenario, self.source.child("delivery"), self.training)
        is_sold = block_of(self.scenario).auction.run
        self.market = MarketPhase(self.scenario, self.source.child("market")) if is_sold else None

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Those of delivery; training has a server of its own."""
        return self.delivery.kinds

    def phases(self, stage: Stage) -> Iterable[Steps]:
        """Train from the first hour on."""
        return (self.training.run(stage),)

    @property
    def phase_wakes(self) -> int:
        """Every round wakes every cohort."""
        return self.training.rounds

    def serve(
        self, world: AdWorld, cohort: Cohort, day: int, visits: Visits, account: Account
    ) -> Served:
        """Let devices ask for ads."""
        self.accounts[cohort.number] = account
        served = self.delivery.serve(world, cohort, day, visits, account)
        if self.market is not None:
            released = self.delivery.released(cohort)
            self.market.offer(world, cohort, day, visits, released)
        return served

    def wake(self, cohort: Cohort, day: int, lived: Day, account: Account) -> Iterator[bytes]:
        """Report what slates hide."""
        return self.delivery.wake(cohort, day, account)

    def finish(self, servers: Servers) -> Findings:
        """Score predictions, relevance and sales; let the adversary guess; state the claims."""
        metrics = [
            *self.training.finish(),
            *self.delivery.finish(servers.aggregator),
            *self._choices(),
            *self._budgets(),
            *([] if self.market is None else self.market.finish()),
            *attack(self.scenario, self.training, self.delivery, self.source.child("canary")),
        ]
        claims = claims_of(self.scenario, self.training, self.delivery, self.source)
        return Findings(tuple(metrics), claims)

    def _choices(self) -> list[Metric]:
        stage = self.training.stage
        return [] if stage is None else choice_metrics(self.delivery, stage)

    def _budgets(self) -> list[Metric]:
        """Tell what each flow took, and that nobody passed the cap."""
        users = self.scenario.population.users
        flows: dict[str, int] = {}
        least = 0
        for account in self.accounts.values():
            least = min(least, int(account.wallets.left.min()))
            for name, micro in account.spent.items():
                flows[name] = flows.get(name, 0) + micro
        spent = [
            Metric(f"spent.{name.replace(' ', '_')}", flows[name] / 1e6 / users, n=users)
            for name in sorted(flows)
        ]
        return [*spent, Metric("budget_overspent", float(least < 0), n=users)]
