"""Private logistic regression by full-batch noisy gradient steps, for several tables at once.

First the sum of every feature is released with noise; by it features are centred and scaled, which
is what makes few steps enough. Then come steps on the sum of clipped gradients, each with Gaussian
noise, and the iterates of the last three quarters are averaged. Nothing else depends on the data:
no search over settings, no early stop, and sums are divided by a size that was declared in public,
since where records come and go their number is private itself.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import GaussianNoise, epsilon_at, noise_multiplier_for
from noisefloor.checks import check_count, check_finite, check_probability
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee, TrustModel
from noisefloor.publication.noised_vectors import NoisedVector, ResidualObserver
from noisefloor.randomness import Source
from noisefloor.tables import Examples

STEPS, CLIP, MOMENTUM, SHARE = 100, 1.0, 0.5, 0.05
LONGEST_STEP, WANDERING = 30.0, 0.3
"""The step is as long as it may be, but no longer than that noise alone, averaged over the
iterates, would move a weight by WANDERING: a rule in public quantities."""

FLOOR = 0.05
"""Added to the mean of a feature before its root is divided by: rare features are not blown up."""

_SAFETY = 1 - 1e-6
"""Rows are clipped a hair shorter, by more than single precision is off."""

_ROWS = 1 << 12
"""Rows that are summed up in double precision at once."""

FEATURE_SUMS, STEP = "feature sums", "step"
"""What an observer knows the noised sums by."""

Single = NDArray[np.float32]
Double = NDArray[np.float64]
Members = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class LogisticModel:
    """Weights of features as they are, one column of weights, or one a class if more than two.

    Attributes:
        weights: A row for each feature.
        bias: Of each column.
    """

    weights: Single
    bias: Single

    def logits(self, features: Single) -> Single:
        """Return the log-odds of the second class, or a column for each class."""
        return np.asarray(features @ self.weights + self.bias)

    def predict_classes(self, features: Single) -> NDArray[np.int64]:
        """Return the likeliest class of each row."""
        logits = self.logits(features)
        if logits.shape[1] == 1:
            return (logits[:, 0] > 0).astype(np.int64)
        return np.asarray(logits.argmax(axis=1))


@dataclass(frozen=True, slots=True)
class LogisticPlan:
    """Full-batch noisy gradient descent for logistic regression.

    Guarantee:  (epsilon, delta) of the released feature sums and of every step together. The
                account is that of real Gaussian numbers; they are drawn and summed in floats.
    Neighbours: one record added or removed (gradients of at most ``clip`` in length come or go),
                or one substituted (twice that). ``multipliers`` are over the former.
    Domain:     features in [0, 1], rows longer than ``length`` are shortened to it; gradients are
                clipped.
    Reference:  Bassily, Smith and Thakurta 2014, arXiv 1405.7085; Abadi et al. 2016,
                arXiv 1607.00133.

    Attributes:
        cost: As requested.
        width: Features of a row.
        classes: How many classes.
        size: How many records there are, about: declared, not counted.
        length: The L2 length that no row passes; for one-hot rows the root of their columns.
        multiplier: Noise of everything as if it were one release, over what one record that
            comes or goes can do.
        steps: How many.
        clip: The longest gradient of a record.
        share: Of the budget, for the sums of features.
    """

    cost: Guarantee
    width: int
    classes: int
    size: int
    length: float
    multiplier: float
    steps: int = STEPS
    clip: float = CLIP
    share: float = SHARE

    def __post_init__(self) -> None:
        check_count(self.width, "width")
        check_count(self.classes, "classes", least=2)
        check_count(self.size, "size")
        check_count(self.steps, "steps", most=1 << 16)
        for name in ("length", "multiplier", "clip"):
            if check_finite(getattr(self, name), name) <= 0:
                raise BadParameter(name, getattr(self, name), "> 0")
        check_probability(self.share, "share")

    @classmethod
    def for_budget(
        cls,
        cost: Guarantee,
        *,
        width: int,
        classes: int,
        size: int,
        length: float,
        steps: int = STEPS,
        clip: float = CLIP,
    ) -> "LogisticPlan":
        """Plan the noise that a cost allows; no data are looked at."""
        if cost.model is not TrustModel.CENTRAL or not cost.delta:
            raise BadParameter("cost", "<cost>", "in the central model, with a delta > 0")
        multiplier = noise_multiplier_for(cost.epsilon, cost.delta, neighbours=cost.neighbours)
        return cls(cost, width, classes, size, length, multiplier, steps, clip)

    @property
    def multipliers(self) -> tuple[float, float]:
        """Noise over sensitivity of the sums of features, and of each step."""
        step = self.multiplier * math.sqrt(self.steps / (1 - self.share))
        return self.multiplier / math.sqrt(self.share), step

    @property
    def event(self) -> GaussianNoise:
        """All releases as one: Gaussian noise adds up by the squares of one over it."""
        sums, step = self.multipliers
        whole = 1 / math.sqrt(1 / sums**2 + self.steps / step**2)
        # A hair less noise than there is, so that the rounding of these roots costs nobody.
        return GaussianNoise(whole * (1 - 1e-12))

    @property
    def guarantee(self) -> Guarantee:
        """What is proved of the sums of features and of all steps together."""
        return epsilon_at([self.event], self.cost.delta, neighbours=self.cost.neighbours)

    @property
    def rate(self) -> float:
        """The length of a step on the mean gradient."""
        step = self.multipliers[1] * self.clip / self.size
        return min(LONGEST_STEP, WANDERING / (step * math.sqrt(self.steps / 3)))

    def fit(
        self, examples: Examples, source: Source, residuals: ResidualObserver | None = None
    ) -> LogisticModel:
        """Return private weights; each call is a release of its own.

        Args:
            examples: All of them.
            source: Random bits.
            residuals: Gets all sums before and after their noise; for simulations alone.
        """
        everybody = np.ones((1, len(examples)), dtype=np.bool_)
        return self._fitted(examples, everybody, [source], residuals)[0]

    def fit_tables(
        self, examples: Examples, members: Members, sources: Sequence[Source]
    ) -> list[LogisticModel]:
        """Fit several tables of the same examples together, each a release of its own.

        Args:
            examples: All of them.
            members: For each table, which examples it has.
            sources: Random bits of each table.
        """
        return self._fitted(examples, members, sources, None)

    def _fitted(
        self,
        examples: Examples,
        members: Members,
        sources: Sequence[Source],
        residuals: ResidualObserver | None,
    ) -> list[LogisticModel]:
        self._check(examples, members, sources)
        features = _shortened(examples.features, self.length)
        descent = _Descent(self, features, examples.labels, members, sources, residuals)
        return descent.models()

    def _check(self, examples: Examples, members: Members, sources: Sequence[Source]) -> None:
        if examples.features.shape[1] != self.width or examples.classes != self.classes:
            raise BadParameter("examples", "<examples>", "of the width and classes planned for")
        if members.shape != (len(sources), len(examples)) or not len(sources):
            raise BadParameter("members", members.shape, "a row for each source")
        if not 0 <= float(examples.features.min(initial=0)):
            raise BadParameter("examples", "<examples>", "of features in [0, 1]")
        if not float(examples.features.max(initial=0)) <= 1:
            raise BadParameter("examples", "<examples>", "of features in [0, 1]")


class _Descent:
    """The state of a fit: features are left as they are, centring is folded into the weights."""

    def __init__(
        self,
        plan: LogisticPlan,
        features: Single,
        labels: NDArray[np.int64],
        members: Members,
        sources: Sequence[Source],
        residuals: ResidualObserver | None = None,
    ) -> None:
        self.observe = residuals
        self.longest = 0.0
        self.plan, self.features, self.tables = plan, features, len(sources)
        self.heads = 1 if plan.classes == 2 else plan.classes
        self.streams = [source.stage("noise") for source in sources]
        self.present = np.ascontiguousarray(members.T, dtype=np.float32)
        self.targets = _targets(labels, plan.classes)
        self.means = self._noisy_means()
        self.scales = (1 / np.sqrt(np.maximum(self.means, 0) + FLOOR)).astype(np.float32)
        self.limits = self._limits()

    def _noise(self, rows: int, sigma: float) -> Single:
        """Return fresh noise of every table, ``rows`` numbers each."""
        drawn = np.stack([stream.normals(rows) for stream in self.streams], axis=1)
        # A hair more than planned: single numbers may be rounded down, and rows be too long.
        return drawn * np.float32(sigma * (2 - _SAFETY))

    def _noisy_means(self) -> Single:
        plan = self.plan
        clean = summed(self.features, self.present)
        sums = clean + self._noise(plan.width, plan.multipliers[0] * plan.length)
        if self.observe is not None:
            rows = np.sqrt((self.features.astype(np.float64) ** 2).sum(axis=1))
            longest = float(rows.max(initial=0.0))
            self.observe(NoisedVector(FEATURE_SUMS, sums.ravel(), clean.ravel(), longest))
        return np.clip(sums / plan.size, 0, 1).astype(np.float32)

    def _limits(self) -> Single:
        """Return the largest length of a residual that each row may have in each table."""
        squares, centres = self.scales**2, self.scales**2 * self.means
        whole = self.features**2 @ squares - 2 * (self.features @ centres)
        whole += (centres * self.means).sum(axis=0) + 1
        # Single precision is off by 1e-7 of the terms that cancel here.
        whole += np.float32(1e-5) * (squares.max(axis=0) * np.float32(self.plan.length**2) + 1)
        return np.asarray(self.plan.clip * _SAFETY / np.sqrt(np.maximum(whole, 1)))

    def gradients(self, weights: Single, bias: Single) -> tuple[Double, Double]:
        """Return the sums of clipped gradients of centred and scaled features, and of the bias."""
        shape = (len(self.features), self.tables, self.heads)
        raw = weights * self.scales[:, :, None]
        offset = bias - (self.means[:, :, None] * raw).sum(axis=0)
        logits = (self.features @ raw.reshape(len(raw), -1)).reshape(shape) + offset
        residuals = _residuals(logits, self.targets)
        lengths = np.sqrt((residuals**2).sum(axis=2)) if self.heads > 1 else abs(residuals[..., 0])
        factor = np.minimum(1, self.limits / np.maximum(lengths, np.float32(1e-12)))
        residuals *= (factor * self.present)[:, :, None]
        if self.observe is not None:
            self.longest = self._longest(residuals)
        totals = residuals.sum(axis=0, dtype=np.float64)
        rows = residuals.reshape(len(residuals), self.tables * self.heads)  # may be none
        sums = summed(self.features, rows).reshape(raw.shape)
        sums -= self.means[:, :, None] * totals
        return self.scales[:, :, None] * sums, totals

    def _longest(self, residuals: Single) -> float:
        """Return the largest norm of one record's clipped gradient in the first table."""
        errors = (residuals[:, 0].astype(np.float64) ** 2).sum(axis=1)
        return math.sqrt(float((self._row_squares * errors).max(initial=0.0)))

    @cached_property
    def _row_squares(self) -> Double:
        """The squared norm of each centred and scaled row with its 1, for observers."""
        rows = (self.features.astype(np.float64) - self.means[:, 0]) * self.scales[:, 0]
        return np.asarray((rows**2).sum(axis=1) + 1)

    def models(self) -> list[LogisticModel]:
        """Take all steps and return the averages, as weights of features as they are."""
        plan = self.plan
        shape = (plan.width + 1, self.tables, self.heads)
        point: Single = np.zeros(shape, dtype=np.float32)
        speed, mean = np.zeros_like(point), np.zeros_like(point)
        sigma = plan.multipliers[1] * plan.clip
        first = plan.steps // 4
        for step in range(plan.steps):
            sums, totals = self.gradients(point[:-1], point[-1])
            gradient = np.concatenate([sums, totals[None]])
            noise = self._noise((plan.width + 1) * self.heads, sigma)
            noise = noise.reshape(plan.width + 1, self.heads, self.tables)
            noised = gradient + noise.transpose(0, 2, 1)
            if self.observe is not None:
                at = point[:, 0].astype(np.float64)
                after, before = (one.ravel().astype(np.float64) for one in (noised, gradient))
                self.observe(NoisedVector(STEP, after, before, self.longest, at=at))
            speed *= np.float32(MOMENTUM)
            speed += noised * np.float32((1 - MOMENTUM) / plan.size)
            point -= np.float32(plan.rate) * speed
            if step >= first:
                mean += point / np.float32(plan.steps - first)
        return [self._model(mean[:, table], table) for table in range(self.tables)]

    def _model(self, point: Single, table: int) -> LogisticModel:
        weights = point[:-1] * self.scales[:, table, None]
        return LogisticModel(weights, point[-1] - self.means[:, table] @ weights)


def summed(features: Single, weights: Single) -> Double:
    """Return the sums of features by weights over all rows, a column for each column of weights.

    In double precision: a record that comes or goes moves all others to other places, and single
    sums of the same numbers in another order differ. On UCI Adult they did by 1.5 % of a clip, so
    that a record moved a sum by more than the clip.
    """
    total = np.zeros((features.shape[1], weights.shape[1]))
    for start in range(0, len(features), _ROWS):
        rows = slice(start, start + _ROWS)
        total += features[rows].T.astype(np.float64) @ weights[rows].astype(np.float64)
    return total


def _shortened(features: Single, length: float) -> Single:
    """Return the rows, those that are longer than declared made shorter."""
    rows = np.sqrt(np.einsum("ij,ij->i", features, features, dtype=np.float64))
    if not (rows > length).any():
        return features
    factor = np.minimum(1, length / np.maximum(rows, 1e-12))[:, None]
    return np.asarray(features * factor, dtype=np.float32)


def _targets(labels: NDArray[np.int64], classes: int) -> Single:
    if classes == 2:
        return np.asarray(labels[:, None], dtype=np.float32)
    return np.asarray(np.eye(classes, dtype=np.float32)[labels])


def _residuals(logits: Single, targets: Single) -> Single:
    """Return chances less targets, in the place of the logits."""
    if logits.shape[2] == 1:
        np.clip(logits, -30, 30, out=logits)
        np.exp(-logits, out=logits)
        logits += 1
        np.reciprocal(logits, out=logits)
    else:
        logits -= logits.max(axis=2, keepdims=True)
        np.exp(logits, out=logits)
        logits /= logits.sum(axis=2, keepdims=True)
    logits -= targets[:, None, :]
    return logits
