"""The pipeline of fine-tuning: texts come, models go out, and everybody may attack them.

It is a pipeline of its own and not published models with another kind of record. What the two
share is moved to ``pipelines.releases``: holder, requests, residuals, ledger, canaries, shadow
models. What is left has little in common: tables have encodings, synthetic tables, differencing
games and noise per parameter; texts have an encoder whose frozen layers run once for a whole
sweep, clipping groups with a check of their own, masks, and diagnostics for experiments. One block
of settings for both would have had more rules about what does not go together than settings.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.privacy import Claim, FlowEvidence, Guarantee
from noisefloor.publication.fine_tuning import TextModelFile
from noisefloor.publication.fine_tuning.methods import HeadThenAdaptersPlan
from noisefloor.publication.methods import TextHeadPlan, TextLayersPlan, TextPlan
from noisefloor.randomness import SeededSource
from noisefloor.tables import TextRecords
from noisefloor_sim.deploy.hosting import Servers
from noisefloor_sim.inspection import DeviceFrame
from noisefloor_sim.pipelines import api, releases
from noisefloor_sim.pipelines.finetuning.block import MADE_UP, FinetuningBlock, block_of
from noisefloor_sim.pipelines.finetuning.clipping_check import ClippingCheck, check_clipping
from noisefloor_sim.pipelines.finetuning.diagnostics import diagnose
from noisefloor_sim.pipelines.finetuning.noisy_trainings import noisy_trainings
from noisefloor_sim.pipelines.finetuning.plain_head import (
    ALMOST_NONE,
    fit_plain_head,
    head_logits,
)
from noisefloor_sim.pipelines.finetuning.text_assignment import (
    FrozenTexts,
    UserTexts,
    frozen_texts,
)
from noisefloor_sim.pipelines.finetuning.text_evaluation import TextEvaluation
from noisefloor_sim.pipelines.finetuning.text_terms import TextTerms, accountant_guarantee
from noisefloor_sim.pipelines.releases import ShadowModelAttack
from noisefloor_sim.scenario import Scenario
from noisefloor_sim.world import BudgetAccount, Cohort, Steps

FLOW = "fine-tuning"
"""What the evidence calls the releases of this pipeline."""

_FEWEST_IN_POOL = 16


@dataclass(slots=True)
class FinetuningPipeline(api.Pipeline):
    """Models published of texts that arrive day by day, at one point of a sweep.

    Attributes:
        scenario: Of the world.
        source: Of all randomness of this pipeline.
        texts: Who holds which text.
        frozen: What the frozen encoder made of them.
        arrivals: Whose texts have come.
        holder: Publishes models of them.
    """

    scenario: Scenario
    source: SeededSource = field(init=False)
    texts: UserTexts = field(init=False)
    frozen: FrozenTexts = field(init=False)
    arrivals: releases.Arrivals = field(init=False)
    holder: releases.DataHolder[TextPlan] = field(init=False)

    def __post_init__(self) -> None:
        releases.use_one_thread()
        block = self.block
        self.source = SeededSource(self.scenario.seed, "pipeline", "finetuning")
        self.texts = UserTexts.of(self.scenario)
        self.frozen = frozen_texts(block, self.scenario.seed, self.texts)
        self.arrivals = releases.Arrivals.of(self.scenario, "finetuning", block.join_over_days)
        terms = TextTerms(block, self.texts, self.frozen)
        self.holder = releases.DataHolder(terms, self.source.child("holder"))
        # What the method refuses, it refuses before a day has passed.
        terms.plan(self._planned_size)

    @property
    def block(self) -> FinetuningBlock:
        """The settings."""
        return block_of(self.scenario)

    @property
    def release_days(self) -> range:
        """The days at whose end a model is published."""
        return releases.release_days(self.scenario.days, self.block.release_every_days)

    @property
    def _planned_size(self) -> int:
        return max(2, self.texts.owners)

    def phases(self, context: api.SimulationContext) -> Iterable[Steps]:
        """Open the publisher, and publish at the end of each period."""
        self.holder.open(context)
        return (releases.publishing(context, self.release_days, self._publish),)

    def _publish(self, day: int) -> None:
        self.frozen.fill(self.block.kept_layers)
        with self.frozen.used():
            self.holder.publish(day, self.arrivals.by(day) & ~self.texts.is_test)

    def wake(self, cohort: Cohort, day: int, account: BudgetAccount) -> Iterator[DeviceFrame]:
        """Note whose text arrives; nothing is sent to the aggregator."""
        self.arrivals.note(cohort, day)
        return iter(())

    def planned_claims(self) -> tuple[api.PlannedClaim, ...]:
        """Return the claims of one release, and of all that the budget of the data set covers."""
        plan, total = self.holder.terms.plan(self._planned_size), self.block.total_budget
        return releases.planned_claims(plan, len(self.release_days), total, total)

    def finish(self, servers: Servers, evidence: Mapping[str, FlowEvidence]) -> api.Findings:
        """Score the releases, let the adversary guess, and state the claims."""
        made = self.holder.releases
        checked = self._clipping()
        fit = self._fit(checked)
        metrics = releases.spending_metrics(self.holder, accountant_guarantee) + self._data()
        if not made:
            return api.Findings(tuple(metrics), (), (fit.evidence,))
        plans = [one.plan for one in made]
        scored = TextEvaluation(self.texts, self.frozen)
        metrics += scored.metrics([one.content for one in made], made[-1].owners)
        parameters = TextModelFile.read(made[0].content).parameters
        metrics += releases.model_metrics(plans, parameters) + training_metrics(plans[0])
        metrics += [*fit.metrics(), *checked.metrics()]
        if self.block.experiment:
            metrics += diagnose(
                plans[0], self.texts.records[made[0].owners], self.frozen, self._child("shown")
            )
        attacks, claims = self._attacked(scored, fit.evidence)
        return api.Findings((*metrics, *attacks), claims, (fit.evidence,))

    def _child(self, name: str) -> SeededSource:
        return self.source.child(name)

    def _data(self) -> list[api.Metric]:
        users = float(self.texts.users)
        is_made_up = MADE_UP in (self.block.source, self.block.backbone)
        return [
            api.Metric("data.users", users),
            api.Metric("data.cut", float(self.frozen.cut)),
            api.Metric("data.made_up", float(is_made_up)),
        ]

    def _clipping(self) -> ClippingCheck:
        """Play a canary through the training, if it is this process that trains."""
        made = self.holder.releases
        if not made or not made[0].residuals.is_seen:
            return ClippingCheck(())
        return check_clipping(made[0].plan, self._child("clipping"))

    def _fit(self, checked: ClippingCheck) -> releases.ReleaseFit:
        """Test the noise of all releases, the clipping, and compare them with the ledger."""
        residuals = [one.residuals for one in self.holder.releases]
        for number, cause in enumerate(checked.causes):
            residuals[0].causes[f"canary {number}"] = cause
        faults = self.holder.ledger_faults()
        return releases.fit_releases(residuals, faults, self._child("residuals"), FLOW)

    def _attacked(
        self, scored: TextEvaluation, evidence: FlowEvidence
    ) -> tuple[list[api.Metric], tuple[api.NamedClaim, ...]]:
        """Mount the selected attacks, and state the claims with what was audited."""
        plans = [one.plan for one in self.holder.releases]
        games = None
        if self.scenario.mounts("finetuning", "canary"):
            count, source = self.block.canaries, self._child("canary")
            games = releases.CanaryAudit.play(plans, None, count, source)
        metrics = [] if games is None else games.metrics()
        members: Claim | None = None
        pool = self._pool()
        if pool is not None and self.scenario.mounts("finetuning", "members"):
            found, members = self._membership(scored, pool)
            metrics += found
        claims = releases.claims_of(plans, games, members, self.block.total_budget, evidence)
        return metrics, claims

    def _membership(
        self, scored: TextEvaluation, pool: TextRecords
    ) -> tuple[list[api.Metric], Claim]:
        """Train shadow models on a pool of people, and heads without privacy on the same pool."""
        plan = self.holder.terms.plan(pool.count // 2)
        features, classes = self.frozen.features(pool), pool.schema.classes.size

        def release(row: NDArray[np.bool_], own: SeededSource) -> NDArray[np.float64]:
            with self.frozen.used():
                content = plan.release(pool[row], own.child("release"))
            return scored.log_odds(content, pool)

        def bare(row: NDArray[np.bool_], own: SeededSource) -> NDArray[np.float64]:
            head = fit_plain_head(features[row], pool.labels[row], classes, ALMOST_NONE)
            return releases.label_log_odds(head_logits(features, head), pool.labels)

        cost, count, shadows = plan.spec.cost, pool.count, self.block.shadows
        reason = "there is no noise in the model"
        nothing = Guarantee.none(reason, cost.neighbours, cost.model)
        return releases.play_membership(
            ShadowModelAttack(release, cost, plan.proved, count, shadows, self._child("shadows")),
            ShadowModelAttack(bare, cost, nothing, count, shadows, self._child("bare")),
        )

    def _pool(self) -> TextRecords | None:
        """Return an even number of texts, of people who are not in the data set."""
        users = np.flatnonzero(self.texts.is_test)
        count = min(self.block.pool, len(users)) // 2 * 2
        return self.texts.records[users[:count]] if count >= _FEWEST_IN_POOL else None


def training_metrics(plan: TextPlan) -> list[api.Metric]:
    """Return how many numbers a step clips and noises, by how much, and in how many groups."""
    metrics: list[api.Metric] = []
    updated = updated_numbers(plan)
    if updated is not None:
        metrics.append(api.Metric("training.updated", float(updated)))
    for sgd in tuple(noisy_trainings(plan).values())[-1:]:
        metrics += [
            api.Metric("training.noise_multiplier", sgd.noise_multiplier),
            api.Metric("training.groups", float(len(sgd.clipping.bounds))),
            api.Metric("training.steps", float(sgd.steps)),
        ]
    return metrics


def updated_numbers(plan: TextPlan) -> int | None:
    """Return how many numbers a step changes, by the plan."""
    if isinstance(plan, TextLayersPlan):
        last = plan.training
        return (last.adapters if isinstance(last, HeadThenAdaptersPlan) else last).updated
    if isinstance(plan, TextHeadPlan):
        classes = plan.spec.schema.classes.size
        return classes * (plan.backbone.width * len(plan.pooled) + 1)
    return None
