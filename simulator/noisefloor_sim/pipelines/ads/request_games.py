"""Guessing what people like from what their devices ask for."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads.delivery import Choice
from noisefloor.adversary.ads.linking import LinkingGame
from noisefloor.adversary.ads.profiles import RequestGame
from noisefloor.adversary.outcome import Outcome
from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines.ads.block import block_of
from noisefloor_sim.pipelines.ads.delivery import DeliveryPhase, delivery_of
from noisefloor_sim.pipelines.ads.delivery_books import requests_in_all
from noisefloor_sim.pipelines.ads.request_law import RequestLaw
from noisefloor_sim.pipelines.base import Stage

MOST_REQUESTS = 60
"""Requests of one person that are joined at most: beyond, nearly everything is known."""

DEVICES_LINKED = 20
"""Devices among which the partner of one is to be found."""

MOST_CANDIDATES = 64
"""Profiles among which the adversary has to choose, at most."""

Named = Iterator[tuple[str, Outcome]]


@dataclass(frozen=True, slots=True)
class Profiles:
    """People that the adversary tells apart: one for each ad that somebody likes best.

    Attributes:
        rows: What each scores.
        topics: The topic of each one's favourite, numbered from 0.
    """

    rows: NDArray[np.float64]
    topics: Sequence[int]

    @classmethod
    def of(cls, delivery: DeliveryPhase, stage: Stage) -> "Profiles":
        """Take from the first cohort whoever is most like all who share a favourite."""
        scores = delivery.scores(stage.world, stage.cohort(0)).astype(np.float64)
        best = scores.argmax(axis=1)
        ads = np.unique(best)[:MOST_CANDIDATES]
        rows = np.stack([_typical(scores[best == ad]) for ad in ads])
        _, topics = np.unique(stage.world.tastes.topic[ads], return_inverse=True)
        return cls(rows, topics.tolist())


def _typical(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the row nearest to the mean: the mean itself may have another favourite."""
    away = np.square(rows - rows.mean(axis=0)).sum(axis=1)
    return np.asarray(rows[away.argmin()])


def request_games(delivery: DeliveryPhase, stage: Stage, source: SeededSource) -> Named:
    """Play for the favourite ad and topic, and for the partner among devices.

    Where all score alike there is nothing to be guessed.
    """
    people = Profiles.of(delivery, stage)
    if len(people.rows) < 2:
        return
    is_linked, law = delivery.scenario.threat.linked, RequestLaw(delivery.delivery)
    fresh = min(requests_in_all(delivery.asked), MOST_REQUESTS) if is_linked else 1
    counts = {"": 1, "_all_days": fresh} if fresh > 1 else {"": 1}
    yield from _favourites(delivery, law, people, counts, source)
    yield from _reused(delivery, law, people, source)
    yield from _calibration(delivery, people, source)
    canaries = block_of(delivery.scenario).canaries
    # What is asked for in the open links by itself; slates are told apart by no symbol.
    if not delivery.delivery.is_slate and law.guarantee().is_finite:
        linked = LinkingGame(law, people.rows, DEVICES_LINKED, fresh)
        yield "linking", linked.play(max(1, canaries // 20), source.child("linking"))


def _favourites(
    delivery: DeliveryPhase,
    law: RequestLaw,
    people: Profiles,
    counts: dict[str, int],
    source: SeededSource,
) -> Named:
    """Guess the favourite ad and topic, from one request and from all that are linked."""
    canaries = block_of(delivery.scenario).canaries
    for name, requests in counts.items():
        game = RequestGame(law, people.rows, requests)
        yield f"favourite{name}", game.play(canaries, source.child("favourite", name))
        if max(people.topics):
            by_topic = replace(game, topics=people.topics)
            yield f"topic{name}", by_topic.play(canaries, source.child("topic", name))


def _reused(
    delivery: DeliveryPhase, law: RequestLaw, people: Profiles, source: SeededSource
) -> Named:
    """Guess from all impressions of a day that show one request's ad: they are one release."""
    slots, users = (sum(getattr(it, name) for it in delivery.books) for name in ("slots", "users"))
    if not delivery.is_daily or not users:
        return
    game = RequestGame(law, people.rows, -(-slots // users), is_memoised=True)
    canaries = block_of(delivery.scenario).canaries
    yield "favourite_reused", game.play(canaries, source.child("favourite", "reused"))


def _calibration(delivery: DeliveryPhase, people: Profiles, source: SeededSource) -> Named:
    """Play against requests that tell nothing, and against such that tell all.

    The first must be no better than the prior, the second always right; else the games above
    say nothing.
    """
    canaries = block_of(delivery.scenario).canaries
    for name, choice in (("null", Choice.RANDOM), ("planted", Choice.EXACT)):
        law = RequestLaw(delivery_of(delivery.scenario, choice))
        yield name, RequestGame(law, people.rows).play(canaries, source.child(name))
