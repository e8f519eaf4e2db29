"""Canaries of gradients: what one record adds to noisy sums at most, step by step.

Noise and sampling are drawn by the routines of the training. What a canary is: ``canaries``.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from noisefloor.accounting import SampledGaussian
from noisefloor.privacy import Neighbours
from noisefloor.publication.methods.model_plan import LogRatios
from noisefloor.publication.private_sgd import SgdPlan
from noisefloor.randomness import Source

_BLOCK = 1 << 20
"""Random numbers drawn at once."""


@dataclass(frozen=True, slots=True)
class GradientCanary:
    """A record whose gradient is as long as clipping lets it be, in the same direction each step.

    Where groups of parameters are clipped apart, it has the largest norm in every group at once.

    Sees:       the noisy sum of gradients of every step, along that direction in each group.
    Knows:      all other records, so that it can take away what they add.
    Guesses:    by the log-likelihood ratio of all steps.
    Reference:  Nasr and others 2023, arXiv 2302.07956.

    Attributes:
        plan: Its sampling and its noise are drawn by the routines of the training.
    """

    plan: SgdPlan

    @property
    def text(self) -> str:
        """What the two inputs are, and what the adversary sees."""
        other = (
            "or another whose gradient is the opposite"
            if self.plan.neighbours is Neighbours.RECORD_SUBSTITUTE
            else "or not"
        )
        groups = len(self.plan.clipping.bounds)
        where = f", in each of {groups} groups," if groups > 1 else ""
        return (
            f"A record whose gradient has the norm that clipping allows{where} in one direction "
            f"at every step, {other}; the adversary sees the noisy sum of every step along it, "
            "and knows all other records. Sampling and noise are drawn by the routines of the "
            "training."
        )

    @property
    def work(self) -> int:
        """How much one game takes: sampling, a likelihood and noise of each group, each step."""
        return (1 + len(self.plan.clipping.bounds)) * self.plan.steps

    def scores(self, games: int, source: Source) -> tuple[LogRatios, LogRatios]:
        """Play ``games`` games on each input; see ``Canary``."""
        first, second = self.shifts
        return (
            self._played(games, source.child("in"), first),
            self._played(games, source.child("out"), second),
        )

    def with_noise(self, share: float) -> "GradientCanary":
        """Return the same gradients under a share of the noise."""
        return GradientCanary(self.plan.with_noise(self.plan.noise_multiplier * share))

    @property
    def shifts(self) -> tuple[float, float]:
        """By how much the canary moves a sum, on the two inputs, where it is in the sample."""
        length = self.plan.sensitivity
        is_substitute = self.plan.neighbours is Neighbours.RECORD_SUBSTITUTE
        return length, -length if is_substitute else 0.0

    @property
    def event(self) -> SampledGaussian:
        """The noise of all steps, as it is accounted for."""
        return self.plan.events[0]

    @property
    def neighbours(self) -> Neighbours:
        """Whether the record comes or goes, or becomes another."""
        return self.plan.neighbours

    def group_work(self, records: int) -> int:
        """How much one game takes: a draw for each record that may be sampled, and the noise."""
        groups = len(self.plan.clipping.bounds)
        return groups + 1 + (0 if self.plan.is_full_batch else records)

    def group_sums(self, records: int, games: int, source: Source) -> tuple[LogRatios, LogRatios]:
        """Play one step of many canaries on each input; see ``GaussianCanary``."""
        first, second = (shift / self.plan.sensitivity for shift in self.shifts)
        return (
            self._group(records, games, source.child("in"), first),
            self._group(records, games, source.child("out"), second),
        )

    def _group(self, records: int, games: int, source: Source, shift: float) -> LogRatios:
        from noisefloor.publication.private_sgd import poisson_sample

        moved = np.zeros(games)
        if shift:
            at_once = max(1, _BLOCK // records)
            for start in range(0, games, at_once):
                count = min(at_once, games - start)
                # Every game has a group of its own, next to one another.
                draws = source.child("sample", start).stage("sample")
                places = poisson_sample(self.plan, count * records, draws)
                moved[start : start + count] = (
                    records
                    if places is None
                    else np.bincount(places.numpy() // records, minlength=count)
                )
        return self._seen(shift * moved, source.stage("noise")) / self.plan.sensitivity

    def _played(self, games: int, source: Source, shift: float) -> LogRatios:
        from noisefloor.publication.private_sgd import poisson_sample

        total = np.zeros(games)
        for step in range(self.plan.steps):
            noise_source = source.child("step", step)
            # Every game is an example of its own: in with the plan's rate, by itself.
            places = poisson_sample(self.plan, games, noise_source.stage("sample"))
            moved = np.zeros(games)
            moved[slice(None) if places is None else places.numpy()] = shift
            seen = self._seen(moved / self.plan.sensitivity, noise_source.stage("noise"))
            total += self._ratio(seen)
        return total

    def _seen(self, moved: LogRatios, source: Source) -> LogRatios:
        """Return noisy sums of gradients along the canary's direction.

        Args:
            moved: By how many canaries each sum is moved.
            source: Draws noise for the part of each group.
        """
        import torch  # lazy: a plan is made without

        from noisefloor.publication.private_sgd import add_step_noise

        bounds = np.array(self.plan.clipping.bounds)
        sums = torch.from_numpy(np.outer(moved, bounds).astype(np.float32)).view(-1)
        add_step_noise(self.plan, sums, source)
        parts = sums.view(-1, len(bounds)).numpy().astype(np.float64)
        return np.asarray(parts @ (bounds / np.linalg.norm(bounds)))

    def _ratio(self, seen: LogRatios) -> LogRatios:
        """Return the log-likelihood ratio of one step."""
        rate, scale = self.plan.sampling_rate, self.plan.noise_scale

        def log_mixture(shift: float) -> LogRatios:
            tilt = shift * (seen - shift / 2) / scale**2
            if rate == 1:
                return np.asarray(tilt)
            return np.logaddexp(math.log1p(-rate), math.log(rate) + tilt)

        first, second = self.shifts
        return log_mixture(first) - log_mixture(second)


@dataclass(frozen=True, slots=True)
class ComposedCanary:
    """A record that moves several noisy trainings on the same records, each as far as it can.

    Attributes:
        parts: The canary of each training.
    """

    parts: tuple[GradientCanary, ...]

    @property
    def text(self) -> str:
        """What the two inputs are, and what the adversary sees."""
        return f"The same record in {len(self.parts)} trainings. {self.parts[0].text}"

    @property
    def work(self) -> int:
        """How much one game takes."""
        return sum(part.work for part in self.parts)

    def scores(self, games: int, source: Source) -> tuple[LogRatios, LogRatios]:
        """Play ``games`` games on each input: log-likelihood ratios of all trainings add up."""
        played = [
            part.scores(games, source.child("training", place))
            for place, part in enumerate(self.parts)
        ]
        inside, outside = (np.sum(some, axis=0) for some in zip(*played, strict=True))
        return inside, outside

    def with_noise(self, share: float) -> "ComposedCanary":
        """Return the same record under a share of the noise of each training."""
        return replace(self, parts=tuple(part.with_noise(share) for part in self.parts))


@dataclass(frozen=True, slots=True)
class FullBatchCanary:
    """A record that moves several trainings, each of which takes everybody at every step.

    Without samples all steps of all trainings are one Gaussian release, and have one curve.

    Attributes:
        parts: The canary of each training.
    """

    parts: tuple[GradientCanary, ...]

    @property
    def text(self) -> str:
        """What the two inputs are, and what the adversary sees."""
        return ComposedCanary(self.parts).text

    @property
    def work(self) -> int:
        """How much one game takes."""
        return sum(part.work for part in self.parts)

    def scores(self, games: int, source: Source) -> tuple[LogRatios, LogRatios]:
        """Play ``games`` games on each input; see ``Canary``."""
        return ComposedCanary(self.parts).scores(games, source)

    def with_noise(self, share: float) -> "FullBatchCanary":
        """Return the same record under a share of the noise of each training."""
        return replace(self, parts=tuple(part.with_noise(share) for part in self.parts))

    @property
    def event(self) -> SampledGaussian:
        """All steps of all trainings as one: their squared distances add up."""
        return SampledGaussian(1 / math.sqrt(sum(self._weights)), 1.0)

    @property
    def neighbours(self) -> Neighbours:
        """Whether the record comes or goes, or becomes another."""
        return self.parts[0].neighbours

    @property
    def _weights(self) -> list[float]:
        """The weight of each training: its steps, over the square of its noise."""
        return [one.event.count / one.event.noise_multiplier**2 for one in self.parts]

    def group_work(self, _: int) -> int:
        """How much one game takes, however many records there are."""
        return self.work

    def group_sums(self, records: int, games: int, source: Source) -> tuple[LogRatios, LogRatios]:
        """Play all steps on each input: means, weighted by how little noise there is."""
        inside, outside = np.zeros(games), np.zeros(games)
        for place, (part, weight) in enumerate(zip(self.parts, self._weights, strict=True)):
            for step in range(part.plan.steps):
                named = source.child("training", place, "step", step)
                found = part.group_sums(records, games, named)
                for total, seen in zip((inside, outside), found, strict=True):
                    total += seen * weight / part.plan.steps
        whole = sum(self._weights)
        return inside / whole, outside / whole


@dataclass(frozen=True, slots=True)
class NormalCanary:
    """A record that moves every one of some noisy releases as far as clipping lets it.

    Attributes:
        multipliers: Noise over what one record that comes or goes moves, of each release; over
            half of how far apart two records can move it, for one that becomes another.
        neighbours: Whether it comes or goes, or becomes another.
    """

    multipliers: tuple[float, ...]
    neighbours: Neighbours

    @property
    def text(self) -> str:
        """What the two inputs are, and what the adversary sees."""
        is_substitute = self.neighbours is Neighbours.RECORD_SUBSTITUTE
        other = "or another that moves them as far away" if is_substitute else "or not"
        return (
            "A record that moves the sums of features and the sum of gradients of every step as "
            f"far as clipping allows, in one direction each, {other}; the adversary sees all "
            "noisy sums along it, and knows all other records."
        )

    @property
    def work(self) -> int:
        """How much one game takes: a normal number for each release."""
        return len(self.multipliers)

    def scores(self, games: int, source: Source) -> tuple[LogRatios, LogRatios]:
        """Play ``games`` games on each input; see ``Canary``."""
        second = -1.0 if self.neighbours is Neighbours.RECORD_SUBSTITUTE else 0.0
        return (
            self._played(games, source.child("in").stage("noise"), 1.0, second),
            self._played(games, source.child("out").stage("noise"), second, second),
        )

    def with_noise(self, share: float) -> "NormalCanary":
        """Return the same record under a share of the noise."""
        return replace(self, multipliers=tuple(share * one for one in self.multipliers))

    @property
    def event(self) -> SampledGaussian:
        """All releases as one: their squared distances add up."""
        return SampledGaussian(1 / math.sqrt(self._squares), 1.0)

    @property
    def _squares(self) -> float:
        return math.fsum(1 / one**2 for one in self.multipliers)

    def group_work(self, _: int) -> int:
        """How much one game takes, however many records there are."""
        return self.work

    def group_sums(self, records: int, games: int, source: Source) -> tuple[LogRatios, LogRatios]:
        """Play all releases of many records on each input; see ``GaussianCanary``."""
        second = -records if self.neighbours is Neighbours.RECORD_SUBSTITUTE else 0
        return (
            self._group(games, source.child("in").stage("noise"), records),
            self._group(games, source.child("out").stage("noise"), second),
        )

    def _group(self, games: int, noise_source: Source, moved: int) -> LogRatios:
        """Return the mean of all releases, each weighted by how little noise it has."""
        total = np.zeros(games)
        for multiplier in self.multipliers:
            seen = moved + multiplier * noise_source.normals(games).astype(np.float64)
            total += seen / multiplier**2
        return total / self._squares

    def _played(self, games: int, noise_source: Source, truth: float, second: float) -> LogRatios:
        total = np.zeros(games)
        for multiplier in self.multipliers:
            seen = truth + multiplier * noise_source.normals(games).astype(np.float64)
            total += ((seen - second) ** 2 - (seen - 1) ** 2) / (2 * multiplier**2)
        return total
