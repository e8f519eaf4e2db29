"""What training messages give away: is an ad rated, and how?

The worst case is granted: the attacker knows the device's taste and every broadcast, so that each
candidate profile stands for known values in every round, and only the noise is between the two.
One bit about one sampled coordinate (V2) and noise on every coordinate (V1) are both here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import binary_success
from noisefloor.ads.training import AdModel, Ratings, Single
from noisefloor.adversary import audit
from noisefloor.checks import Floats
from noisefloor.mechanisms import Mechanism, Reports, TwoSidedGeometric
from noisefloor.randomness import Source


def guess_profile(
    distribution: audit.ReportDistribution,
    messages: Reports,
    candidates: Sequence[Any] | Reports,
    prior: audit.Prior = None,
) -> audit.Guess:
    """Name the most probable profile behind the training messages of each user.

    Sees:      one message per user and round, rounds along the second axis.
    Knows:     the mechanism, every broadcast, the user's taste; so the values that each
               candidate profile (which ads are rated, and how) leads to in every round.
    Guesses:   the profile: rated or not, or which rating.
    Reference: Bayes; no rule is right more often.

    Args:
        distribution: Of one message, given the round's values.
        messages: One row per user, one column per round.
        candidates: For each profile, the values of every round.
        prior: Of the profiles.
    """
    return audit.most_probable(
        audit.posterior(distribution, messages, candidates, prior, is_changing=True)
    )


class BitGradients(Protocol):
    """What is needed of a way of training by one bit: how a device gets at its values."""

    @property
    def clip(self) -> float:
        """Values are clipped to [-clip, clip] and divided by it."""
        ...

    @property
    def cells(self) -> int:
        """How many coordinates there are."""
        ...

    def update_tastes(self, model: AdModel, tastes: Single, ratings: Ratings) -> None:
        """Update tastes in place, as devices do before they report."""
        ...

    def gradients(
        self, model: AdModel, tastes: Single, ratings: Ratings, cells: NDArray[np.uint32]
    ) -> Single:
        """Return each user's value at one coordinate."""
        ...


def candidate_values(
    training: BitGradients, models: Sequence[AdModel], tastes: Single, profiles: Ratings
) -> Floats:
    """Return what a device would report about, for each profile, round and coordinate.

    Args:
        training: The way of training, as devices run it.
        models: What was broadcast before each round.
        tastes: What the device starts from, one row per profile.
        profiles: The candidate ratings, one row per profile.
    """
    everything = np.arange(training.cells, dtype=np.uint32)
    cells, near = np.tile(everything, len(profiles)), tastes.copy()
    whose = np.repeat(np.arange(len(profiles)), training.cells)
    rounds = []
    for model in models:
        training.update_tastes(model, near, profiles)
        values = training.gradients(model, near[whose], profiles[whose], cells)
        rounds.append(values.reshape(len(profiles), -1).astype(np.float64))
    return np.clip(np.stack(rounds, axis=1) / training.clip, -1.0, 1.0)


@dataclass(frozen=True, slots=True)
class NoisyVector:
    """Integers on a grid with independent noise on each: what a V1 message holds of a gradient."""

    noise: TwoSidedGeometric

    def log_likelihood(self, reports: Reports, value: Any) -> Floats:
        """Return ln P(row | the grid integers behind it)."""
        shifts = np.asarray(reports, dtype=np.int64) - np.asarray(value, dtype=np.int64)
        return np.asarray(self.noise.log_pmf(shifts).sum(axis=1))

    def randomise(self, values: NDArray[np.integer], source: Source) -> NDArray[np.int64]:
        """Return one noisy row per user."""
        sample = self.noise.sampler(source)
        return np.asarray(values + sample(values.size).reshape(values.shape), dtype=np.int64)


def play_pair(
    mechanism: Mechanism | NoisyVector,
    pair: tuple[Reports, Reports],
    canaries: int,
    source: Source,
    *,
    epsilon: float,
    closed_form: float | None = None,
) -> audit.AttackOutcome:
    """Toss a fair coin for each device, let it train, and let the adversary name the profile.

    Args:
        mechanism: Randomises one round's values.
        pair: Two profiles: the values of each round, rounds along the first axis.
        canaries: How many devices.
        source: Of all draws.
        epsilon: What is proved of all rounds together; it sets the bound.
        closed_form: The success by theory, if the caller knows it.
    """
    truth = audit.draw_truth(np.full(2, 0.5), canaries, source)
    profiles = np.stack([np.asarray(one) for one in pair])
    messages = [
        mechanism.randomise(profiles[truth, number], source.child("round", number))
        for number in range(profiles.shape[1])
    ]
    guessed = guess_profile(mechanism, np.stack(messages, axis=1), profiles).candidate
    bound = float(binary_success(epsilon))
    return audit.score(guessed, truth, baseline=0.5, bound=bound, closed_form=closed_form)
