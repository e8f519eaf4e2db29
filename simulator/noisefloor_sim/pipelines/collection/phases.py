"""The phases of a collection on the clock: selection, training, questions on the days after.

What happened in the phases of a collection, in whole numbers over all cohorts.

Only scoring reads it. Sums of integers do not depend on the order in which cohorts wake.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.errors import BadParameter
from noisefloor.randomness import SeededSource
from noisefloor.roles import TrainingServer
from noisefloor.tables import Labels, ScaledRecords
from noisefloor.tasks import MOST_QUERIES, FittedModel, RecordTask
from noisefloor.wire import Kind
from noisefloor_sim.deploy.hosting import Receiver
from noisefloor_sim.inspection import device_frames
from noisefloor_sim.pipelines.api import Metric, SimulationContext
from noisefloor_sim.pipelines.collection.block import block_of
from noisefloor_sim.pipelines.collection.claims import PhaseCosts, debited
from noisefloor_sim.pipelines.collection.record_assignment import CohortRecords, RecordAssignment
from noisefloor_sim.pipelines.collection.record_flow import RecordFlow, RecordTruth
from noisefloor_sim.pipelines.collection.record_witnesses import WitnessBook, exchanged_places
from noisefloor_sim.pipelines.collection.reference_inputs import in_ranges
from noisefloor_sim.pipelines.collection.report_form import (
    question_form,
    range_form,
    selection_form,
    training_form,
)
from noisefloor_sim.scenario import Scenario
from noisefloor_sim.world import HOUR_S, Cohort, Steps, in_contact


@dataclass(slots=True)
class CollectionRoundStatistics:
    """One round.

    Attributes:
        reported: Reports that were paid for and sent.
        absent: Owners whose device was not in contact, or dropped out.
        refused: Owners whose budget did not cover a report.
    """

    reported: int = 0
    absent: int = 0
    refused: int = 0


@dataclass(slots=True)
class QuestionStatistics:
    """The protected questions of one day.

    Attributes:
        asked: Questions that were paid for and sent.
        refused: Questions that the budget did not cover.
        absent: Users who would have asked, without contact.
        answered: Questions whose answer came back.
        tested: Answers about records that nobody trained on.
        right: Those of them that name the true label.
    """

    asked: int = 0
    refused: int = 0
    absent: int = 0
    answered: int = 0
    tested: int = 0
    right: int = 0


def round_metrics(
    phases: Sequence[str],
    statistics: Sequence[CollectionRoundStatistics],
    learner: TrainingServer | None,
) -> list[Metric]:
    """Tell how many took part in each round, and how many of their reports were counted."""
    metrics = []
    for number, (name, stats) in enumerate(zip(phases, statistics, strict=False)):
        counted = 0 if learner is None else learner.summary(number).rows
        metrics += [
            Metric(f"{name}.reports", float(stats.reported)),
            Metric(f"{name}.reports_counted", float(counted), n=stats.reported),
            Metric(f"{name}.absent", float(stats.absent)),
            Metric(f"{name}.refused", float(stats.refused)),
        ]
    return metrics


def question_metrics(statistics: Sequence[QuestionStatistics], first: int) -> list[Metric]:
    """Tell how many questions were asked, refused and answered, on each day and in all.

    Args:
        statistics: Of the days on which questions are asked.
        first: The first of them.
    """
    metrics = [
        Metric(f"questions.{name}.day_{first + place}", float(getattr(stats, name)))
        for place, stats in enumerate(statistics)
        for name in ("asked", "refused")
    ]
    return metrics + [
        Metric(f"questions.{name}", float(sum(getattr(stats, name) for stats in statistics)))
        for name in ("asked", "refused", "absent", "answered")
        if statistics
    ]


DAY_S = 24 * HOUR_S
REPORTS = {
    "ranges": "range report",
    "selection": "selection report",
    "training": "training report",
}
"""The flows of reports, by the phase in which they are sent."""

QUESTION = "question"

Flags = NDArray[np.bool_]


@dataclass(slots=True)
class CollectionPhases:
    """One collection, from its first round to its last question.

    Attributes:
        scenario: Of the world.
        task: What is trained.
        assignment: Who holds which record.
        source: Of the devices' random numbers.
        costs: Of the phases.
        statistics: Of the rounds.
        questions: Of the days on which questions are asked.
        trained: Who of each cohort took part in training.
        content: The fitted model, as it was when training closed.
        columns: The attributes that it is about.
        model: The same model, read.
        flows: What is declared of the reports of each phase, by its name in claims.
        witnesses: Who may report about whose record.
    """

    scenario: Scenario
    task: RecordTask
    assignment: RecordAssignment
    source: SeededSource
    costs: PhaseCosts = field(init=False)
    statistics: list[CollectionRoundStatistics] = field(default_factory=list)
    questions: list[QuestionStatistics] = field(default_factory=list)
    trained: dict[int, Flags] = field(default_factory=dict)
    context: SimulationContext | None = None
    content: bytes = b""
    columns: tuple[int, ...] = ()
    model: FittedModel | None = None
    learner: TrainingServer | None = None
    receive: Receiver | None = None
    flows: dict[str, RecordFlow] = field(default_factory=dict)
    witnesses: WitnessBook = field(init=False)

    def __post_init__(self) -> None:
        self.costs = PhaseCosts.of(self.task)
        self.witnesses = WitnessBook(self.scenario, self.source.child("witness"))
        if block_of(self.scenario).questions == "protected" and not self.days_to_ask:
            rule = f"more than {self.first_day}: questions are asked on the days after training"
            raise BadParameter("days", self.scenario.days, rule)

    @property
    def first_day(self) -> int:
        """The first day after training."""
        return math.ceil(self.task.rounds * block_of(self.scenario).round_h / 24)

    @property
    def days_to_ask(self) -> range:
        """The days on which protected questions are asked."""
        if block_of(self.scenario).questions != "protected":
            return range(0)
        return range(self.first_day, self.scenario.days)

    @property
    def wakes(self) -> int:
        """How often every cohort is woken."""
        return self.task.rounds + len(self.days_to_ask)

    def declared_rounds(self) -> tuple[RecordFlow, ...]:
        """Return what is declared of the reports of each round; nothing is counted in it."""
        declared = flows_of(self.task, self.days_to_ask)
        return tuple(declared[phase] for phase in self.task.phases)

    def run(self, context: SimulationContext) -> Steps:
        """Go through the rounds, then let devices ask day by day."""
        self.context = context
        self.flows = flows_of(self.task, self.days_to_ask)
        rounds = [self._flow(number) for number in range(self.task.rounds)]
        self.learner, self.receive = context.learner(self.task, rounds)
        for number in range(self.task.rounds):
            self.statistics.append(CollectionRoundStatistics())
            content = self.learner.content
            for cohort in context.cohorts():
                self._report(context, self.receive, cohort, number, content)
            yield context.env.timeout(block_of(self.scenario).round_h * HOUR_S)
            self.learner.close(number)
        self.content = self.learner.content
        self.columns = self.task.columns(self.content)
        self.model = self.task.fitted_model(self.content)
        for day in self.days_to_ask:
            yield context.env.timeout(max(0.0, day * DAY_S - context.env.now))
            self.questions.append(QuestionStatistics())
            for cohort in context.cohorts():
                self._ask(context, self.learner, cohort, day)

    def _flow(self, number: int) -> RecordFlow:
        """Return what is declared of the reports of a round."""
        return self.flows[self.task.phases[number]]

    def _report(
        self,
        context: SimulationContext,
        receive: Receiver,
        cohort: Cohort,
        number: int,
        content: bytes,
    ) -> None:
        """Let a cohort's owners report in a round: each pays before it sends."""
        day = min(int(context.env.now // DAY_S), self.scenario.days - 1)
        people, stats = self.assignment.people(cohort), self.statistics[number]
        contact = self._contact(cohort, people, day)
        chance = self.source.child("drop-out", cohort.number, number).generator()
        there = chance.random(self.scenario.population.cohort)[: len(cohort)]
        takes_part = there >= block_of(self.scenario).drop_out
        contact &= (takes_part & ~people.is_test)[:, None]
        cost = self.costs.of_round(self.task, number)
        flow = REPORTS[self.task.phases[number]]
        paid = context.account(cohort).spend(day, flow, contact, cost) > 0
        reachable = contact.any(axis=1)
        stats.reported += int(np.count_nonzero(paid))
        stats.refused += int(np.count_nonzero(reachable & ~paid))
        stats.absent += int(np.count_nonzero(~people.is_test & ~reachable))
        if number == self.task.rounds - 1:
            self.trained[cohort.number] = paid
        if not paid.any():
            return
        records, truth = self._reported(cohort, people, paid, content)
        randomness = self.source.child("report", cohort.number, number)
        rows = self.task.report(number, content, records, randomness)
        kind, frames = self.task.kind(number), self.source.child("frame", cohort.number, number)
        sent = device_frames(flow, cohort.number, kind, number, rows, frames, truth=truth)
        for place, frame in enumerate(sent):
            context.send(frame, receive, "collection", cohort.number, number, place)

    def _reported(
        self, cohort: Cohort, people: CohortRecords, paid: Flags, content: bytes
    ) -> tuple[ScaledRecords, RecordTruth]:
        """Return what owners hold and report about: witnesses may hold each other's record."""
        ranged = in_ranges(people.records, self.task.ranges(content))
        witnesses = (self.witnesses.of_owners(cohort.number, ranged, paid),)
        users = np.flatnonzero(paid)
        places = exchanged_places(len(cohort), witnesses)[users]
        columns = self.task.columns(content)
        truth = RecordTruth(users, ranged[places], 0, columns, witnesses=witnesses)
        return people.records[places], truth

    def _ask(
        self, context: SimulationContext, learner: TrainingServer, cohort: Cohort, day: int
    ) -> None:
        """Let a cohort's users ask about their records, as often as they can pay for."""
        block, people, stats = block_of(self.scenario), self.assignment.people(cohort), self._today
        asks = people.is_test | (block.askers == "everyone")
        contact = self._contact(cohort, people, day) & asks[:, None]
        cost, requested = debited(self.costs.question), block.questions_per_day
        granted = context.account(cohort).spend(day, QUESTION, contact, cost, requested)
        reachable = contact.any(axis=1)
        stats.asked += int(granted.sum())
        stats.refused += int((requested - granted)[reachable].sum())
        stats.absent += int(np.count_nonzero(asks & ~reachable))
        ranged = in_ranges(people.records, self.task.ranges(self.content))
        witnesses = self.witnesses.of_questions(
            cohort.number, day, ranged, people.is_test, granted
        )
        # Who asks about whose record: witnesses may hold each other's.
        places = exchanged_places(len(cohort), witnesses)
        users = np.repeat(np.arange(len(cohort)), granted)
        records, is_test = people.records[places[users]], people.is_test[places[users]]
        for place, start in enumerate(range(0, len(users), MOST_QUERIES)):
            some = slice(start, start + MOST_QUERIES)
            path = ("question", cohort.number, day, place)
            truth = RecordTruth(
                users, ranged[places[users]], start, self.columns, self.model, witnesses
            )
            rows = self.task.query(self.content, records[some], self.source.child(*path))
            (frame,) = device_frames(
                QUESTION,
                cohort.number,
                _query_kind(self.task),
                day,
                rows,
                self.source.child("frame", *path),
                truth=truth,
            )
            order = start + frame.frame.order
            answers = _Answers(learner, stats, records.labels[order], is_test[order])
            receive = context.watch([self.flows["question"]], answers)
            context.send(frame, receive, "collection", *path)

    @property
    def _today(self) -> QuestionStatistics:
        return self.questions[-1]

    def _contact(self, cohort: Cohort, people: CohortRecords, day: int) -> Flags:
        """Return the devices in contact, of users whose device with the record is among them."""
        contact = in_contact(cohort.owns, cohort.silent[:, :, day], cohort.leaves > day)
        holds = contact[np.arange(len(cohort)), people.holder]
        return contact & holds[:, None]


def flows_of(task: RecordTask, days_to_ask: range) -> dict[str, RecordFlow]:
    """Return what is declared of the reports of each phase, and what a report costs."""
    costs = PhaseCosts.of(task)
    forms = {"ranges": range_form, "selection": selection_form, "training": training_form}
    flows = {
        name: RecordFlow(
            REPORTS[name],
            task.kind(number),
            range(number, number + 1),
            forms[name](task),
            costs.of_phase(name),
        )
        for number, name in enumerate(task.phases)
    }
    if days_to_ask:
        flows["question"] = RecordFlow(
            QUESTION, _query_kind(task), days_to_ask, question_form(task), costs.question
        )
    return flows


def _query_kind(task: RecordTask) -> Kind:
    kind = task.query_kind
    if kind is None:
        raise BadParameter("method", task.method, "one that answers questions")
    return kind


@dataclass(slots=True)
class _Answers:
    """What becomes of a frame of questions: it is answered once, however often it arrives."""

    learner: TrainingServer
    stats: QuestionStatistics
    truth: Labels
    is_test: Flags
    is_done: bool = False

    def __call__(self, frame: bytes) -> None:
        """Ask the server, and score what it says of records that nobody trained on."""
        if self.is_done:
            return
        self.is_done = True
        answers = self.learner.answers(frame)
        self.stats.answered += len(answers)
        self.stats.tested += int(np.count_nonzero(self.is_test))
        self.stats.right += int(np.count_nonzero((answers == self.truth) & self.is_test))
