"""The pipeline of published models: records come, models go out, and everybody may attack them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from noisefloor.privacy import Claim
from noisefloor.publication.model_methods.private_sgd_method import PrivateSgdPlan
from noisefloor.publication.published_model import PublishedModel
from noisefloor.publication.records import Records
from noisefloor.randomness import SeededSource
from noisefloor_sim.behaviour import Day
from noisefloor_sim.devices import Account
from noisefloor_sim.hosting import Servers
from noisefloor_sim.network import HOUR_S, Steps
from noisefloor_sim.pipelines.base import Findings, Metric, NamedClaim, Pipeline, Stage
from noisefloor_sim.pipelines.models.arrivals import Arrivals
from noisefloor_sim.pipelines.models.asking import Planner
from noisefloor_sim.pipelines.models.block import ModelsBlock, block_of
from noisefloor_sim.pipelines.models.canary_games import ALPHA, CanaryGames
from noisefloor_sim.pipelines.models.claims import claims_of
from noisefloor_sim.pipelines.models.evaluation import accuracy_metrics
from noisefloor_sim.pipelines.models.held import Holdings
from noisefloor_sim.pipelines.models.holder import DataHolder
from noisefloor_sim.pipelines.models.informed_games import CANDIDATES, attack_missing_record
from noisefloor_sim.pipelines.models.reading import model_of
from noisefloor_sim.pipelines.models.release_games import attack_missing_value, attack_synthetic
from noisefloor_sim.pipelines.models.shadow_games import ShadowGame
from noisefloor_sim.pipelines.models.spending import model_metrics, spending_metrics
from noisefloor_sim.pipelines.models.table_games import attack_tables, last_records
from noisefloor_sim.pipelines.models.weekly_games import attack_newcomers
from noisefloor_sim.population import Cohort
from noisefloor_sim.scenario.model import Scenario

DAY_S = 24 * HOUR_S
_AFTER_S = 0.5 * HOUR_S
"""How long after the end of a day a release is made: what came by then is in it."""

_FEWEST_IN_POOL = 16


@dataclass(slots=True)
class ModelsPipeline(Pipeline):
    """Models published of records that arrive day by day, at one point of a sweep.

    Attributes:
        scenario: Of the world.
        source: Of all coins of this pipeline.
        arrivals: Whose records have come.
        holder: Who publishes.
    """

    scenario: Scenario
    source: SeededSource = field(init=False)
    arrivals: Arrivals = field(init=False)
    holder: DataHolder = field(init=False)

    def __post_init__(self) -> None:
        self.source = SeededSource(self.scenario.seed, "pipeline", "models")
        holdings = Holdings.of(self.scenario)
        planner = Planner(holdings.encoding, self.block, self.scenario.variant)
        self.arrivals = Arrivals.of(self.scenario)
        self.holder = DataHolder(self.scenario, holdings, planner, self.source.child("holder"))
        if self.block.method == PrivateSgdPlan.NAME:
            use_one_thread()
        # What the method refuses, it refuses before a day has passed.
        planner.at(max(2, holdings.owners))

    @property
    def block(self) -> ModelsBlock:
        """The settings."""
        return block_of(self.scenario)

    @property
    def holdings(self) -> Holdings:
        """Who holds which record."""
        return self.holder.holdings

    @property
    def release_days(self) -> range:
        """The days at whose end a model is published."""
        every = self.block.release_every_days
        return range(min(every, self.scenario.days) - 1, self.scenario.days, every)

    def phases(self, stage: Stage) -> Iterable[Steps]:
        """Publish again and again."""
        return (self._publish(stage),)

    def wake(self, cohort: Cohort, day: int, lived: Day, account: Account) -> Iterator[bytes]:
        """Note whose record arrives; nothing is sent to the aggregator."""
        self.arrivals.note(cohort, day)
        return iter(())

    def finish(self, servers: Servers) -> Findings:
        """Score the releases, let the adversary guess, and state the claims."""
        releases = self.holder.releases
        spent = spending_metrics(self.holder)
        if not releases:
            return Findings(tuple(spent), ())
        models = [
            model_of(self.block.method, one.content, self.source.child("recipient", number))
            for number, one in enumerate(releases)
        ]
        plans = [one.plan for one in releases]
        attacks, claims = self._attacked(models)
        metrics = [
            *accuracy_metrics(releases, models, self.holdings, self.source.child("open")),
            *spent,
            *model_metrics(plans, models[0].parameters),
            *attacks,
            Metric("data.users", float(self.holdings.users)),
            Metric("data.reused", float(self.holdings.is_reused)),
        ]
        return Findings(tuple(metrics), claims)

    def _publish(self, stage: Stage) -> Steps:
        for day in self.release_days:
            yield stage.env.timeout((day + 1) * DAY_S + _AFTER_S - stage.env.now)
            owners = self.arrivals.by(day) & ~self.holdings.is_test
            self.holder.publish(day, owners)

    def _attacked(
        self, models: list[PublishedModel]
    ) -> tuple[list[Metric], tuple[NamedClaim, ...]]:
        """Play every game, and state the claims with what was audited."""
        releases, holdings = self.holder.releases, self.holdings
        plans = [one.plan for one in releases]
        faulty = self.holder.planner.faulty(plans[0].wanted.declared_size)
        coins = self.source.child("canary")
        games = CanaryGames.play(plans, faulty, self.block.canaries, coins)
        metrics = [] if games is None else games.metrics()
        found, members = self._membership()
        metrics += found
        metrics += attack_newcomers(releases, models, holdings)
        metrics += attack_missing_value(releases[-1], models[-1], holdings)
        if self.block.method == "synthetic-table":
            metrics += attack_synthetic(releases[-1], holdings)
        return metrics, claims_of(plans, games, members)

    def _membership(self) -> tuple[list[Metric], Claim | None]:
        """Train shadows on a pool of people, and on the same pool without any noise."""
        pool = self._pool()
        if pool is None:
            return [], None
        plan = self.holder.planner.at(pool.count // 2)
        game = ShadowGame(plan, pool, self.block.shadows, self.source.child("shadows"))
        runs = game.run()
        audited = game.audit(runs, alpha=ALPHA, delta=plan.proved.delta)
        bare = self.holder.planner.bare(pool.count // 2)
        planted = ShadowGame(bare, pool, self.block.shadows, self.source.child("bare"))
        metrics = [
            *game.metrics(runs),
            *planted.planted_metrics(),
            *attack_missing_record(plan, pool, self.source.child("missing-record")),
            *attack_tables(
                plan,
                last_records(pool, CANDIDATES),
                self.source.child("tables"),
                has_weeks=len(self.holder.releases) > 1,
            ),
        ]
        return metrics, Claim(plan.wanted.cost, plan.proved, audited)

    def _pool(self) -> Records | None:
        """Return an even number of records, of people who are not in the data set."""
        users = np.flatnonzero(self.holdings.is_test)
        count = min(self.block.pool, len(users)) // 2 * 2
        return self.holdings.records[users[:count]] if count >= _FEWEST_IN_POOL else None


def use_one_thread() -> None:
    """Let torch sum in one order: the same bytes on any number of cores, and of jobs."""
    from torch import set_num_threads  # lazy: only one method needs torch

    set_num_threads(1)
