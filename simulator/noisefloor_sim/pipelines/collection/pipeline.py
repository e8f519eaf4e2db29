"""The collection pipeline: wearables hold records, a server trains a model, users query it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from noisefloor.accounting import MICRO, Amount
from noisefloor.collection.collecting import ReportingSelector
from noisefloor.privacy import FlowEvidence, Guarantee, Neighbours
from noisefloor.randomness import SeededSource
from noisefloor.roles import FrameCounters
from noisefloor.tables import ScaledRecords
from noisefloor.tasks import RecordTask
from noisefloor_sim.deploy.hosting import Servers
from noisefloor_sim.inspection import DeviceFrame, Flow
from noisefloor_sim.pipelines import api
from noisefloor_sim.pipelines.collection import record_assignment
from noisefloor_sim.pipelines.collection.attacks import attack
from noisefloor_sim.pipelines.collection.block import block_of
from noisefloor_sim.pipelines.collection.claims import (
    PHASES,
    claims_of,
    debited,
    phase_claims,
)
from noisefloor_sim.pipelines.collection.evaluation import accuracy_metrics
from noisefloor_sim.pipelines.collection.phases import (
    QUESTION,
    REPORTS,
    CollectionPhases,
    question_metrics,
    round_metrics,
)
from noisefloor_sim.pipelines.collection.witness_audit import (
    AuditedPhase,
    Bounds,
    Step,
    planted_task,
    witness_bounds,
)
from noisefloor_sim.scenario import Scenario
from noisefloor_sim.world import BudgetAccount, Cohort, Steps


def training_task_of(
    scenario: Scenario, assignment: record_assignment.RecordAssignment
) -> RecordTask:
    """Return the training task; sizes that are not given follow from public figures."""
    block = block_of(scenario)
    return RecordTask(
        assignment.schema,
        block.epsilon,
        assignment.owners,
        block.method,
        attributes=block.attributes,
        classes=block.classes,
        selection=block.selection,
        form=block.form,
        classifier=block.classifier,
        weight=block.weight,
        variant=scenario.variant,
        queries="protected" if block.questions == "protected" else "on-device",
        seed=scenario.seed,
        range_share=block.range_share if block.ranges == "private" else 0.0,
    )


FLOWS = (*REPORTS.values(), QUESTION)
PER = {"ranges": "report", "selection": "report", "training": "report", "question": "question"}
PER |= {"asker": "run", "owner": "run"}
"""What each claim covers."""


@dataclass(slots=True)
class CollectionPipeline(api.Pipeline):
    """Records collected to learn a classifier, at one point of a sweep."""

    scenario: Scenario
    source: SeededSource = field(init=False)
    phases_: CollectionPhases = field(init=False)
    accounts: dict[int, BudgetAccount] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.source = SeededSource(self.scenario.seed, "pipeline", "collection")
        assignment = record_assignment.RecordAssignment.of(self.scenario)
        task = training_task_of(self.scenario, assignment)
        randomness = self.source.child("devices")
        self.phases_ = CollectionPhases(self.scenario, task, assignment, randomness)

    @property
    def task(self) -> RecordTask:
        """What is collected, and the classifier that is trained from it."""
        return self.phases_.task

    @property
    def content(self) -> bytes:
        """The fitted model, as bytes that the training task reads."""
        return self.phases_.content

    @property
    def training_task(self) -> RecordTask:
        """The training task."""
        return self.task

    @property
    def training_flows(self) -> tuple[Flow, ...]:
        """Reports of each round, as they are declared."""
        return self.phases_.declared_rounds()

    @property
    def counters(self) -> tuple[FrameCounters, ...]:
        """Those of the server that learns."""
        learner = self.phases_.learner
        return () if learner is None else (learner.counters,)

    def phases(self, context: api.SimulationContext) -> Iterable[Steps]:
        """Collect from the first hour on."""
        return (self.phases_.run(context),)

    @property
    def phase_wakes(self) -> int:
        """Every round and every day with questions wakes every cohort."""
        return self.phases_.wakes

    def questions(self, *, trained: bool) -> int:
        """Return how often one user may ask the server: as often as wanted, and as is covered.

        Args:
            trained: Whether the user has paid for selection and training before.
        """
        phases, budget = self.phases_, Amount.budget(self.scenario.budget, 0.0).micro_epsilon
        requested = len(phases.days_to_ask) * block_of(self.scenario).questions_per_day
        if trained:
            rounds = range(self.task.rounds)
            budget -= sum(phases.costs.of_round(self.task, number) for number in rounds)
        cost = debited(phases.costs.question)
        return max(0, min(requested, budget // cost)) if cost else requested

    def wake(self, cohort: Cohort, day: int, account: BudgetAccount) -> Iterator[DeviceFrame]:
        """Send nothing by itself: what is sent is sent in phases."""
        self.accounts[cohort.number] = account
        return iter(())

    def finish(self, servers: Servers, evidence: Mapping[str, FlowEvidence]) -> api.Findings:
        """Score the model, let the adversary guess, and state the claims."""
        context, learner = self.phases_.context, self.phases_.learner
        if context is None or learner is None:
            return api.Findings((), ())
        block, columns = block_of(self.scenario), self._columns()
        canaries = self._canaries(context, block.canaries)
        asked = self.questions(trained=False)
        metrics = [
            *accuracy_metrics(self.phases_, context),
            *round_metrics(self.task.phases, self.phases_.statistics, learner),
            *question_metrics(self.phases_.questions, self.phases_.first_day),
            *self._budget(),
            *self._sizes(),
            *attack(
                self.task, columns, canaries, asked, self.source.child("canary"), self._is_mounted
            ),
        ]
        claims = claims_of(
            self.task,
            columns,
            budget=self.scenario.budget,
            asked=asked,
            asked_by_owners=self._questions_of_owners(),
            bounds=self._bounds(columns) if self._is_mounted("audit") else {},
            evidence={
                name: evidence[flow.name]
                for name, flow in self.phases_.flows.items()
                if flow.name in evidence
            },
        )
        return api.Findings(tuple(metrics), claims)

    def prices(self) -> Mapping[str, api.Price]:
        """Return the guarantees of a report in either round, and of a question."""
        costs = self.phases_.costs
        return {
            flow: api.Price(claim.claimed, claim.proved)
            for flow, claim in zip(FLOWS, map(costs.of_phase, PHASES), strict=True)
        }

    def paper_claim(self) -> Guarantee:
        """Return the epsilon of one phase, which the paper says of the whole."""
        return Guarantee(self.task.epsilon, Neighbours.USER)

    def _bounds(self, columns: tuple[int, ...]) -> dict[str, Bounds]:
        """Return what witnesses prove of each claim."""
        flows, planted = self.phases_.flows, planted_task(self.task)
        model = self.phases_.model or self.task.fitted_model(self.content)
        steps: dict[str, Step] = {}
        if planted is not None:
            trainer, selector = planted.trainer, planted.selector
            steps["training"] = lambda records, source: trainer.report(records, columns, source)
            steps["question"] = lambda records, source: trainer.query(
                model, records, columns, source
            )
            if planted.range_phase is not None:
                steps["ranges"] = planted.range_phase.report
            if isinstance(selector, ReportingSelector):
                steps["selection"] = lambda records, source: selector.report(
                    records, source
                ).columns()
        phases = {
            name: AuditedPhase(flow, columns, model, steps.get(name))
            for name, flow in flows.items()
        }
        return witness_bounds(phases, self.source.child("audit"))

    def planned_claims(self) -> tuple[api.PlannedClaim, ...]:
        """Return the claims of each phase and of the whole run.

        Those of attributes with most classes: which attributes are chosen is not known yet.
        """
        costs, asked = self.phases_.costs, self.questions(trained=False)
        by_owners = self._questions_of_owners()
        claims = phase_claims(
            self.task,
            costs,
            budget=self.scenario.budget,
            asked=asked,
            asked_by_owners=by_owners,
        )
        cap = Amount.budget(self.scenario.budget, 0.0).micro_epsilon
        covered = range(costs.covered_rounds(self.task, cap))
        rounds = sum(costs.of_round(self.task, number) for number in covered)
        question = debited(costs.question)
        micro = {"asker": asked * question, "owner": rounds + by_owners * question}
        return tuple(
            api.PlannedClaim(
                name, PER[name], claim, micro[name] / MICRO if name in micro else None
            )
            for name, claim in claims.items()
        )

    def _questions_of_owners(self) -> int:
        """Return how often an owner of a training record may ask the server."""
        is_everyone = block_of(self.scenario).askers == "everyone"
        return self.questions(trained=True) if is_everyone else 0

    def _is_mounted(self, game: str) -> bool:
        return self.scenario.mounts("collection", game)

    def _columns(self) -> tuple[int, ...]:
        """Return the attributes that reports are about."""
        if self.task.method == "joint-bayes":
            return tuple(range(len(self.task.schema)))
        return self.task.columns(self.content)

    def _canaries(self, context: api.SimulationContext, count: int) -> ScaledRecords:
        """Return records of as many owners, those of the first cohort over and over."""
        cohort_records = self.phases_.assignment.people(context.cohort(0)).records
        canaries = cohort_records[np.arange(count) % len(cohort_records)]
        return self.task.within_ranges(self.content, canaries)

    def _budget(self) -> list[api.Metric]:
        """Tell what each flow took of a mean user, and that nobody passed the cap."""
        users = self.scenario.population.users
        cap = Amount.budget(self.scenario.budget, 0.0).micro_epsilon
        accounts = list(self.accounts.values())
        spent = {name: sum(account.spent.get(name, 0) for account in accounts) for name in FLOWS}
        over = sum(
            int((account.device_budgets.left < 0).any(axis=1).sum()) for account in accounts
        )
        total = sum(spent.values())
        return [
            *(
                api.Metric(f"spent.{name.replace(' ', '_')}", micro / MICRO / users, n=users)
                for name, micro in spent.items()
            ),
            api.Metric("spent", total / MICRO / users, n=users),
            api.Metric("spent_share", total / (cap * users), n=users),
            api.Metric("budget_overspent", float(over), n=users),
        ]

    def _sizes(self) -> list[api.Metric]:
        """Tell what was chosen from public figures, and how large the model is."""
        assignment, task = self.phases_.assignment, self.task
        fitted = task.fitted_model(self.content)
        vectors = len(fitted.arrays.get("vectors", ()))
        return [
            api.Metric("sizes.attributes", float(task.chosen)),
            api.Metric("sizes.classes", float(task.discretiser.most)),
            api.Metric("model.bytes", float(len(self.content))),
            api.Metric("model.support_vectors", float(vectors)),
            api.Metric("data.rows", float(assignment.rows)),
            api.Metric("data.reused", float(assignment.is_reused)),
            api.Metric(
                "data.ranges_public",
                float(record_assignment.schema_is_public(block_of(self.scenario))),
            ),
        ]
