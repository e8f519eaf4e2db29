"""The pipeline of published models: records come, models go out, and everybody may attack them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from noisefloor.adversary.audit import has_power
from noisefloor.privacy import Claim, FlowEvidence, Guarantee
from noisefloor.publication import PublishedModel
from noisefloor.publication.methods import ModelPlan, PrivateSgdPlan
from noisefloor.randomness import SeededSource
from noisefloor.tables import Records
from noisefloor_sim.deploy.hosting import Servers
from noisefloor_sim.inspection import DeviceFrame
from noisefloor_sim.pipelines import api
from noisefloor_sim.pipelines.models import differencing_attacks, inference_attacks
from noisefloor_sim.pipelines.models.block import ModelsBlock, block_of
from noisefloor_sim.pipelines.models.canary_audit import ALPHA, CanaryAudit
from noisefloor_sim.pipelines.models.claims import (
    EVERY,
    RELEASE,
    claims_of,
    model_metrics,
    spending_metrics,
)
from noisefloor_sim.pipelines.models.data_holder import Arrivals, DataHolder
from noisefloor_sim.pipelines.models.evaluation import accuracy_metrics, model_of
from noisefloor_sim.pipelines.models.membership_attacks import ShadowModelAttack
from noisefloor_sim.pipelines.models.publication_request import (
    Planner,
    cost_of,
    planned_ledger,
)
from noisefloor_sim.pipelines.models.record_assignment import UserRecordAssignment
from noisefloor_sim.pipelines.models.release_fit import ReleaseFit, fit_releases
from noisefloor_sim.scenario import Scenario
from noisefloor_sim.world import HOUR_S, BudgetAccount, Cohort, Steps

DAY_S = 24 * HOUR_S
_AFTER_S = 0.5 * HOUR_S
"""How long after the end of a day a release is made: what came by then is in it."""

_FEWEST_IN_POOL = 16


@dataclass(slots=True)
class ModelsPipeline(api.Pipeline):
    """Models published of records that arrive day by day, at one point of a sweep.

    Attributes:
        scenario: Of the world.
        source: Of all randomness of this pipeline.
        arrivals: Whose records have come.
        holder: Publishes models of them.
    """

    scenario: Scenario
    source: SeededSource = field(init=False)
    arrivals: Arrivals = field(init=False)
    holder: DataHolder = field(init=False)

    def __post_init__(self) -> None:
        self.source = SeededSource(self.scenario.seed, "pipeline", "models")
        assignment = UserRecordAssignment.of(self.scenario)
        planner = Planner(assignment.encoding, self.block, self.scenario.variant)
        self.arrivals = Arrivals.of(self.scenario)
        self.holder = DataHolder(self.scenario, assignment, planner, self.source.child("holder"))
        if self.block.method == PrivateSgdPlan.NAME:
            use_one_thread()
        # What the method refuses, it refuses before a day has passed.
        planner.at(max(2, assignment.owners))

    @property
    def block(self) -> ModelsBlock:
        """The settings."""
        return block_of(self.scenario)

    @property
    def assignment(self) -> UserRecordAssignment:
        """Who holds which record."""
        return self.holder.assignment

    @property
    def release_days(self) -> range:
        """The days at whose end a model is published."""
        every = self.block.release_every_days
        return range(min(every, self.scenario.days) - 1, self.scenario.days, every)

    def phases(self, context: api.SimulationContext) -> Iterable[Steps]:
        """Open the publisher, and publish at the end of each period."""
        self.holder.open(context)
        return (self._publish(context),)

    def wake(self, cohort: Cohort, day: int, account: BudgetAccount) -> Iterator[DeviceFrame]:
        """Note whose record arrives; nothing is sent to the aggregator."""
        self.arrivals.note(cohort, day)
        return iter(())

    def finish(self, servers: Servers, evidence: Mapping[str, FlowEvidence]) -> api.Findings:
        """Score the releases, let the adversary guess, and state the claims."""
        releases = self.holder.releases
        spent = spending_metrics(self.holder)
        if not releases:
            return api.Findings(tuple(spent), (), (self._fit().evidence,))
        models = [
            model_of(self.block.method, one.content, self.source.child("recipient", number))
            for number, one in enumerate(releases)
        ]
        plans = [one.plan for one in releases]
        fit = self._fit()
        attacks, claims = self._attacked(models, fit.evidence)
        metrics = [
            *accuracy_metrics(releases, models, self.assignment, self.source.child("open")),
            *spent,
            *model_metrics(plans, models[0].parameters),
            *fit.metrics(),
            *attacks,
            api.Metric("data.users", float(self.assignment.users)),
            api.Metric("data.reused", float(self.assignment.is_reused)),
        ]
        return api.Findings(tuple(metrics), claims, (fit.evidence,))

    def planned_claims(self) -> tuple[api.PlannedClaim, ...]:
        """Return the claims of one release, and of all that the budget of the data set covers.

        For as many records as there should be: how many arrive is not known yet.
        """
        plan = self.holder.planner.at(max(2, self.assignment.owners))
        ledger = planned_ledger(self.block, plan, len(self.release_days))
        covered = len(ledger.entries("users"))
        named = claims_of([plan] * max(1, covered), None, None, self._data_set_budget())
        whole_run = EVERY if covered > 1 else RELEASE
        spent = ledger.spent("users").epsilon if covered else cost_of(self.block).epsilon
        return tuple(
            api.PlannedClaim(
                one.mechanism,
                "run" if one.mechanism == EVERY else "release",
                one.claim,
                spent if one.mechanism == whole_run else None,
                self.block.budget,
            )
            for one in named
        )

    def _data_set_budget(self) -> Guarantee | None:
        """Return the budget of the data set as a claim of all its releases.

        The paper has no budget: in its variant all releases claim what each of them does.
        """
        if self.scenario.variant == "paper":
            return None
        cost, delta = cost_of(self.block), self.block.budget_delta
        return replace(cost, epsilon=self.block.budget, delta=delta)

    def _publish(self, context: api.SimulationContext) -> Steps:
        for day in self.release_days:
            yield context.env.timeout((day + 1) * DAY_S + _AFTER_S - context.env.now)
            owners = self.arrivals.by(day) & ~self.assignment.is_test
            self.holder.publish(day, owners)

    def _fit(self) -> ReleaseFit:
        """Test the noise of all releases, and compare them with the ledger."""
        residuals = [one.residuals for one in self.holder.releases]
        faults = self.holder.ledger_faults()
        return fit_releases(residuals, faults, self.source.child("residuals"))

    def _attacked(
        self, models: list[PublishedModel], evidence: FlowEvidence
    ) -> tuple[list[api.Metric], tuple[api.NamedClaim, ...]]:
        """Mount the selected attacks, and state the claims with what was audited."""
        releases, assignment = self.holder.releases, self.assignment
        plans = [one.plan for one in releases]
        games = self._canaries(plans) if self._mounts("canary") else None
        metrics = [] if games is None else games.metrics()
        found, members = self._pool_attacks()
        metrics += found
        if self._mounts("newcomer"):
            metrics += differencing_attacks.attack_newcomers(releases, models, assignment)
        if self._mounts("missing_value"):
            metrics += inference_attacks.attack_missing_value(releases[-1], models[-1], assignment)
        if self._mounts("nearest") and self.block.method == "synthetic-table":
            metrics += inference_attacks.attack_synthetic(releases[-1], assignment)
        return metrics, claims_of(plans, games, members, self._data_set_budget(), evidence)

    def _mounts(self, game: str) -> bool:
        return self.scenario.mounts("models", game)

    def _canaries(self, plans: list[ModelPlan]) -> CanaryAudit | None:
        faulty = self.holder.planner.faulty(plans[0].spec.declared_size)
        return CanaryAudit.play(plans, faulty, self.block.canaries, self.source.child("canary"))

    def _pool_attacks(self) -> tuple[list[api.Metric], Claim | None]:
        """Attack releases of a pool of people, and return the claim of such a release."""
        pool = self._pool()
        if pool is None:
            return [], None
        plan = self.holder.planner.at(pool.count // 2)
        metrics, claim = self._membership(plan, pool) if self._mounts("members") else ([], None)
        if self._mounts("missing_record"):
            metrics += inference_attacks.attack_missing_record(
                plan, pool, self.source.child("missing-record")
            )
        candidates, randomness = (
            differencing_attacks.last_records(pool, inference_attacks.CANDIDATES),
            self.source.child("tables"),
        )
        played = [name for name in differencing_attacks.TABLE_GAMES if self._mounts(name)]
        if len(self.holder.releases) < 2:
            played = [name for name in played if name != "difference"]
        metrics += differencing_attacks.attack_tables(plan, candidates, randomness, played)
        return metrics, claim or Claim(plan.spec.cost, plan.proved)

    def _membership(self, plan: ModelPlan, pool: Records) -> tuple[list[api.Metric], Claim]:
        """Train shadows on a pool of people, and on the same pool without any noise.

        The latter is the planted fault of the audit: an audit that misses it is blind, and so is
        one whose confidence is not far above delta. What it found holds all the same.
        """
        game = ShadowModelAttack(plan, pool, self.block.shadows, self.source.child("shadows"))
        runs = game.run()
        delta = plan.proved.delta
        audited = game.audit(runs, alpha=ALPHA, delta=delta)
        bare = self.holder.planner.bare(pool.count // 2)
        planted = ShadowModelAttack(bare, pool, self.block.shadows, self.source.child("bare"))
        without = planted.run()
        found = planted.audit(without, alpha=ALPHA, delta=delta)
        if not has_power(ALPHA, delta):
            found = replace(found, epsilon=0.0)
        claim = Claim(plan.spec.cost, plan.proved, audited, planted=found)
        return [*game.metrics(runs), *planted.planted_metrics(without)], claim

    def _pool(self) -> Records | None:
        """Return an even number of records, of people who are not in the data set."""
        users = np.flatnonzero(self.assignment.is_test)
        count = min(self.block.pool, len(users)) // 2 * 2
        return self.assignment.records[users[:count]] if count >= _FEWEST_IN_POOL else None


def use_one_thread() -> None:
    """Let torch sum in one order: the same bytes on any number of cores, and of jobs."""
    from torch import set_num_threads  # lazy: only one method needs torch

    set_num_threads(1)
