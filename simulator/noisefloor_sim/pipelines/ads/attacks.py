"""The adversary against the ad pipeline, tested on canaries with known profiles."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads.bit_training import BitTraining
from noisefloor.ads.delivery import Choice
from noisefloor.ads.factors import Ratings
from noisefloor.ads.spectral import SpectralTraining
from noisefloor.ads.training import Training
from noisefloor.adversary.gradients import candidate_values, play_pair
from noisefloor.adversary.linking import LinkingGame
from noisefloor.adversary.membership import MembershipGame
from noisefloor.adversary.observations import success_from
from noisefloor.adversary.outcome import Outcome
from noisefloor.adversary.profiles import RequestGame
from noisefloor.adversary.side_channel import attack_activity
from noisefloor.mechanisms.base import Floats, Mechanism
from noisefloor.privacy import Neighbours
from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines.ads.block import block_of
from noisefloor_sim.pipelines.ads.delivery import DeliveryPhase
from noisefloor_sim.pipelines.ads.parts import requests_a_day
from noisefloor_sim.pipelines.ads.training import TrainingPhase
from noisefloor_sim.pipelines.base import Metric, Stage
from noisefloor_sim.scenario.model import Scenario

MOST_REQUESTS = 60
"""Requests of one person that are joined at most: beyond, nearly everything is known."""

DEVICES_LINKED = 20
"""Devices among which the partner of one is to be found."""

PEOPLE = 64
"""People among whom a member of training is hidden, for the game; more hide better."""


def attack(
    scenario: Scenario, training: TrainingPhase, delivery: DeliveryPhase, source: SeededSource
) -> list[Metric]:
    """Play every game that the threat model allows, and return what came out."""
    stage = training.stage
    if stage is None:
        return []
    games = [
        *_request_games(scenario, delivery, stage, source),
        *_training_games(scenario, training, stage, source),
        *_side_channel(scenario, stage, source),
    ]
    return [metric for name, outcome in games for metric in _told(name, outcome)]


def _request_games(
    scenario: Scenario, delivery: DeliveryPhase, stage: Stage, source: SeededSource
) -> Iterator[tuple[str, Outcome]]:
    """Guess the favourite ad and topic, from one request and from all that are linked."""
    if delivery.delivery.choice is Choice.EXACT:
        return
    rows, topics = profiles(delivery, stage)
    canaries = block_of(scenario).canaries
    fresh = requests_a_day(delivery.books) * scenario.days
    counts = {"": 1}
    if scenario.threat.linked and fresh > 1:
        counts["_all_days"] = min(fresh, MOST_REQUESTS)
    for name, requests in counts.items():
        game = RequestGame(delivery.delivery, rows, requests)
        yield f"favourite{name}", game.play(canaries, source.child("favourite", name))
        game = RequestGame(delivery.delivery, rows, requests, topics=topics.tolist())
        yield f"topic{name}", game.play(canaries, source.child("topic", name))
    if not delivery.delivery.is_slate:
        linked = LinkingGame(delivery.delivery, rows, DEVICES_LINKED, min(fresh, MOST_REQUESTS))
        yield "linking", linked.play(max(1, canaries // 20), source.child("linking"))


def profiles(
    delivery: DeliveryPhase, stage: Stage
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return what people whose favourite is one ad score on average, and each such ad's topic.

    One row for every ad that somebody in the first cohort likes best.
    """
    cohort = next(iter(stage.cohorts()))
    scores = delivery.scores(stage.world, cohort).astype(np.float64)
    best = scores.argmax(axis=1)
    ads = np.unique(best)
    rows = np.stack([scores[best == ad].mean(axis=0) for ad in ads])
    _, topics = np.unique(stage.world.tastes.topic[ads], return_inverse=True)
    return rows, np.asarray(topics, dtype=np.intp)


def _training_games(
    scenario: Scenario, training: TrainingPhase, stage: Stage, source: SeededSource
) -> Iterator[tuple[str, Outcome]]:
    """Guess whether an ad is rated, how, and who took part in training.

    The adversary knows all else about the device: its other ratings, and so its taste.
    """
    trained = training.training
    if isinstance(trained, BitTraining):
        yield from _bit_games(scenario, training, trained, stage, source)
    elif isinstance(trained, SpectralTraining) and trained.form == "full":
        above = _profiles_of_one(stage).above(training.model.base).astype(np.float64)
        values = above[:, None]
        yield from _pair_games(scenario, trained.axes, values, trained, source)


def _profiles_of_one(stage: Stage) -> Ratings:
    """Return what the first user may hold: the first ad unrated, rated 0, rated 1."""
    held = stage.world.tastes.hold_ratings(next(iter(stage.cohorts())))[np.zeros(3, dtype=np.intp)]
    rated, rating = held.rated.copy(), held.rating.copy()
    rated[:, 0], rating[:, 0] = (False, True, True), (0, 0, 1)
    return Ratings(rated, rating)


def _pair_games(
    scenario: Scenario,
    mechanism: Mechanism,
    values: Floats,
    trained: Training,
    source: SeededSource,
) -> Iterator[tuple[str, Outcome]]:
    """Tell unrated from rated 1, and rated 0 from rated 1: profiles by rounds by values."""
    unrated, low, high = values
    epsilon = trained.guarantee(Neighbours.USER).epsilon
    for name, pair in {"rated": (unrated, high), "rating": (low, high)}.items():
        expected = success_from(mechanism, [pair[0][0], pair[1][0]], len(high))
        outcome = play_pair(
            mechanism,
            pair,
            block_of(scenario).canaries,
            source.child(name),
            epsilon=epsilon,
            closed_form=expected,
        )
        yield name, outcome


def _bit_games(
    scenario: Scenario,
    training: TrainingPhase,
    trained: BitTraining,
    stage: Stage,
    source: SeededSource,
) -> Iterator[tuple[str, Outcome]]:
    """Play against bits of gradients, as if the last model had been broadcast in every round."""
    profiles = _profiles_of_one(stage)
    tastes = np.zeros((len(profiles), training.model.dimension), dtype=np.float32)
    rounds = 1 if trained.once else trained.rounds
    first = candidate_values(trained, [training.model], tastes, profiles)
    values = np.repeat(first, rounds, axis=1)
    yield from _pair_games(scenario, trained.bit, values, trained, source)
    game = MembershipGame(trained.bit, values[2], first[:, 0], PEOPLE)
    games = max(1_000, block_of(scenario).canaries // 10)
    yield "membership", game.play(games, source.child("membership"))


def _side_channel(
    scenario: Scenario, stage: Stage, source: SeededSource
) -> Iterator[tuple[str, Outcome]]:
    """Guess from the number of requests an hour who is busy: no epsilon speaks of it."""
    cohort = next(iter(stage.cohorts()))
    light, heavy = np.quantile(cohort.engagement, [0.25, 0.75])
    clock = np.bincount(stage.world.clock, minlength=24) / len(stage.world.clock)
    rates = np.maximum(np.outer([light, heavy], clock), 1e-6)
    draw = source.child("activity").generator()
    truth = draw.integers(0, 2, block_of(scenario).canaries)
    yield "activity", attack_activity(draw.poisson(rates[truth]), truth, rates)


def _told(name: str, outcome: Outcome) -> list[Metric]:
    low, high = outcome.interval
    metrics = [
        Metric(f"attack.{name}.success", outcome.success, low, high, outcome.n),
        Metric(f"attack.{name}.prior", outcome.baseline, n=outcome.n),
    ]
    if outcome.is_covered:
        metrics.append(Metric(f"attack.{name}.bound", outcome.bound, n=outcome.n))
    if outcome.closed_form is not None:
        metrics.append(Metric(f"attack.{name}.closed_form", outcome.closed_form, n=outcome.n))
    return metrics
