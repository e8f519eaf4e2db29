"""Canaries: what one record can change at most, put through the noise of a plan.

Each is two neighbouring inputs and the distribution of the output. Nothing else is needed: an
adversary who knows all other records takes away what they add, and sees the noise on a change.

The canary of noisy tables: a record that is in every one of them, or not.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from noisefloor.mechanisms import GaussianTable
from noisefloor.publication import synthesis
from noisefloor.publication.methods.model_plan import LogRatios
from noisefloor.publication.networks import HALF_STEPS, LearningFirst
from noisefloor.randomness import Source


@dataclass(frozen=True, slots=True)
class TableCanary:
    """A record that is in every table of noisy counts, or not; exact likelihoods.

    Attributes:
        groups: The noise of each group of integers, and what one record does to it.
    """

    groups: Sequence[tuple[synthesis.EntryNoise, synthesis.RecordChange]]

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

    def scores(self, games: int, source: Source) -> tuple[LogRatios, LogRatios]:
        """Play ``games`` games on each input; see ``Canary``."""
        return (
            self._played(games, source.child("in"), 1),
            self._played(games, source.child("out"), 0),
        )

    def with_noise(self, share: float) -> "TableCanary":
        """Return the same records under a share of the noise."""
        return TableCanary([(_scaled(noise, share), change) for noise, change in self.groups])

    def _played(self, games: int, source: Source, is_in: int) -> LogRatios:
        total = np.zeros(games)
        for number, (noise, change) in enumerate(self.groups):
            truth = np.full((games, change.entries), is_in * change.step, dtype=np.int64)
            seen = noise.add(truth, source.child("group", number))
            total += (_log_pmf(noise, seen - change.step) - _log_pmf(noise, seen)).sum(axis=1)
        return total


def _scaled(noise: synthesis.EntryNoise, share: float) -> synthesis.EntryNoise:
    """Return integer noise of a share of the scale."""
    if isinstance(noise, synthesis.LaplaceEntries):
        return synthesis.LaplaceEntries(
            replace(noise.mechanism, epsilon=noise.mechanism.epsilon / share)
        )
    assert isinstance(noise, synthesis.GaussianEntries)  # noqa: S101  narrows a type
    return synthesis.GaussianEntries(GaussianTable(noise.table.sigma * share))


def _log_pmf(noise: synthesis.EntryNoise, values: NDArray[np.int64]) -> LogRatios:
    """Return ln P of each noise, from the weights as they are drawn by."""
    if isinstance(noise, synthesis.LaplaceEntries):
        return np.asarray(noise.mechanism.noise.log_pmf(values))
    assert isinstance(noise, synthesis.GaussianEntries)  # noqa: S101  narrows a type
    place = values + noise.table.reach
    is_on = (place >= 0) & (place < len(noise.table.distribution))
    logs = np.log(noise.table.chances)[np.where(is_on, place, 0)]
    # Beyond the table one input is ruled out: as sure as a score can be, and still a number.
    return np.where(is_on, logs, -1e6)


_BLOCK = 1 << 20
"""Random numbers drawn at once."""


@dataclass(frozen=True, slots=True)
class ParameterCanary:
    """A record that moves every parameter from the one threshold to the other.

    Attributes:
        learning: Its noise, and the exact distribution of what is seen.
    """

    learning: LearningFirst

    @property
    def text(self) -> str:
        """What the two inputs are, and what the adversary sees."""
        return (
            "A record that moves every trained parameter from the lower threshold to the upper "
            "one: training gives no smaller bound. The adversary sees all noisy parameters, and "
            "adds up their log-likelihood ratios."
        )

    @property
    def work(self) -> int:
        """How much one game takes: exact likelihoods cost more than the draws."""
        return 8 * self.learning.parameters

    def scores(self, games: int, source: Source) -> tuple[LogRatios, LogRatios]:
        """Play ``games`` games on each input; see ``Canary``."""
        return (
            self._played(games, source.child("in"), 1),
            self._played(games, source.child("out"), -1),
        )

    def with_noise(self, share: float) -> "ParameterCanary":
        """Return the same parameters under a share of the noise."""
        return ParameterCanary(replace(self.learning, epsilon=self.learning.epsilon / share))

    def _played(self, games: int, source: Source, sign: int) -> LogRatios:
        learning, count = self.learning, self.learning.parameters
        draw = learning.noise.sampler(source)
        ends = [np.full(count, end * learning.bound, np.float32) for end in (1, -1)]
        scores = np.empty(games)
        at_once = max(1, _BLOCK // count)
        for start in range(0, games, at_once):
            block = slice(start, min(start + at_once, games))
            noisy = sign * HALF_STEPS + draw((block.stop - start) * count)
            places = np.clip(noisy, -HALF_STEPS, HALF_STEPS).reshape(-1, count)
            seen = (places * (learning.bound / HALF_STEPS)).astype(np.float32)
            high, low = (learning.log_likelihood(seen, end) for end in ends)
            scores[block] = high - low
        return scores


@dataclass(frozen=True, slots=True)
class IncrementCanary:
    """A record whose increments are as large as clipping lets them be, once in every epoch.

    Attributes:
        epsilon: What one coordinate of an increment costs in an epoch: how far a record moves it,
            over the scale of its noise.
        epochs: How often the record is seen.
        coordinates: How many coordinates it moves that far.
    """

    epsilon: float
    epochs: int
    coordinates: int = 1

    @property
    def text(self) -> str:
        """What the two inputs are, and what the adversary sees."""
        return (
            f"A record whose increment fills what clipping allows of {self.coordinates} "
            "coordinates, or another whose increment is the opposite, in one batch of every "
            "epoch; the adversary sees the noisy sums of that batch before they are clamped, and "
            "knows all other records."
        )

    @property
    def work(self) -> int:
        """How much one game takes: a number for each coordinate that moves in an epoch."""
        return self.epochs * self.coordinates

    def scores(self, games: int, source: Source) -> tuple[LogRatios, LogRatios]:
        """Play ``games`` games on each input; see ``Canary``."""
        return (
            self._played(games, source.child("in"), 1),
            self._played(games, source.child("out"), -1),
        )

    def with_noise(self, share: float) -> "IncrementCanary":
        """Return the same increments under a share of the noise."""
        return replace(self, epsilon=self.epsilon / share)

    def _played(self, games: int, source: Source, sign: int) -> LogRatios:
        noise_source = source.stage("noise")
        half = self.epsilon / 2  # from the middle to either input, in scales of the noise
        at_once = max(1, _BLOCK // self.work)
        scores = np.empty(games)
        for start in range(0, games, at_once):
            count = min(at_once, games - start)
            noise = noise_source.laplaces(count * self.work).reshape(count, -1)
            seen = noise.astype(np.float64) + sign * half
            scores[start : start + count] = (np.abs(seen + half) - np.abs(seen - half)).sum(axis=1)
        return scores
