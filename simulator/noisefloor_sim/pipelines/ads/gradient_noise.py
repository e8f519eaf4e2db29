"""The noise of the averaged gradient: measured from two halves of the reports, and by formula."""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads.training import BitTraining, GradientBound, GradientReport, LaplaceTraining
from noisefloor.mechanisms import Reports, SampledBit
from noisefloor_sim.pipelines.api import Metric

SMALL = 0.1
"""Noise of a tenth of the clip in each number leaves something to be seen."""


@dataclass(frozen=True, slots=True)
class HalfTallies:
    """Tallies of the reports of even and of odd cohorts in one round, and how many there are."""

    tallies: NDArray[np.int64]
    counts: NDArray[np.int64]


@dataclass(slots=True)
class GradientNoise:
    """What even and odd cohorts reported, by round; only scoring reads it.

    Two halves of one population have the same mean gradient, so half the difference of their
    estimates is noise alone, as large as that of all reports together. All deviations are in
    units of the clip.
    """

    training: BitTraining | LaplaceTraining
    rounds: list[HalfTallies] = field(default_factory=list)

    @property
    def mechanism(self) -> SampledBit | GradientReport:
        """What protects a report."""
        is_bits = isinstance(self.training, BitTraining)
        return self.training.bit if is_bits else self.training.noise  # type: ignore[union-attr]

    @property
    def clip(self) -> float:
        """What gradients are clipped to; as printed, noise on whole gradients clips nothing."""
        is_free = (
            isinstance(self.training, LaplaceTraining)
            and self.training.form is GradientBound.PRINTED
        )
        return 1.0 if is_free else self.training.clip

    def open(self) -> None:
        """Begin a round."""
        empty = self.mechanism.tally(self._nothing())
        counts = np.zeros(2, dtype=np.int64)
        self.rounds.append(HalfTallies(np.zeros((2, empty.size), dtype=np.int64), counts))

    def _nothing(self) -> Reports:
        if isinstance(self.training, BitTraining):
            return np.zeros(0, dtype=np.uint32)
        return np.zeros((0, self.training.ads, 1 + self.training.dimension), dtype=np.int32)

    def count(self, half: int, reports: Reports) -> None:
        """Add a cohort's honest reports to the round that is open."""
        halves = self.rounds[-1]
        halves.tallies[half] += self.mechanism.tally(reports)
        halves.counts[half] += len(reports)

    def measured(self) -> Metric | None:
        """Return the deviation of one number, over all rounds, with its interval."""
        squares, numbers = [], 0
        for halves in self.rounds:
            if not halves.counts.all():
                return None
            one, two = (
                self.mechanism.estimate(tally, int(n)).value
                for tally, n in zip(halves.tallies, halves.counts, strict=True)
            )
            # The halves have noise of variance s / n1 and s / n2; all together has s / (n1 + n2).
            scale = halves.counts.prod() / halves.counts.sum() ** 2
            squares.append(scale * float(np.mean((one - two) ** 2)))
            numbers += one.size
        if not squares:
            return None
        found = math.sqrt(float(np.mean(squares))) * self._unit
        # A deviation that is measured on n nearly normal numbers errs by 1 / sqrt(2 n).
        error = found / math.sqrt(2 * numbers)
        return Metric.normal("training.noise.measured", found, error, numbers)

    @property
    def _unit(self) -> float:
        """What an estimate is multiplied with to be in units of the clip."""
        return 1.0 if isinstance(self.training, BitTraining) else 1 / self.clip

    def formula(self) -> float | None:
        """Return the same by the formula, for as many reports as came in each round."""
        counts = [int(halves.counts.sum()) for halves in self.rounds]
        if not counts or not min(counts):
            return None
        squares = [self.training.gradient_deviation(n) ** 2 for n in counts]
        return math.sqrt(float(np.mean(squares))) / self.clip

    def metrics(self) -> list[Metric]:
        """Tell the noise in one number of the gradient, and how many users would still it."""
        formula, measured = self.formula(), self.measured()
        if formula is None:
            return []
        reports = sum(int(halves.counts.sum()) for halves in self.rounds) // len(self.rounds)
        one = self.training.gradient_deviation(1) / self.clip
        return [
            *([] if measured is None else [measured]),
            Metric("training.noise.formula", formula, n=reports),
            Metric("training.noise.users_needed", (one / SMALL) ** 2, n=reports),
        ]
