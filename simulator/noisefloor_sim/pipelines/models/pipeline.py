"""The pipeline of published models: records come, models go out, and everybody may attack them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

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
from noisefloor_sim.pipelines.models.claims import accountant_guarantee
from noisefloor_sim.pipelines.models.evaluation import accuracy_metrics, log_odds, model_of
from noisefloor_sim.pipelines.models.publication_request import Planner
from noisefloor_sim.pipelines.models.record_assignment import UserRecordAssignment
from noisefloor_sim.pipelines.models.release_terms import ModelTerms
from noisefloor_sim.pipelines.releases import (
    Arrivals,
    CanaryAudit,
    DataHolder,
    ReleaseFit,
    ShadowModelAttack,
    claims_of,
    fit_releases,
    model_metrics,
    planned_claims,
    play_membership,
    publishing,
    release_days,
    spending_metrics,
    use_one_thread,
)
from noisefloor_sim.scenario import Scenario
from noisefloor_sim.world import BudgetAccount, Cohort, Steps

_FEWEST_IN_POOL = 16


@dataclass(slots=True)
class ModelsPipeline(api.Pipeline):
    """Models published of records that arrive day by day, at one point of a sweep.

    Attributes:
        scenario: Of the world.
        source: Of all randomness of this pipeline.
        assignment: Who holds which record.
        planner: Plans releases.
        arrivals: Whose records have come.
        holder: Publishes models of them.
    """

    scenario: Scenario
    source: SeededSource = field(init=False)
    assignment: UserRecordAssignment = field(init=False)
    planner: Planner = field(init=False)
    arrivals: Arrivals = field(init=False)
    holder: DataHolder[ModelPlan] = field(init=False)

    def __post_init__(self) -> None:
        self.source = SeededSource(self.scenario.seed, "pipeline", "models")
        self.assignment = UserRecordAssignment.of(self.scenario)
        self.planner = Planner(self.assignment.encoding, self.block, self.scenario.variant)
        self.arrivals = Arrivals.of(self.scenario, "models", self.block.join_over_days)
        terms = ModelTerms(self.scenario, self.assignment, self.planner)
        self.holder = DataHolder(terms, self.source.child("holder"))
        if self.block.method == PrivateSgdPlan.NAME:
            use_one_thread()
        # What the method refuses, it refuses before a day has passed.
        self.planner.at(max(2, self.assignment.owners))

    @property
    def block(self) -> ModelsBlock:
        """The settings."""
        return block_of(self.scenario)

    @property
    def release_days(self) -> range:
        """The days at whose end a model is published."""
        return release_days(self.scenario.days, self.block.release_every_days)

    def phases(self, context: api.SimulationContext) -> Iterable[Steps]:
        """Open the publisher, and publish at the end of each period."""
        self.holder.open(context)
        return (publishing(context, self.release_days, self._publish),)

    def wake(self, cohort: Cohort, day: int, account: BudgetAccount) -> Iterator[DeviceFrame]:
        """Note whose record arrives; nothing is sent to the aggregator."""
        self.arrivals.note(cohort, day)
        return iter(())

    def finish(self, servers: Servers, evidence: Mapping[str, FlowEvidence]) -> api.Findings:
        """Score the releases, let the adversary guess, and state the claims."""
        releases = self.holder.releases
        spent = spending_metrics(self.holder, accountant_guarantee)
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
        """Return the claims of one release, and of all that the budget of the data set covers."""
        plan = self.planner.at(max(2, self.assignment.owners))
        days, total = len(self.release_days), self.block.total_budget
        return planned_claims(plan, days, total, self._data_set_budget())

    def _data_set_budget(self) -> Guarantee | None:
        """Return the budget of the data set as a claim of all its releases.

        The paper has no budget: in its variant all releases claim what each of them does.
        """
        if self.scenario.variant == "paper":
            return None
        return self.block.total_budget

    def _publish(self, day: int) -> None:
        self.holder.publish(day, self.arrivals.by(day) & ~self.assignment.is_test)

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
        faulty = self.planner.faulty(plans[0].spec.declared_size)
        return CanaryAudit.play(plans, faulty, self.block.canaries, self.source.child("canary"))

    def _pool_attacks(self) -> tuple[list[api.Metric], Claim | None]:
        """Attack releases of a pool of people, and return the claim of such a release."""
        pool = self._pool()
        if pool is None:
            return [], None
        plan = self.planner.at(pool.count // 2)
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
        bare = self._shadows(self.planner.bare(pool.count // 2), pool, "bare")
        return play_membership(self._shadows(plan, pool, "shadows"), bare)

    def _shadows(self, plan: ModelPlan, pool: Records, name: str) -> ShadowModelAttack:
        """Return an attack on releases of a plan, played by the code that publishes."""

        def release(row: NDArray[np.bool_], own: SeededSource) -> NDArray[np.float64]:
            content = plan.release(pool[row], own.child("release"))
            return log_odds(model_of(plan.NAME, content, own.child("recipient")), pool)

        count, source = self.block.shadows, self.source.child(name)
        return ShadowModelAttack(release, plan.spec.cost, plan.proved, pool.count, count, source)

    def _pool(self) -> Records | None:
        """Return an even number of records, of people who are not in the data set."""
        users = np.flatnonzero(self.assignment.is_test)
        count = min(self.block.pool, len(users)) // 2 * 2
        return self.assignment.records[users[:count]] if count >= _FEWEST_IN_POOL else None
