"""Differencing: what two releases of a growing data set reveal of a record added in between.

A data holder publishes every week. A record of both weeks is in two releases, whose costs add
up. A newcomer is in the second only; but who takes the first from the second is rid of all other
records without knowing them, at the price of twice the noise. Noise that is used again leaves the
newcomer bare: the planted leak.
"""

from dataclasses import dataclass

import numpy as np

from noisefloor.adversary.audit import Prior, check_prior
from noisefloor.adversary.releases import noise_distributions
from noisefloor.adversary.releases.informed_adversary import InformedGame, pair_closed_form
from noisefloor.adversary.releases.reconstruction_bounds import as_substitution
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import Reports
from noisefloor.privacy import Guarantee, Neighbours


@dataclass(frozen=True, slots=True)
class WeeklyRelease:
    """One of the releases.

    Attributes:
        noise: Its distribution.
        guarantee: What is proved of it.
    """

    noise: noise_distributions.NoiseDistribution
    guarantee: Guarantee


def blind_game(
    shifts: Reports, weeks: tuple[WeeklyRelease, WeeklyRelease], prior: Prior = None
) -> InformedGame:
    """Return the game of an adversary who knows no record and takes the difference.

    A newcomer is in the second release alone, so its guarantee alone sets the bound.
    """
    difference = noise_distributions.DifferenceDistribution(weeks[0].noise, weeks[1].noise)
    return _game(shifts, difference, weeks[1].guarantee, prior)


def newcomer_game(
    shifts: Reports, weeks: tuple[WeeklyRelease, WeeklyRelease], prior: Prior = None
) -> InformedGame:
    """Return the game of an adversary who knows all records but the newcomer's.

    The first release tells nothing then: what it was made from is known.
    """
    return _game(shifts, weeks[1].noise, weeks[1].guarantee, prior)


def _game(
    shifts: Reports,
    noise: noise_distributions.NoiseDistribution,
    guarantee: Guarantee,
    prior: Prior,
) -> InformedGame:
    closed = pair_closed_form(shifts, noise, check_prior(len(shifts), prior))
    return InformedGame(shifts, noise, candidate_guarantee(shifts, guarantee), prior, closed)


def candidate_guarantee(shifts: Reports, guarantee: Guarantee) -> Guarantee:
    """Return what is guaranteed to any two of the candidates.

    "Nobody" (a row of zeros) and one record are neighbours by adding; two records by substitution.
    A guarantee for substitution alone says nothing of who was added.
    """
    has_nobody = not np.all(np.any(shifts != 0, axis=1))
    if has_nobody and guarantee.neighbours is not Neighbours.RECORD_ADD_REMOVE:
        raise BadParameter("neighbours", guarantee.neighbours.value, "record-add-remove")
    return guarantee if has_nobody and len(shifts) == 2 else as_substitution(guarantee)
