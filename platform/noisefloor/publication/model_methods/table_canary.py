"""The canary of noisy tables: a record that is in every one of them, or not."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.publication.model_methods.plan import Scores
from noisefloor.publication.synthesis.loss import Change
from noisefloor.publication.synthesis.noise import GaussianEntries, LaplaceEntries, Noise
from noisefloor.randomness import Source


@dataclass(frozen=True, slots=True)
class TableCanary:
    """A record that is in every table of noisy counts, or not; exact likelihoods.

    Attributes:
        groups: The noise of each group of integers, and what one record does to it.
    """

    groups: Sequence[tuple[Noise, Change]]

    @property
    def text(self) -> str:
        """What the two inputs are, and what the adversary sees."""
        return (
            "Two tables that differ in one record, which changes as many noisy integers, by as "
            "much, as any record can; the adversary sees the noisy integers and knows all other "
            "records."
        )

    @property
    def work(self) -> int:
        """How much one game takes: exact likelihoods cost more than the draws."""
        return 2 * sum(change.entries for _, change in self.groups)

    def scores(self, games: int, source: Source) -> tuple[Scores, Scores]:
        """Play so many games on each input; see ``Canary``."""
        return (
            self._played(games, source.child("in"), 1),
            self._played(games, source.child("out"), 0),
        )

    def _played(self, games: int, source: Source, is_in: int) -> Scores:
        total = np.zeros(games)
        for number, (noise, change) in enumerate(self.groups):
            truth = np.full((games, change.entries), is_in * change.step, dtype=np.int64)
            seen = noise.add(truth, source.child("group", number))
            total += (_log_pmf(noise, seen - change.step) - _log_pmf(noise, seen)).sum(axis=1)
        return total


def _log_pmf(noise: Noise, values: NDArray[np.int64]) -> Scores:
    """Return ln P of each noise, from the weights as they are drawn by."""
    if isinstance(noise, LaplaceEntries):
        return np.asarray(noise.mechanism.noise.log_pmf(values))
    assert isinstance(noise, GaussianEntries)
    place = values + noise.table.reach
    is_on = (place >= 0) & (place < len(noise.table.law))
    logs = np.log(noise.table.chances)[np.where(is_on, place, 0)]
    # Beyond the table one input is ruled out: as sure as a score can be, and still a number.
    return np.where(is_on, logs, -1e6)
