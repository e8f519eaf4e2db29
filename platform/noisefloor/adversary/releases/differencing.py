"""Differencing: what two releases of a growing data set say of whoever came in between.

A data holder publishes every week. Whoever is in both weeks is in two releases, whose costs add
up. A newcomer is in the second only; but who takes the first from the second is rid of all other
records without knowing them, at the price of twice the noise. Noise that is used again leaves the
newcomer bare: the planted leak.
"""

import math
from collections import Counter
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import sequential
from noisefloor.adversary.audit import Guess, Prior, check_prior, most_probable
from noisefloor.adversary.releases.informed_adversary import (
    InformedGame,
    pair_closed_form,
    reconstruct,
)
from noisefloor.adversary.releases.noise_distributions import (
    DifferenceDistribution,
    NoiseDistribution,
    StackedDistribution,
)
from noisefloor.adversary.releases.reconstruction_bounds import as_substitution, group_guarantee
from noisefloor.checks import Floats, check_count
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import Reports
from noisefloor.privacy import Guarantee, Neighbours

_MOST_GROUPS = 1 << 16


@dataclass(frozen=True, slots=True)
class WeeklyRelease:
    """One of the releases.

    Attributes:
        noise: Its law.
        guarantee: What is proved of it.
    """

    noise: NoiseDistribution
    guarantee: Guarantee


def guess_newcomer(
    first: Reports,
    second: Reports,
    shifts: Reports,
    weeks: tuple[WeeklyRelease, WeeklyRelease],
    prior: Prior = None,
) -> Guess:
    """Name the most probable newcomer behind each pair of releases.

    Sees:      the releases of two weeks.
    Knows:     how each candidate moves the release (counts and sums are moved alike whoever else
               is in), and the laws of the noise; no other record.
    Guesses:   who came in between.
    Reference: Bayes, from the law of the difference of the noise of both weeks.

    Args:
        first: Releases of the first week, a row each.
        second: Those of the second.
        shifts: What each candidate adds to a release without noise; zeros for "nobody".
        weeks: Laws and guarantees.
        prior: Of the candidates.
    """
    law = DifferenceDistribution(weeks[0].noise, weeks[1].noise)
    return most_probable(reconstruct(second - first, shifts, law, prior))


def blind_game(
    shifts: Reports, weeks: tuple[WeeklyRelease, WeeklyRelease], prior: Prior = None
) -> InformedGame:
    """Return the game of an adversary who knows no record and takes the difference.

    A newcomer is in the second release alone, so its guarantee alone sets the bound.
    """
    law = DifferenceDistribution(weeks[0].noise, weeks[1].noise)
    return _game(shifts, law, weeks[1].guarantee, prior)


def newcomer_game(
    shifts: Reports, weeks: tuple[WeeklyRelease, WeeklyRelease], prior: Prior = None
) -> InformedGame:
    """Return the game of an adversary who knows all records but the newcomer's.

    The first release tells nothing then: what it was made from is known.
    """
    return _game(shifts, weeks[1].noise, weeks[1].guarantee, prior)


def stayer_game(
    shifts: tuple[Reports, Reports],
    weeks: tuple[WeeklyRelease, WeeklyRelease],
    prior: Prior = None,
) -> InformedGame:
    """Return the game of a record that is in both weeks, all others being known.

    Sees:      both releases.
    Knows:     all records but one, and what each candidate adds to each release.
    Guesses:   the candidate: log-likelihoods of the weeks add up, and so do their budgets.
    Reference: Bayes; Dwork and Roth 2014, theorem 3.16 (composition), doi 10.1561/0400000042.
    """
    if len(shifts[0]) != len(shifts[1]):
        raise BadParameter(
            "shifts", len(shifts[1]), f"candidates, as in week one: {len(shifts[0])}"
        )
    centres = np.concatenate(shifts, axis=1)
    law = StackedDistribution([week.noise for week in weeks], [some.shape[1] for some in shifts])
    total = sequential([week.guarantee for week in weeks])
    return _game(centres, law, total, prior)


def _game(
    shifts: Reports, noise: NoiseDistribution, guarantee: Guarantee, prior: Prior
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


@dataclass(frozen=True, slots=True, eq=False)
class Newcomers:
    """Several newcomers at once: who they are, in no order.

    Attributes:
        members: The candidates in each group, one row per group.
        shifts: What each group adds to a release.
        prior: Of the groups, from independent newcomers.
    """

    members: NDArray[np.intp]
    shifts: Reports
    prior: Floats

    @classmethod
    def of(cls, shifts: Reports, count: int, prior: Prior = None) -> "Newcomers":
        """List the groups of so many newcomers, each one of the candidates."""
        kinds = len(shifts)
        if math.comb(kinds + check_count(count, "count") - 1, count) > _MOST_GROUPS:
            raise BadParameter("count", count, f"of at most {_MOST_GROUPS} different groups")
        listed = list(combinations_with_replacement(range(kinds), count))
        members, shares = np.array(listed, dtype=np.intp), check_prior(kinds, prior)
        ways = np.array([_orders(some) for some in listed], dtype=np.float64)
        return cls(members, shifts[members].sum(axis=1), ways * shares[members].prod(axis=1))

    def game(self, weeks: tuple[WeeklyRelease, WeeklyRelease]) -> InformedGame:
        """Return the game of the whole group, all other records being known."""
        one = as_substitution(weeks[1].guarantee)
        whole = group_guarantee(one, self.members.shape[1])
        return InformedGame(self.shifts, weeks[1].noise, whole, self.prior)


def _orders(members: tuple[int, ...]) -> int:
    """Return in how many orders a group may come."""
    whole = math.factorial(len(members))
    for times in Counter(members).values():
        whole //= math.factorial(times)
    return whole
