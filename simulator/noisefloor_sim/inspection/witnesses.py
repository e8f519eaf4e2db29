"""Witnesses: users whose secret is decided by a random bit that only scoring knows.

Two users hold each other's value or their own, by a fair bit of a named stream: every sum stays as
it is. They go through the same device code, account, frame, network and server as everybody else.
The adversary is that of the definition: it knows everything but the bit, also which row is a
witness's, and scores the row by its exact likelihood ratio.
"""

import math
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary.audit import bound_from_guesses, guesses_of
from noisefloor.checks import Floats
from noisefloor.privacy import LowerBound
from noisefloor.randomness import Generator
from noisefloor_sim.scenario import Scenario

Rows = NDArray[np.int64]
Flags = NDArray[np.bool_]
Value = TypeVar("Value", bound=np.generic)


@dataclass(frozen=True, slots=True, eq=False)
class WitnessPairs:
    """Pairs of users of one cohort who may hold each other's value.

    Attributes:
        first: The user of each pair who is looked at.
        second: The other one.
        swapped: The bit of each pair: whether the two hold each other's value.
        unused: A bit that was drawn and never used: what a guess is worth against it is null.
    """

    first: Rows
    second: Rows
    swapped: Flags
    unused: Flags

    def __len__(self) -> int:
        return len(self.first)

    @property
    def moved(self) -> tuple[Rows, Rows]:
        """Whose value goes where: of users in the first, to users in the second."""
        first, second = self.first[self.swapped], self.second[self.swapped]
        return np.concatenate([first, second]), np.concatenate([second, first])

    def arrived(self, places: Rows) -> tuple[Flags, Rows]:
        """Return of which pairs the first one's report is among these, and where it is.

        Args:
            places: Of reports, increasing; pairs are places, too.
        """
        where = np.searchsorted(places, self.first)
        came = where < len(places)
        came[came] = places[where[came]] == self.first[came]
        return came, where[came]

    def exchange(self, values: NDArray[Value]) -> NDArray[Value]:
        """Return the values of all users, those of swapped pairs exchanged."""
        if not self.swapped.any():
            return values
        source, target = self.moved
        exchanged = values.copy()
        exchanged[target] = values[source]
        return exchanged


COHORTS = 256
"""How many cohorts, from the first, witnesses are drawn from."""


_SMALL = 0.25


def most_pairs(scenario: Scenario, cohort: int) -> int:
    """Return how many pairs of a cohort's users are witnesses at one time.

    A small share is that of all users, taken from every second cohort: that is faster.
    """
    if cohort >= COHORTS:
        return 0
    share = scenario.witnesses.share
    size = min(scenario.population.cohort, scenario.population.users)
    if share > _SMALL:
        return int(share * size / 2)
    return 0 if cohort % 2 else int(share * size)


def no_pairs() -> WitnessPairs:
    """Return no pair at all."""
    none, bits = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.bool_)
    return WitnessPairs(none, none, bits, bits)


def draw_pairs(eligible: Rows, most: int, chance: Generator) -> tuple[Rows, Rows]:
    """Return users in random pairs that share nobody; a caller keeps those that suit it.

    Args:
        eligible: Users who may be a witness.
        most: Pairs that will be used; more are drawn, for some may not suit.
        chance: Of the draw.
    """
    order = chance.permutation(len(eligible))
    half = min(len(order) // 2, 4 * most)
    return eligible[order[:half]], eligible[order[half : 2 * half]]


def pairs_alike(
    public: NDArray[np.integer], bits: Flags, most: int, chance: Generator
) -> WitnessPairs:
    """Draw pairs of users with the same public value, of whom one holds a one, one a zero.

    Args:
        public: What everybody may know of each user.
        bits: What each user holds.
        most: Pairs that are drawn at most.
        chance: Of the draw.
    """
    order = chance.permutation(len(public))
    ranks = [_ranked(order[bits[order] == bit], public) for bit in (True, False)]
    _, first, second = np.intersect1d(ranks[0][0], ranks[1][0], return_indices=True)
    ones, zeros = ranks[0][1][first], ranks[1][1][second]
    return with_bits(ones[:most], zeros[:most], chance)


def _ranked(users: Rows, public: NDArray[np.integer]) -> tuple[Rows, Rows]:
    """Return a code for each user, value and place among those of the value, and the users."""
    by_value = users[np.argsort(public[users], kind="stable")]
    values = public[by_value].astype(np.int64)
    first = np.searchsorted(values, values)
    return values * (len(public) + 1) + np.arange(len(values)) - first, by_value


def with_bits(first: Rows, second: Rows, chance: Generator) -> WitnessPairs:
    """Draw the bits of pairs."""
    bits, unused = chance.random((2, len(first))) < 0.5
    return WitnessPairs(first, second, bits, unused)


@dataclass(slots=True)
class WitnessScores:
    """Guesses of the bits, counted as they come.

    Attributes:
        least: Guess only where the log-likelihood ratio is at least this far from 0.
        counts: Right guesses and guesses: of the bits, of the unused bits, and with the inputs
            randomised again at a third more epsilon.
    """

    least: float
    counts: dict[str, list[int]] = field(
        default_factory=lambda: {name: [0, 0] for name in ("audited", "null", "planted")}
    )

    def see(self, scores: Floats, bits: Flags, unused: Flags) -> None:
        """Count guesses from reports that arrived.

        Args:
            scores: ln P(report | swapped) - ln P(report | not).
            bits: Whether the pair was swapped.
            unused: The bits that were never used.
        """
        self._count("audited", scores, bits)
        self._count("null", scores, unused)

    def see_planted(self, scores: Floats, bits: Flags) -> None:
        """Count guesses from the same inputs, randomised with too little noise."""
        self._count("planted", scores, bits)

    def _count(self, name: str, scores: Floats, bits: Flags) -> None:
        right, made = guesses_of(scores, bits, self.least)
        self.counts[name][0] += right
        self.counts[name][1] += made

    def bound(self, name: str) -> LowerBound | None:
        """Return what the guesses prove; nothing if none was made."""
        right, made = self.counts[name]
        return bound_from_guesses(right, made) if made else None


SHARES = (1.0, 0.5, 0.25, 0.1, 0.05)
"""Of the guesses, those with the largest scores: one of these shares is made."""


def summed_bounds(
    scores: Floats, planted: Floats, bits: Flags, unused: Flags
) -> dict[str, LowerBound | None]:
    """Return what scores of many sizes prove: audited, null, and with a planted fault.

    Small scores are guesses that are right hardly more often than not. How many of the largest
    are guessed follows from the scores alone: as many as promise the largest bound, if a score s
    is right with probability e^s / (1 + e^s).

    Args:
        scores: ln P(reports | swapped) - ln P(reports | not), of each pair.
        planted: The same of reports that were drawn with too little noise.
        bits: Whether the pair was swapped.
        unused: Bits that were never used.
    """
    size = np.sort(np.abs(scores[scores != 0]))[::-1]
    best = 0.0, 1e-9
    for share in SHARES:
        made = math.ceil(share * len(size))
        if made:
            right = int((1 / (1 + np.exp(-size[:made]))).sum())
            best = max(best, (bound_from_guesses(right, made).epsilon, float(size[made - 1])))
    found = WitnessScores(least=best[1])
    found.see(scores, bits, unused)
    found.see_planted(planted, bits)
    return {name: found.bound(name) for name in found.counts}
