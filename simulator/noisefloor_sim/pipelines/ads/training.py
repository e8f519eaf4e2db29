"""Training in the world: rounds on the clock, devices that drop out or come late."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting.entry import Amount
from noisefloor.ads.bit_training import BitTraining
from noisefloor.ads.factors import AdModel, Ratings, Single, drift, fit_tastes, random_model
from noisefloor.ads.laplace_training import LaplaceTraining
from noisefloor.ads.training import Broadcast, Training
from noisefloor.mechanisms.base import Reports
from noisefloor.randomness import SeededSource
from noisefloor.roles.ad_course import AdCourse
from noisefloor.roles.broadcast import read_broadcast
from noisefloor.roles.outcomes import Counters
from noisefloor.roles.protocols import LearningServer
from noisefloor.wire.frames import split_frames
from noisefloor_sim.devices import in_contact
from noisefloor_sim.hosting import Receiver
from noisefloor_sim.network import HOUR_S, Steps
from noisefloor_sim.pipelines.ads.block import block_of
from noisefloor_sim.pipelines.ads.evaluation import evaluate, means_of, open_model
from noisefloor_sim.pipelines.ads.forgery import check_pushed, forged_reports
from noisefloor_sim.pipelines.ads.fraud import TrainingFraud
from noisefloor_sim.pipelines.ads.methods import training_of
from noisefloor_sim.pipelines.ads.noise import GradientNoise
from noisefloor_sim.pipelines.ads.ratings import kept_ratings, scored_ratings
from noisefloor_sim.pipelines.ads.rounds import RoundBook, round_metrics
from noisefloor_sim.pipelines.ads.stragglers import Stragglers
from noisefloor_sim.pipelines.base import Metric, Stage
from noisefloor_sim.population import Cohort
from noisefloor_sim.scenario.model import Scenario

DAY_S = 24 * HOUR_S
FLOW = "training report"
MODEL_SEED = 0
"""Of the public model that training starts from."""


@dataclass(slots=True)
class Session:
    """A training under way: how devices report, and the server that learns from it.

    Attributes:
        training: Both halves of it.
        learner: The server.
        receive: How frames reach it.
        stage: The world.
        sent: What it broadcasts now.
    """

    training: Training
    learner: LearningServer
    receive: Receiver
    stage: Stage
    sent: Broadcast = field(init=False)

    def __post_init__(self) -> None:
        _, self.sent = read_broadcast(self.learner.content)

    def close(self, number: int) -> None:
        """Close a round, and hear what is broadcast next."""
        self.learner.close(number)
        _, self.sent = read_broadcast(self.learner.content)


@dataclass(slots=True)
class TrainingPhase:
    """The ads' model of one world, and how it came about."""

    scenario: Scenario
    source: SeededSource
    training: Training | None = field(init=False)
    session: Session | None = None
    books: list[RoundBook] = field(default_factory=list)
    kept: dict[int, Single] = field(default_factory=dict)
    noise: GradientNoise | None = None
    fraud: TrainingFraud | None = None
    stage: Stage | None = None
    given: AdModel | None = None

    def __post_init__(self) -> None:
        check_pushed(self.scenario)
        self.training = training_of(self.scenario)
        if isinstance(self.training, BitTraining | LaplaceTraining):
            self.noise = GradientNoise(self.training)
        if isinstance(self.training, BitTraining) and self.scenario.threat.fakes:
            self.fraud = TrainingFraud(self.scenario, self.training)

    @property
    def rounds(self) -> int:
        """How many rounds there are."""
        return 0 if self.training is None else self.training.rounds

    @property
    def course(self) -> AdCourse | None:
        """What the server learns, if anything."""
        return None if self.training is None else AdCourse(self.training)

    @property
    def counters(self) -> tuple[Counters, ...]:
        """What became of training frames at their server."""
        return () if self.session is None else (self.session.learner.counters,)

    @property
    def model(self) -> AdModel:
        """The ads' model as it is broadcast now."""
        if self.session is not None:
            return self.session.sent.model
        if self.given is None:
            self.given = self._given()
        return self.given

    def _given(self) -> AdModel:
        """Return the model of a world without private training, for comparison."""
        block = block_of(self.scenario).training
        start = random_model(self.scenario.behaviour.ads, block.dimension, MODEL_SEED)
        if block.method == "untrained" or self.stage is None:
            return start
        kept = scored_ratings(self.scenario, self.stage).kept
        if not kept.rated.any():
            return start
        if block.method == "means":
            return means_of(kept, block.dimension)
        return open_model(kept, block.dimension, block.ridge)

    def tastes_of(self, ratings: Ratings) -> Single:
        """Return the tastes that devices fit to their own ratings, under the model of now."""
        return fit_tastes(self.model, ratings, block_of(self.scenario).training.ridge)

    def run(self, stage: Stage) -> Steps:
        """Go through the rounds: broadcast, collect while the round is open, close."""
        self.stage = stage
        if self.training is None:
            return
        session = Session(self.training, *stage.learner(AdCourse(self.training)), stage)
        self.session = session
        for number in range(self.training.rounds):
            self._open()
            for cohort in stage.cohorts():
                self._answer(session, cohort, number)
            yield stage.env.timeout(block_of(self.scenario).training.round_h * HOUR_S)
            before = self.model
            session.close(number)
            self.books[-1].drift = drift(before, self.model)

    def _open(self) -> None:
        """Open the books of a round."""
        self.books.append(RoundBook())
        if self.noise is not None:
            self.noise.open()
        if self.fraud is not None:
            self.fraud.open(self.model)

    def _answer(self, session: Session, cohort: Cohort, number: int) -> None:
        """Let a cohort's devices answer one broadcast: each pays before it reports."""
        stage, book = session.stage, self.books[-1]
        day = min(int(stage.env.now // DAY_S), self.scenario.days - 1)
        present = self._present(session.training, cohort, number, day)
        cost = Amount.cost(session.training.cost(number)).micro_epsilon
        paid = stage.account(cohort).spend(day, FLOW, present, cost) > 0
        book.refused += int(np.count_nonzero(present.any(axis=1) & ~paid))
        users = np.flatnonzero(paid)
        ratings = kept_ratings(self.scenario, stage.world.tastes, cohort)[users]
        tastes = self._tastes(cohort, users)
        coins = self.source.child("report", cohort.number, number)
        sent = session.training.report(number, session.sent, tastes, ratings, coins)
        self._keep(cohort, users, tastes)
        book.add(sent, len(users))
        if self.noise is not None:
            self.noise.count(cohort.number % 2, sent.reports)
        self._send(session, cohort, number, sent.reports)

    def _present(
        self, training: Training, cohort: Cohort, number: int, day: int
    ) -> NDArray[np.bool_]:
        """Return the devices that answer in a round: by lot, in contact, and not dropped out."""
        contact = in_contact(cohort.owns, cohort.silent[:, :, day], cohort.leaves > day)
        # A device draws its lot once; which one it is says nothing about what it holds.
        draw = self.source.child("lots", cohort.number).generator()
        lots = draw.integers(0, 1 << 32, len(cohort), dtype=np.uint32)
        by_lot = training.reporters(number, lots)
        chance = self.source.child("drop-out", cohort.number, number).generator()
        there = chance.random(len(cohort)) >= block_of(self.scenario).training.drop_out
        self.books[-1].absent += int(np.count_nonzero(by_lot & ~(there & contact.any(axis=1))))
        return contact & (by_lot & there)[:, None]

    def _tastes(self, cohort: Cohort, users: NDArray[np.intp]) -> Single:
        """Return the tastes that the devices remember; zeros at first."""
        width = block_of(self.scenario).training.dimension
        if cohort.number not in self.kept:
            return np.zeros((len(users), width), dtype=np.float32)
        return np.asarray(self.kept[cohort.number][users])

    def _keep(self, cohort: Cohort, users: NDArray[np.intp], tastes: Single) -> None:
        """Let devices remember their tastes, where the next round starts from them."""
        if self.noise is None or self.noise.training.local != "step":
            return
        if cohort.number not in self.kept:
            shape = len(cohort), tastes.shape[1]
            self.kept[cohort.number] = np.zeros(shape, dtype=np.float32)
        self.kept[cohort.number][users] = tastes

    def _send(self, session: Session, cohort: Cohort, number: int, reports: Reports) -> None:
        """Send what came at once, then what stragglers have; too late is late."""
        count, book = len(reports), self.books[-1]
        delays = Stragglers.draw(
            block_of(self.scenario).training,
            count,
            self.source.child("stragglers", cohort.number, number),
        )
        book.late += int(np.count_nonzero(delays.late))
        forged = self._forged(session, cohort, number, reports)
        for name, rows, hours in delays.groups():
            some = reports[rows]
            if name == "prompt" and forged is not None:
                some = np.concatenate([some, forged])
            if not len(some):
                continue
            coins = self.source.child("frame", name, cohort.number, number)
            frames = split_frames(session.training.kind(number), number, some, coins)
            for place, frame in enumerate(frames):
                path = ("training", name, cohort.number, number, place)
                session.stage.env.process(_later(session, hours * HOUR_S, frame, path))

    def _forged(
        self, session: Session, cohort: Cohort, number: int, reports: Reports
    ) -> Reports | None:
        """Return what fakes send beside a cohort's reports."""
        coins = self.source.child("forged", cohort.number, number)
        sent, count = session.sent, len(reports)
        forged = forged_reports(self.scenario, session.training, number, sent, count, coins)
        self.books[-1].fakes += 0 if forged is None else len(forged)
        if self.fraud is not None:
            self.fraud.count(reports, forged)
        return forged

    def finish(self) -> list[Metric]:
        """Score the model on ratings that were held out, beside its baselines."""
        if self.stage is None:
            return []
        split = scored_ratings(self.scenario, self.stage)
        found = evaluate(self.model, split, block_of(self.scenario).training.ridge)
        if self.fraud is not None:
            found += self.fraud.metrics(self.source.child("fraud"))
        if self.noise is not None:
            found += self.noise.metrics()
        return found + round_metrics(
            self.books, None if self.session is None else self.session.learner
        )


def _later(session: Session, delay_s: float, frame: bytes, path: tuple[str | int, ...]) -> Steps:
    """Send a frame after a delay."""
    yield session.stage.env.timeout(delay_s)
    session.stage.send(frame, session.receive, *path)
