"""Guessing ratings and members from what devices report in training.

The adversary knows all else about the device: its other ratings, and so its taste. Candidate
profiles answer the last model, as if that had been broadcast in every round.
"""

from collections.abc import Iterator

import numpy as np

from noisefloor.ads.bit_training import BitTraining
from noisefloor.ads.factors import Ratings
from noisefloor.ads.laplace_training import LaplaceTraining, gradients
from noisefloor.ads.rounds import update_tastes
from noisefloor.ads.spectral import SpectralTraining
from noisefloor.ads.training import Training
from noisefloor.adversary.ads.gradients import candidate_values, play_pair
from noisefloor.adversary.ads.membership import MembershipGame
from noisefloor.adversary.observations import success_from
from noisefloor.adversary.outcome import Outcome
from noisefloor.checks import Floats
from noisefloor.mechanisms.base import Mechanism
from noisefloor.privacy import Neighbours
from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines.ads.block import block_of
from noisefloor_sim.pipelines.ads.training import TrainingPhase
from noisefloor_sim.pipelines.base import Stage

PEOPLE = 64
"""People among whom a member of training is hidden, for the game; more hide better."""

MOST_NUMBERS = 1 << 24
"""Numbers in all messages of a game, at most: wide messages are sent by fewer devices."""

FEWEST = 500
"""Devices in a game, at least."""

Named = Iterator[tuple[str, Outcome]]


def training_games(training: TrainingPhase, stage: Stage, source: SeededSource) -> Named:
    """Guess whether an ad is rated, how, and who took part in training.

    The lite form of spectral training has no likelihood of its whole report, and no game.
    """
    trained, profiles = training.training, profiles_of_one(stage)
    if isinstance(trained, BitTraining):
        values = _bit_values(training, trained, profiles)
        yield from _pair_games(training, trained.bit, values, source)
        yield "membership", _membership(training, trained, values, source)
    elif isinstance(trained, LaplaceTraining):
        values = _gradient_values(training, trained, profiles)
        yield from _pair_games(training, trained.noise, values, source)
    elif isinstance(trained, SpectralTraining) and trained.form == "full":
        above = profiles.above(training.model.base).astype(np.float64)
        yield from _pair_games(training, trained.axes, above[:, None], source)


def profiles_of_one(stage: Stage) -> Ratings:
    """Return what the first user may hold: the first ad unrated, rated 0, rated 1."""
    held = stage.world.tastes.hold_ratings(stage.cohort(0))[np.zeros(3, dtype=np.intp)]
    rated, rating = held.rated.copy(), held.rating.copy()
    rated[:, 0], rating[:, 0] = (False, True, True), (0, 0, 1)
    return Ratings(rated, rating)


def _bit_values(training: TrainingPhase, trained: BitTraining, profiles: Ratings) -> Floats:
    """Return what each profile reports about: profiles by rounds by cells."""
    tastes = np.zeros((len(profiles), training.model.dimension), dtype=np.float32)
    one = candidate_values(trained, [training.model], tastes, profiles)
    return np.repeat(one, 1 if trained.once else trained.rounds, axis=1)


def _gradient_values(
    training: TrainingPhase, trained: LaplaceTraining, profiles: Ratings
) -> Floats:
    """Return the bits and gradients of each profile: profiles by rounds by ads by numbers."""
    tastes = np.zeros((len(profiles), training.model.dimension), dtype=np.float32)
    update_tastes(
        training.model,
        tastes,
        profiles,
        local=trained.local,
        ridge=trained.ridge,
        rate=trained.taste_rate,
        weight=trained.weight,
    )
    one = gradients(training.model, tastes, profiles).astype(np.float64)
    return np.repeat(one[:, None], trained.rounds, axis=1)


def _pair_games(
    training: TrainingPhase, mechanism: Mechanism, values: Floats, source: SeededSource
) -> Named:
    """Tell unrated from rated 1, and rated 0 from rated 1: profiles by rounds by values."""
    unrated, low, high = values
    room = max(FEWEST, MOST_NUMBERS // high.size)
    canaries = min(block_of(training.scenario).canaries, room)
    for name, pair in {"rated": (unrated, high), "rating": (low, high)}.items():
        outcome = play_pair(
            mechanism,
            pair,
            canaries,
            source.child(name),
            epsilon=_proved(training.training),
            closed_form=success_from(mechanism, [pair[0][0], pair[1][0]], len(high)),
        )
        yield name, outcome


def _proved(training: Training | None) -> float:
    return np.inf if training is None else training.guarantee(Neighbours.USER).epsilon


def _membership(
    training: TrainingPhase, trained: BitTraining, values: Floats, source: SeededSource
) -> Outcome:
    """Hide somebody who rated the ad at the top among people of all three profiles."""
    game = MembershipGame(trained.bit, values[2], values[:, 0], PEOPLE)
    games = max(1_000, block_of(training.scenario).canaries // 10)
    return game.play(games, source.child("membership"))
