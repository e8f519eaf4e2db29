"""The adversary against the ad pipeline, tested on canaries with known profiles.

What no epsilon speaks of: how busy people are, from how often and on which days devices asked in
the run. Which requests of the run are of one user.

Guessing what people like from what their devices ask for.

Guessing ratings and members from what devices report in training.

The adversary knows all else about the device: its other ratings, and so its taste. Candidate
profiles answer the first broadcast, a public constant, as if that were broadcast in every round:
so the game is the same whatever was trained.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain

import numpy as np

from noisefloor.ads.delivery import AD_REQUESTS, AdSelection
from noisefloor.ads.training import (
    AdTraining,
    BitTraining,
    LaplaceTraining,
    Ratings,
    SpectralTraining,
    gradients,
    update_tastes,
)
from noisefloor.adversary.ads import (
    LinkingGame,
    MembershipGame,
    RequestGame,
    candidate_values,
    guess_class,
    play_pair,
)
from noisefloor.adversary.audit import AttackOutcome, score, success_from
from noisefloor.checks import Floats
from noisefloor.mechanisms import Mechanism
from noisefloor.privacy import Neighbours
from noisefloor.randomness import SeededSource
from noisefloor_sim.inspection import MOST_CONNECTIONS, Transcript
from noisefloor_sim.pipelines.ads.block import block_of
from noisefloor_sim.pipelines.ads.candidates import CandidateProfiles
from noisefloor_sim.pipelines.ads.delivery import (
    DeliveryPhase,
    delivery_of,
    requests_per_requesting_user,
)
from noisefloor_sim.pipelines.ads.request_distribution import RequestDistribution
from noisefloor_sim.pipelines.ads.training import TrainingPhase
from noisefloor_sim.pipelines.api import Metric, SimulationContext
from noisefloor_sim.pipelines.scoring import game_metrics
from noisefloor_sim.scenario import Scenario

NamedAttacks = Iterator[tuple[str, Callable[[], AttackOutcome]]]
"""Games by name, each played when it is called: those that are not selected are not."""

PEOPLE = 64
"""People among whom a member of training is hidden, for the game; more hide better."""

MOST_NUMBERS = 1 << 24
"""Numbers in all messages of a game, at most: wide messages are sent by fewer devices."""

FEWEST = 500
"""Devices in a game, at least."""


def training_games(
    training: TrainingPhase, context: SimulationContext, source: SeededSource
) -> NamedAttacks:
    """Guess whether an ad is rated, how, and who took part in training, by the first broadcast.

    The lite form of spectral training has no likelihood of its whole report, and no game.
    """
    trained, profiles = training.training, profiles_of_one(context)
    if isinstance(trained, BitTraining):
        values = _bit_values(trained, profiles)
        yield from _pair_games(training, trained.bit, values, source)
        yield "membership", partial(_membership, training, trained, values, source)
    elif isinstance(trained, LaplaceTraining):
        values = _gradient_values(trained, profiles)
        yield from _pair_games(training, trained.noise, values, source)
    elif isinstance(trained, SpectralTraining) and trained.form == "full":
        above = profiles.above(trained.start().model.base).astype(np.float64)
        yield from _pair_games(training, trained.axes, above[:, None], source)


def profiles_of_one(context: SimulationContext) -> Ratings:
    """Return what the first user may hold: the first ad unrated, rated 0, rated 1."""
    user_ratings = context.ad_world.tastes.draw_ratings(context.cohort(0))[
        np.zeros(3, dtype=np.intp)
    ]
    rated, rating = user_ratings.rated.copy(), user_ratings.rating.copy()
    rated[:, 0], rating[:, 0] = (False, True, True), (0, 0, 1)
    return Ratings(rated, rating)


def _bit_values(trained: BitTraining, profiles: Ratings) -> Floats:
    """Return what each profile reports about: profiles by rounds by cells."""
    tastes = np.zeros((len(profiles), trained.dimension), dtype=np.float32)
    one = candidate_values(trained, [trained.start().model], tastes, profiles)
    return np.repeat(one, 1 if trained.once else trained.rounds, axis=1)


def _gradient_values(trained: LaplaceTraining, profiles: Ratings) -> Floats:
    """Return the bits and gradients of each profile: profiles by rounds by ads by numbers."""
    model = trained.start().model
    tastes = np.zeros((len(profiles), trained.dimension), dtype=np.float32)
    update_tastes(
        model,
        tastes,
        profiles,
        local=trained.local,
        ridge=trained.ridge,
        rate=trained.taste_rate,
        weight=trained.weight,
    )
    one = gradients(model, tastes, profiles).astype(np.float64)
    return np.repeat(one[:, None], trained.rounds, axis=1)


def _pair_games(
    training: TrainingPhase, mechanism: Mechanism, values: Floats, source: SeededSource
) -> NamedAttacks:
    """Tell unrated from rated 1, and rated 0 from rated 1: profiles by rounds by values."""
    unrated, low, high = values
    for name, pair in {"rated": (unrated, high), "rating": (low, high)}.items():
        yield name, partial(_play_pair, training, mechanism, pair, source, name)


def _play_pair(
    training: TrainingPhase,
    mechanism: Mechanism,
    pair: tuple[Floats, Floats],
    source: SeededSource,
    name: str,
) -> AttackOutcome:
    rounds = len(pair[1])
    most = max(FEWEST, MOST_NUMBERS // pair[1].size)
    return play_pair(
        mechanism,
        pair,
        min(block_of(training.scenario).canaries, most),
        source.child(name),
        epsilon=_proved(training.training),
        closed_form=success_from(mechanism, [pair[0][0], pair[1][0]], rounds),
    )


def _proved(training: AdTraining | None) -> float:
    return np.inf if training is None else training.guarantee(Neighbours.USER).epsilon


def _membership(
    training: TrainingPhase, trained: BitTraining, values: Floats, source: SeededSource
) -> AttackOutcome:
    """Hide somebody who rated the ad at the top among people of all three profiles."""
    game = MembershipGame(trained.bit, values[2], values[:, 0], PEOPLE)
    games = max(1_000, block_of(training.scenario).canaries // 10)
    return game.play(games, source.child("membership"))


MOST_REQUESTS = 60
"""Requests of one person that are joined at most: beyond, nearly everything is known."""

DEVICES_LINKED = 20
"""Devices among which the partner of one is to be found."""

FEWEST_CONNECTIONS = 8
"""Users of whom half of the busiest quarter, and of the quietest, is at least one."""


def request_games(
    delivery: DeliveryPhase, context: SimulationContext, source: SeededSource
) -> NamedAttacks:
    """Play for the favourite ad and topic, and for the partner among devices.

    Candidates score ads by what they truly like, as with a model that makes no error; then the
    mechanism alone decides what a request tells. The same candidates score by the model that was
    trained: what it does not tell apart, requests do not. Where all have one favourite there is
    nothing to be guessed.
    """
    people = CandidateProfiles.of(delivery.scenario, context)
    if len(people) < 2:
        return
    span = block_of(delivery.scenario).delivery.score_range
    likings, trained = span * people.liking, delivery.scored(people.ratings).astype(np.float64)
    is_linked, distribution = (
        delivery.scenario.threat.linked,
        RequestDistribution(delivery.delivery),
    )
    fresh = min(requests_per_requesting_user(delivery.asked), MOST_REQUESTS) if is_linked else 1
    counts = {"": 1, "_all_days": fresh} if fresh > 1 else {"": 1}
    canaries = block_of(delivery.scenario).canaries
    for name, requests in counts.items():
        game = RequestGame(distribution, likings, requests)
        yield f"favourite{name}", partial(_play, game, canaries, source, "favourite", name)
        if max(people.topics):
            by_topic = replace(game, topics=people.topics)
            yield f"topic{name}", partial(_play, by_topic, canaries, source, "topic", name)
        by_model = replace(game, rows=trained)
        yield (
            f"favourite_trained{name}",
            partial(_play, by_model, canaries, source, "favourite-trained", name),
        )
    yield from _reused(delivery, distribution, likings, source)
    yield from _calibration(delivery, likings, source)
    # What is asked for in the open links by itself; no symbol distinguishes slates.
    if not delivery.delivery.is_slate and distribution.guarantee().is_finite:
        transcript = context.transcript(AD_REQUESTS)
        randomness = source.child("linking")
        yield (
            "linking",
            partial(play_linking, distribution, trained, transcript, fresh, canaries, randomness),
        )


def play_linking(
    distribution: RequestDistribution,
    rows: Floats,
    transcript: Transcript | None,
    requests: int,
    canaries: int,
    source: SeededSource,
) -> AttackOutcome:
    """Find which requests of odd days are of the user of given requests of even days.

    Sees:      equally many requests of each of twenty users, as they arrived in the run.
    Knows:     the distribution, and candidate profiles; users resemble them, and are others.
    Guesses:   the partner of one user in each group of twenty.
    Reference: ``LinkingGame``; there is no closed form for users who are no candidates.

    Where there are no two such halves (requests cannot be linked, a run of one day, fewer than
    twenty users) or no candidate can make some request, the game draws two devices of canaries.
    """
    seen = None if transcript is None else transcript.halves(MOST_REQUESTS)
    if seen is None or len(seen[0]) < DEVICES_LINKED or not _is_all_possible(distribution, rows):
        game = LinkingGame(distribution, rows, DEVICES_LINKED, requests)
        return game.play(max(1, canaries // 20), source)
    groups, length = len(seen[0]) // DEVICES_LINKED, seen[0].shape[1]
    shape = (groups, DEVICES_LINKED)
    draw = source.generator()
    chosen = draw.permutation(len(seen[0]))[: groups * DEVICES_LINKED].reshape(shape)
    order = draw.permuted(np.broadcast_to(np.arange(DEVICES_LINKED), shape), axis=1)
    first, second = seen[0][chosen], seen[1][np.take_along_axis(chosen, order, axis=1)]
    game = LinkingGame(distribution, rows, DEVICES_LINKED, length)
    return game.match(first, second, (order == 0).argmax(axis=1))


def _is_all_possible(distribution: RequestDistribution, rows: Floats) -> bool:
    """Say whether every candidate can request every ad, up to the precision of numbers."""
    ads = np.arange(rows.shape[1])
    return all(np.isfinite(distribution.log_likelihood(ads, row)).all() for row in rows)


def _play(game: RequestGame, canaries: int, source: SeededSource, *path: str) -> AttackOutcome:
    return game.play(canaries, source.child(*path))


def _reused(
    delivery: DeliveryPhase,
    distribution: RequestDistribution,
    rows: Floats,
    source: SeededSource,
) -> NamedAttacks:
    """Guess from all impressions of a day that show one request's ad: they are one release."""
    slots, users = (
        sum(getattr(it, name) for it in delivery.statistics) for name in ("slots", "users")
    )
    if not delivery.is_daily or not users:
        return
    game = RequestGame(distribution, rows, -(-slots // users), is_memoised=True)
    canaries = block_of(delivery.scenario).canaries
    yield "favourite_reused", partial(_play, game, canaries, source, "favourite", "reused")


def _calibration(delivery: DeliveryPhase, rows: Floats, source: SeededSource) -> NamedAttacks:
    """Play against requests that tell nothing, and against such that tell all.

    The first must be no better than the prior, the second always right; else the games above
    say nothing.
    """
    canaries = block_of(delivery.scenario).canaries
    for name, choice in (("null", AdSelection.RANDOM), ("planted", AdSelection.EXACT)):
        distribution = RequestDistribution(delivery_of(delivery.scenario, choice))
        game = RequestGame(distribution, rows)
        yield name, partial(_play, game, canaries, source, name)


def play_activity(
    scenario: Scenario, context: SimulationContext, transcript: Transcript, *, is_daily: bool
) -> AttackOutcome:
    """Tell the busiest quarter of users from the quietest, by the requests that arrived.

    Sees:      how many requests came by each connection on each day of the run; where devices ask
               once a day, on which days one came. Not what they ask for, nor the hour.
    Knows:     the mean of each class on each day, from half of its users.
    Guesses:   the class of the other half. Outside the guarantee: epsilon says nothing of it.
    Reference: Bayes, with independent Poisson counts, or independent days.
    """
    users = connections_of(scenario)
    quarter = users // 4
    ranked = np.argsort(_engagement(scenario, context)[:users], kind="stable")
    classes = np.stack([ranked[:quarter], ranked[-quarter:]])
    seen = transcript.counts(users, scenario.days)
    if is_daily:
        asked = np.minimum(seen, 1)
        # The Poisson likelihood of a day and its complement is that of the day.
        seen = np.concatenate([asked, 1 - asked], axis=1)
    known, others = classes[:, ::2], classes[:, 1::2]
    # Half a request is added, so that nothing is impossible for not having been seen.
    rates = (seen[known].sum(axis=1) + 0.5) / (known.shape[1] + 1)
    truth = np.repeat([0, 1], others.shape[1])
    guessed = guess_class(seen[others.reshape(-1)], rates).candidate
    return score(guessed, truth, baseline=1 / len(classes), bound=1.0, is_covered=False)


def connections_of(scenario: Scenario) -> int:
    """Return how many users have a connection in the transcript."""
    return min(scenario.population.users, MOST_CONNECTIONS)


def _engagement(scenario: Scenario, context: SimulationContext) -> Floats:
    """Return the page views a day that are expected of each user in the first cohorts."""
    cohorts = -(-connections_of(scenario) // scenario.population.cohort)
    return np.concatenate([context.cohort(number).engagement for number in range(cohorts)])


def activity_game(delivery: DeliveryPhase, context: SimulationContext) -> NamedAttacks:
    """Play for who is busy, where requests arrived by connections that can be told apart."""
    scenario, transcript = delivery.scenario, context.transcript(AD_REQUESTS)
    if transcript is not None and connections_of(scenario) >= FEWEST_CONNECTIONS:
        yield (
            "activity",
            partial(play_activity, scenario, context, transcript, is_daily=delivery.is_daily),
        )


def attack(
    training: TrainingPhase,
    delivery: DeliveryPhase,
    context: SimulationContext,
    source: SeededSource,
) -> list[Metric]:
    """Mount the selected attacks that the threat model allows, and return their metrics."""
    scenario = delivery.scenario
    requests, reports, activity = (
        request_games(delivery, context, source),
        training_games(training, context, source),
        activity_game(delivery, context),
    )
    return [
        metric
        for name, play in chain(requests, reports, activity)
        if scenario.mounts("ads", name)
        for metric in game_metrics(name, play())
    ]
