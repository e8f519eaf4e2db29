"""The collection pipeline: wearables hold records, a server learns, users ask."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from noisefloor.accounting.entry import MICRO, Amount
from noisefloor.collection.course import RecordCourse
from noisefloor.collection.schema import Records
from noisefloor.randomness import SeededSource
from noisefloor.roles.outcomes import Counters
from noisefloor_sim.behaviour import Day
from noisefloor_sim.devices import Account
from noisefloor_sim.hosting import Servers
from noisefloor_sim.network import Steps
from noisefloor_sim.pipelines.base import Findings, Metric, Pipeline, Stage
from noisefloor_sim.pipelines.collection.block import block_of
from noisefloor_sim.pipelines.collection.books import question_metrics, round_metrics
from noisefloor_sim.pipelines.collection.claims import claims_of
from noisefloor_sim.pipelines.collection.costs import debited
from noisefloor_sim.pipelines.collection.courses import course_of
from noisefloor_sim.pipelines.collection.evaluation import accuracy_metrics
from noisefloor_sim.pipelines.collection.games import attack
from noisefloor_sim.pipelines.collection.held import Holdings, schema_is_public
from noisefloor_sim.pipelines.collection.phases import QUESTION, REPORTS, CollectionPhases
from noisefloor_sim.population import Cohort
from noisefloor_sim.scenario.model import Scenario

FLOWS = (*REPORTS, QUESTION)


@dataclass(slots=True)
class CollectionPipeline(Pipeline):
    """Records collected to learn a classifier, at one point of a sweep."""

    scenario: Scenario
    source: SeededSource = field(init=False)
    phases_: CollectionPhases = field(init=False)
    accounts: dict[int, Account] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.source = SeededSource(self.scenario.seed, "pipeline", "collection")
        holdings = Holdings.of(self.scenario)
        course = course_of(self.scenario, holdings)
        coins = self.source.child("devices")
        self.phases_ = CollectionPhases(self.scenario, course, holdings, coins)

    @property
    def course(self) -> RecordCourse:
        """What is collected and learnt."""
        return self.phases_.course

    @property
    def content(self) -> bytes:
        """What was learnt, as bytes that the course reads."""
        return self.phases_.content

    @property
    def learns(self) -> RecordCourse:
        """The course."""
        return self.course

    @property
    def counters(self) -> tuple[Counters, ...]:
        """Those of the server that learns."""
        learner = self.phases_.learner
        return () if learner is None else (learner.counters,)

    def phases(self, stage: Stage) -> Iterable[Steps]:
        """Collect from the first hour on."""
        return (self.phases_.run(stage),)

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
        wanted = len(phases.days_to_ask) * block_of(self.scenario).questions_per_day
        if trained:
            rounds = range(self.course.rounds)
            budget -= sum(phases.costs.of_round(self.course, number) for number in rounds)
        cost = debited(phases.costs.question)
        return max(0, min(wanted, budget // cost)) if cost else wanted

    def wake(self, cohort: Cohort, day: int, lived: Day, account: Account) -> Iterator[bytes]:
        """Send nothing by itself: what is sent is sent in phases."""
        self.accounts[cohort.number] = account
        return iter(())

    def finish(self, servers: Servers) -> Findings:
        """Score the model, let the adversary guess, and state the claims."""
        stage, learner = self.phases_.stage, self.phases_.learner
        if stage is None or learner is None:
            return Findings((), ())
        block, columns = block_of(self.scenario), self._columns()
        canaries = self._canaries(stage, block.canaries)
        asked, is_everyone = self.questions(trained=False), block.askers == "everyone"
        metrics = [
            *accuracy_metrics(self.phases_, stage),
            *round_metrics(self.phases_.books, learner),
            *question_metrics(self.phases_.questions, self.phases_.first_day),
            *self._budget(),
            *self._sizes(),
            *attack(self.course, columns, canaries, asked, self.source.child("canary")),
        ]
        claims = claims_of(
            self.course,
            columns,
            asked=asked,
            asked_by_owners=self.questions(trained=True) if is_everyone else 0,
            canaries=block.canaries,
            source=self.source.child("audit"),
        )
        return Findings(tuple(metrics), claims)

    def _columns(self) -> tuple[int, ...]:
        """Return the attributes that reports are about."""
        if self.course.method == "joint-bayes":
            return tuple(range(len(self.course.schema)))
        return self.course.columns(self.content)

    def _canaries(self, stage: Stage, count: int) -> Records:
        """Return records of as many owners, those of the first cohort over and over."""
        held = self.phases_.holdings.people(stage.cohort(0)).records
        return held[np.arange(count) % len(held)]

    def _budget(self) -> list[Metric]:
        """Tell what each flow took of a mean user, and that nobody passed the cap."""
        users = self.scenario.population.users
        cap = Amount.budget(self.scenario.budget, 0.0).micro_epsilon
        accounts = list(self.accounts.values())
        spent = {name: sum(account.spent.get(name, 0) for account in accounts) for name in FLOWS}
        over = sum(int((account.wallets.left < 0).any(axis=1).sum()) for account in accounts)
        total = sum(spent.values())
        return [
            *(
                Metric(f"spent.{name.replace(' ', '_')}", micro / MICRO / users, n=users)
                for name, micro in spent.items()
            ),
            Metric("spent", total / MICRO / users, n=users),
            Metric("spent_share", total / (cap * users), n=users),
            Metric("budget_overspent", float(over), n=users),
        ]

    def _sizes(self) -> list[Metric]:
        """Tell what was chosen from public figures, and how large the model is."""
        holdings, course = self.phases_.holdings, self.course
        learnt = course.learnt(self.content)
        vectors = len(learnt.arrays.get("vectors", ()))
        return [
            Metric("sizes.attributes", float(course.chosen)),
            Metric("sizes.classes", float(course.cut.most)),
            Metric("model.bytes", float(len(self.content))),
            Metric("model.support_vectors", float(vectors)),
            Metric("data.rows", float(holdings.rows)),
            Metric("data.reused", float(holdings.is_reused)),
            Metric("data.ranges_public", float(schema_is_public(block_of(self.scenario)))),
        ]
