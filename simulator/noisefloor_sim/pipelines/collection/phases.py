"""The phases of a collection on the clock: selection, training, questions on the days after."""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.collection.course import RecordCourse
from noisefloor.collection.schema import Records
from noisefloor.errors import BadParameter
from noisefloor.randomness import SeededSource
from noisefloor.roles.protocols import LearningServer
from noisefloor.roles.queries import MOST_QUERIES
from noisefloor.wire.frames import Order, encode_with_order, split_frames
from noisefloor_sim.devices import in_contact
from noisefloor_sim.hosting import Receiver
from noisefloor_sim.network import HOUR_S, Steps
from noisefloor_sim.pipelines.base import Stage
from noisefloor_sim.pipelines.collection.block import block_of
from noisefloor_sim.pipelines.collection.books import QuestionBook, RoundBook
from noisefloor_sim.pipelines.collection.costs import Costs, debited
from noisefloor_sim.pipelines.collection.held import Holdings, People
from noisefloor_sim.population import Cohort
from noisefloor_sim.scenario.model import Scenario

DAY_S = 24 * HOUR_S
REPORTS = ("selection report", "training report")
QUESTION = "question"

Flags = NDArray[np.bool_]


@dataclass(slots=True)
class CollectionPhases:
    """One collection, from its first round to its last question.

    Attributes:
        scenario: Of the world.
        course: What is learnt.
        holdings: Who holds which record.
        source: Of the devices' coins.
        costs: Of the phases.
        books: Of the rounds.
        questions: Of the days on which questions are asked.
        trained: Who of each cohort took part in training.
        content: What was learnt, as it was when training closed.
    """

    scenario: Scenario
    course: RecordCourse
    holdings: Holdings
    source: SeededSource
    costs: Costs = field(init=False)
    books: list[RoundBook] = field(default_factory=list)
    questions: list[QuestionBook] = field(default_factory=list)
    trained: dict[int, Flags] = field(default_factory=dict)
    stage: Stage | None = None
    content: bytes = b""
    learner: LearningServer | None = None
    receive: Receiver | None = None

    def __post_init__(self) -> None:
        self.costs = Costs.of(self.course)
        if block_of(self.scenario).questions == "protected" and not self.days_to_ask:
            rule = f"more than {self.first_day}: questions are asked on the days after training"
            raise BadParameter("days", self.scenario.days, rule)

    @property
    def first_day(self) -> int:
        """The first day after training."""
        return math.ceil(self.course.rounds * block_of(self.scenario).round_h / 24)

    @property
    def days_to_ask(self) -> range:
        """The days on which protected questions are asked."""
        if block_of(self.scenario).questions != "protected":
            return range(0)
        return range(self.first_day, self.scenario.days)

    @property
    def wakes(self) -> int:
        """How often every cohort is woken."""
        return self.course.rounds + len(self.days_to_ask)

    def run(self, stage: Stage) -> Steps:
        """Go through the rounds, then let devices ask day by day."""
        self.stage = stage
        self.learner, self.receive = stage.learner(self.course)
        for number in range(self.course.rounds):
            self.books.append(RoundBook())
            content = self.learner.content
            for cohort in stage.cohorts():
                self._report(stage, self.receive, cohort, number, content)
            yield stage.env.timeout(block_of(self.scenario).round_h * HOUR_S)
            self.learner.close(number)
        self.content = self.learner.content
        for day in self.days_to_ask:
            yield stage.env.timeout(max(0.0, day * DAY_S - stage.env.now))
            self.questions.append(QuestionBook())
            for cohort in stage.cohorts():
                self._ask(stage, self.learner, cohort, day)

    def _report(
        self, stage: Stage, receive: Receiver, cohort: Cohort, number: int, content: bytes
    ) -> None:
        """Let a cohort's owners report in a round: each pays before it sends."""
        day = min(int(stage.env.now // DAY_S), self.scenario.days - 1)
        people, book = self.holdings.people(cohort), self.books[number]
        contact = self._contact(cohort, people, day)
        chance = self.source.child("drop-out", cohort.number, number).generator()
        there = chance.random(self.scenario.population.cohort)[: len(cohort)]
        takes_part = there >= block_of(self.scenario).drop_out
        contact &= (takes_part & ~people.is_test)[:, None]
        cost = self.costs.of_round(self.course, number)
        flow = REPORTS[number + 2 - self.course.rounds]
        paid = stage.account(cohort).spend(day, flow, contact, cost) > 0
        reachable = contact.any(axis=1)
        book.reported += int(np.count_nonzero(paid))
        book.refused += int(np.count_nonzero(reachable & ~paid))
        book.absent += int(np.count_nonzero(~people.is_test & ~reachable))
        if number == self.course.rounds - 1:
            self.trained[cohort.number] = paid
        if not paid.any():
            return
        coins = self.source.child("report", cohort.number, number)
        rows = self.course.report(number, content, people.records[np.flatnonzero(paid)], coins)
        kind, frames = self.course.kind(number), self.source.child("frame", cohort.number, number)
        for place, frame in enumerate(split_frames(kind, number, rows, frames)):
            stage.send(frame, receive, "collection", cohort.number, number, place)

    def _ask(self, stage: Stage, learner: LearningServer, cohort: Cohort, day: int) -> None:
        """Let a cohort's users ask about their records, as often as they can pay for."""
        block, people, book = block_of(self.scenario), self.holdings.people(cohort), self._today
        asks = people.is_test | (block.askers == "everyone")
        contact = self._contact(cohort, people, day) & asks[:, None]
        cost, wanted = debited(self.costs.question), block.questions_per_day
        granted = stage.account(cohort).spend(day, QUESTION, contact, cost, wanted)
        reachable = contact.any(axis=1)
        book.asked += int(granted.sum())
        book.refused += int((wanted - granted)[reachable].sum())
        book.absent += int(np.count_nonzero(asks & ~reachable))
        users = np.repeat(np.arange(len(cohort)), granted)
        for place, start in enumerate(range(0, len(users), MOST_QUERIES)):
            some = users[start : start + MOST_QUERIES]
            path = ("question", cohort.number, day, place)
            frame, order = self._frame(people.records[some], day, path)
            truth = people.records.labels[some][order]
            told = _Answers(learner, book, truth, people.is_test[some][order])
            stage.send(frame, told, "collection", *path)

    def _frame(
        self, records: Records, day: int, path: tuple[str | int, ...]
    ) -> tuple[bytes, Order]:
        """Return questions about records as one frame, and the order of its rows."""
        kind = self.course.query_kind
        if kind is None:
            raise BadParameter("method", self.course.method, "one that answers questions")
        rows = self.course.query(self.content, records, self.source.child(*path))
        return encode_with_order(kind, day, rows, self.source.child("frame", *path))

    @property
    def _today(self) -> QuestionBook:
        return self.questions[-1]

    def _contact(self, cohort: Cohort, people: People, day: int) -> Flags:
        """Return the devices in contact, of users whose device with the record is among them."""
        contact = in_contact(cohort.owns, cohort.silent[:, :, day], cohort.leaves > day)
        holds = contact[np.arange(len(cohort)), people.holder]
        return contact & holds[:, None]


@dataclass(slots=True)
class _Answers:
    """What becomes of a frame of questions: it is answered once, however often it arrives."""

    learner: LearningServer
    book: QuestionBook
    truth: Flags
    is_test: Flags
    is_done: bool = False

    def __call__(self, frame: bytes) -> None:
        """Ask the server, and score what it says of records that nobody trained on."""
        if self.is_done:
            return
        self.is_done = True
        told = self.learner.answers(frame)
        self.book.answered += len(told)
        self.book.tested += int(np.count_nonzero(self.is_test))
        self.book.right += int(np.count_nonzero((told == self.truth) & self.is_test))
