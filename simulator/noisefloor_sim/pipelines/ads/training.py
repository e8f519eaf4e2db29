"""Training in the world: rounds on the clock, devices that drop out or come late."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import Amount
from noisefloor.ads.training import (
    AdModel,
    AdTraining,
    BitTraining,
    Broadcast,
    LaplaceTraining,
    Ratings,
    Single,
    drift,
    fit_tastes,
    random_model,
)
from noisefloor.mechanisms import Reports
from noisefloor.randomness import SeededSource
from noisefloor.roles import FrameCounters, TrainingServer
from noisefloor.tasks import AdTask, read_broadcast
from noisefloor_sim.deploy.hosting import Receiver
from noisefloor_sim.inspection import DeviceFrame, device_frames
from noisefloor_sim.pipelines.ads.block import block_of
from noisefloor_sim.pipelines.ads.flows import (
    TRAINING,
    TRAINING_REPORT,
    TrainingFlow,
    TrainingTruth,
)
from noisefloor_sim.pipelines.ads.fraud import TrainingFraud, check_pushed, forged_reports
from noisefloor_sim.pipelines.ads.gradient_noise import GradientNoise
from noisefloor_sim.pipelines.ads.ratings import (
    evaluate,
    kept_ratings,
    means_of,
    open_model,
    scored_ratings,
)
from noisefloor_sim.pipelines.ads.rounds import Stragglers, TrainingRoundStatistics, round_metrics
from noisefloor_sim.pipelines.ads.training_plan import plan_metrics, training_of
from noisefloor_sim.pipelines.api import Metric, SimulationContext
from noisefloor_sim.scenario import Scenario
from noisefloor_sim.world import HOUR_S, Cohort, Steps, in_contact

DAY_S = 24 * HOUR_S
MODEL_SEED = 0
"""Of the public model that training starts from."""


@dataclass(slots=True)
class TrainingSession:
    """A training under way: how devices report, and the server that learns from it.

    Attributes:
        training: Both halves of it.
        flow: What is declared of the reports.
        learner: The server.
        receive: How frames reach it.
        context: The world.
        sent: What it broadcasts now.
    """

    training: AdTraining
    flow: TrainingFlow
    learner: TrainingServer
    receive: Receiver
    context: SimulationContext
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
    training: AdTraining | None = field(init=False)
    session: TrainingSession | None = None
    statistics: list[TrainingRoundStatistics] = field(default_factory=list)
    kept: dict[int, Single] = field(default_factory=dict)
    noise: GradientNoise | None = None
    fraud: TrainingFraud | None = None
    flow: TrainingFlow | None = None
    context: SimulationContext | None = None
    given: AdModel | None = None

    def __post_init__(self) -> None:
        check_pushed(self.scenario)
        self.training = training_of(self.scenario)
        if isinstance(self.training, BitTraining | LaplaceTraining):
            self.noise = GradientNoise(self.training)
        if isinstance(self.training, BitTraining) and self.scenario.threat.fakes:
            self.fraud = TrainingFraud(self.scenario, self.training)
        if self.training is not None:
            self.flow = TrainingFlow(self.training, self.scenario, self.source)

    @property
    def rounds(self) -> int:
        """How many rounds there are."""
        return 0 if self.training is None else self.training.rounds

    @property
    def task(self) -> AdTask | None:
        """What the server learns, if anything."""
        return None if self.training is None else AdTask(self.training)

    @property
    def counters(self) -> tuple[FrameCounters, ...]:
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
        start = random_model(self.scenario.ad_behaviour.ads, block.dimension, MODEL_SEED)
        if block.method == "untrained" or self.context is None:
            return start
        kept = scored_ratings(self.scenario, self.context).kept
        if not kept.rated.any():
            return start
        if block.method == "means":
            return means_of(kept, block.dimension)
        return open_model(kept, block.dimension, block.ridge)

    def tastes_of(self, ratings: Ratings) -> Single:
        """Return the tastes that devices fit to their own ratings, under the model of now."""
        return fit_tastes(self.model, ratings, block_of(self.scenario).training.ridge)

    def run(self, context: SimulationContext) -> Steps:
        """Go through the rounds: broadcast, collect while the round is open, close."""
        self.context = context
        if self.training is None or self.flow is None:
            return
        learner = context.learner(AdTask(self.training), [self.flow])
        session = TrainingSession(self.training, self.flow, *learner, context)
        self.session = session
        for number in range(self.training.rounds):
            self._open()
            for cohort in context.cohorts():
                self._answer(session, cohort, number)
            yield context.env.timeout(block_of(self.scenario).training.round_h * HOUR_S)
            before = self.model
            session.close(number)
            self.statistics[-1].drift = drift(before, self.model)

    def _open(self) -> None:
        """Open the books of a round."""
        self.statistics.append(TrainingRoundStatistics())
        if self.noise is not None:
            self.noise.open()
        if self.fraud is not None:
            self.fraud.open(self.model)

    def _answer(self, session: TrainingSession, cohort: Cohort, number: int) -> None:
        """Let a cohort's devices answer one broadcast: each pays before it reports."""
        context, stats = session.context, self.statistics[-1]
        day = min(int(context.env.now // DAY_S), self.scenario.days - 1)
        present = self._present(session.training, cohort, number, day)
        cost = Amount.cost(session.training.cost(number)).micro_epsilon
        paid = context.account(cohort).spend(day, TRAINING_REPORT, present, cost) > 0
        stats.refused += int(np.count_nonzero(present.any(axis=1) & ~paid))
        users = np.flatnonzero(paid)
        own = kept_ratings(self.scenario, context.ad_world.tastes, cohort)[users]
        witnesses = session.flow.witnesses(cohort.number, number, users, own)
        exchange = witnesses.pairs.exchange
        ratings = Ratings(exchange(own.rated), exchange(own.rating))
        tastes = exchange(self._tastes(cohort, users))
        randomness = self.source.child("report", cohort.number, number)
        sent = session.training.report(number, session.sent, tastes, ratings, randomness)
        self._keep(cohort, users, exchange(tastes))
        stats.add(sent, len(users))
        if self.noise is not None:
            self.noise.count(cohort.number % 2, sent.reports)
        truth = session.flow.truth(
            cohort.number, len(cohort), number, session.sent, users, ratings, witnesses
        )
        self._send(session, cohort, number, sent.reports, truth)

    def _present(
        self, training: AdTraining, cohort: Cohort, number: int, day: int
    ) -> NDArray[np.bool_]:
        """Return the devices that answer in a round: by lot, in contact, and not dropped out."""
        contact = in_contact(cohort.owns, cohort.silent[:, :, day], cohort.leaves > day)
        # A device draws its lot once; which one it is says nothing about what it holds.
        draw = self.source.child("lots", cohort.number).generator()
        lots = draw.integers(0, 1 << 32, len(cohort), dtype=np.uint32)
        by_lot = training.reporters(number, lots)
        chance = self.source.child("drop-out", cohort.number, number).generator()
        there = chance.random(len(cohort)) >= block_of(self.scenario).training.drop_out
        self.statistics[-1].absent += int(
            np.count_nonzero(by_lot & ~(there & contact.any(axis=1)))
        )
        return contact & (by_lot & there)[:, None]

    def _tastes(self, cohort: Cohort, users: NDArray[np.intp]) -> Single:
        """Return the tastes that the devices remember; zeros at first."""
        if cohort.number not in self.kept:
            return np.zeros((len(users), self.model.dimension), dtype=np.float32)
        return np.asarray(self.kept[cohort.number][users])

    def _keep(self, cohort: Cohort, users: NDArray[np.intp], tastes: Single) -> None:
        """Let devices remember their tastes, where the next round starts from them."""
        if self.noise is None or self.noise.training.local != "step":
            return
        if cohort.number not in self.kept:
            shape = len(cohort), tastes.shape[1]
            self.kept[cohort.number] = np.zeros(shape, dtype=np.float32)
        self.kept[cohort.number][users] = tastes

    def _send(
        self,
        session: TrainingSession,
        cohort: Cohort,
        number: int,
        reports: Reports,
        truth: TrainingTruth,
    ) -> None:
        """Send what came at once, then what stragglers have; too late is late."""
        count, stats = len(reports), self.statistics[-1]
        delays = Stragglers.draw(
            block_of(self.scenario).training,
            count,
            self.source.child("stragglers", cohort.number, number),
        )
        stats.late += int(np.count_nonzero(delays.late))
        forged = self._forged(session, cohort, number, reports)
        for name, rows, hours in delays.groups():
            some = reports[rows]
            if name == "prompt" and forged is not None:
                some = np.concatenate([some, forged])
            if not len(some):
                continue
            randomness, kind = (
                self.source.child("frame", name, cohort.number, number),
                session.training.kind(number),
            )
            paid = np.arange(len(some)) < np.count_nonzero(rows)
            frames = device_frames(
                TRAINING,
                cohort.number,
                kind,
                number,
                some,
                randomness,
                truth=truth.part(rows),
                paid=paid,
            )
            for place, frame in enumerate(frames):
                path = ("training", name, cohort.number, number, place)
                session.context.env.process(_later(session, hours * HOUR_S, frame, path))

    def _forged(
        self, session: TrainingSession, cohort: Cohort, number: int, reports: Reports
    ) -> Reports | None:
        """Return what fakes send beside a cohort's reports."""
        randomness = self.source.child("forged", cohort.number, number)
        sent, count = session.sent, len(reports)
        forged = forged_reports(self.scenario, session.training, number, sent, count, randomness)
        self.statistics[-1].fakes += 0 if forged is None else len(forged)
        if self.fraud is not None:
            self.fraud.count(reports, forged)
        return forged

    def finish(self) -> list[Metric]:
        """Score the model on ratings that were held out, beside its baselines."""
        if self.context is None:
            return []
        split = scored_ratings(self.scenario, self.context)
        found = evaluate(self.model, split, block_of(self.scenario).training.ridge)
        found += plan_metrics(self.scenario, self.training, self.model)
        if self.fraud is not None:
            found += self.fraud.metrics(self.source.child("fraud"))
        if self.noise is not None:
            found += self.noise.metrics()
        return found + round_metrics(
            self.statistics, None if self.session is None else self.session.learner
        )


def _later(
    session: TrainingSession, delay_s: float, frame: DeviceFrame, path: tuple[str | int, ...]
) -> Steps:
    """Send a frame after a delay."""
    yield session.context.env.timeout(delay_s)
    session.context.send(frame, session.receive, *path)
