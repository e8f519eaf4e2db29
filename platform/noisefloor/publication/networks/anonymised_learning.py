"""AnonymizedLearning: noise in the increments of every batch, scaled by certified ranges."""

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from noisefloor.accounting.composition import product_up
from noisefloor.checks import check_count, check_finite
from noisefloor.errors import BadParameter, OutOfDomain
from noisefloor.privacy import Guarantee, Model, Neighbours
from noisefloor.publication.examples import Examples
from noisefloor.publication.networks.dense import (
    Batch,
    Floats,
    Increments,
    Network,
    Pass,
    Shape,
    Training,
    train,
)
from noisefloor.publication.networks.ranges import CertifiedRanges, PrintedRanges, Ranges
from noisefloor.randomness import Source

Form: TypeAlias = Literal["printed", "clipped", "widths", "norm"]

SUBSTITUTE = Neighbours.RECORD_SUBSTITUTE
UNCLIPPED = (
    "what a record adds is not clipped before the noise, so it may pass the thresholds; and (21) "
    "may make ranges too small, down to no noise at all"
)

_MARGIN = np.float32(1 - 2.0**-16)
"""Far above what the rounding of a sum of single floats can add to a clipped norm."""


@dataclass(frozen=True, slots=True)
class AnonymisedLearning:
    """Train with Laplace noise in the increments of each batch.

    Guarantee:  pure DP, up to the rounding of floats, of every step's parameters together and so
                of the last. ``printed``: none. ``clipped``: parameters times epsilon, of the
                model and of any one parameter, for each parameter follows from all before it.
                ``widths``, ``norm``: epsilon. E epochs share it equally; within an epoch a record
                is in one batch.
    Neighbours: one record substituted (central model); batches are cut by place, not by content.
                An added record would move others to other batches: there is no proof for that.
    Domain:     features in [0, 1], refused otherwise. What a record adds is clipped, unless the
                form is ``printed``; what is no number is taken for 0, and not told to anybody.
    Reference:  the approach and (20)-(26) are the paper's; norms of layers from norms of factors
                Goodfellow 2015, arXiv 1510.01799.

    Attributes:
        epsilon: Of each parameter (``printed``, ``clipped``) or of the model.
        training: How; its epochs share epsilon.
        form: ``printed``: noise for the width of each parameter's range; nothing is clipped first.
            ``clipped``: the same with ranges that hold, and each record clipped into them.
            ``widths``: noise for the sum of all widths. ``norm``: each record clipped to an L1
            norm, and noise for twice that norm.
        threshold: Increments of one record lie in [-threshold, threshold], by public choice;
            ranges may be narrower. Forms that clip keep signals to 1 and errors to the threshold.
        norm: What ``norm`` clips to.
        clamps: Whether noisy sums are clamped into the range of one record afterwards, as printed.
        refresh: Batches that share ranges, but for ``printed``. Ranges follow from parameters that
            are released, and records are clipped into them whether they still hold or not: so
            older ones cost no privacy. With 1 they are made anew for each batch, as printed.
    """

    epsilon: float
    training: Training
    form: Form = "norm"
    threshold: float = 1.0
    norm: float = 1.0
    clamps: bool = True
    refresh: int = 8

    def __post_init__(self) -> None:
        for name in ("epsilon", "threshold", "norm"):
            if check_finite(getattr(self, name), name) <= 0:
                raise BadParameter(name, getattr(self, name), "> 0")
        if self.form not in get_args(Form):
            raise BadParameter("form", self.form, f"one of {', '.join(get_args(Form))}")
        check_count(self.refresh, "refresh")

    def guarantee(self, parameters: int) -> Guarantee:
        """Return what is proved of a network with so many parameters, and of each of them."""
        check_count(parameters, "parameters")
        if self.form == "printed":
            return Guarantee.none(UNCLIPPED, SUBSTITUTE, Model.CENTRAL)
        times = parameters if self.form == "clipped" else 1
        return Guarantee(product_up(self.epsilon, times), SUBSTITUTE, model=Model.CENTRAL)

    def train(self, examples: Examples, source: Source) -> Network:
        """Return a network that was trained on the examples, with noise."""
        low, high = float(examples.features.min()), float(examples.features.max())
        if not (low >= 0 and high <= 1):
            raise OutOfDomain("Expected features in [0, 1]; a feature lies outside.")
        return train(examples, self.training, source, self.increments_of)

    def increments_of(self, shape: Shape, source: Source) -> Increments:
        """Return the step that adds up a batch with noise drawn from the source."""
        return _Step(self, shape, source)


class _Step:
    """Adds up batches with noise; buffers are kept between calls."""

    def __init__(self, learning: AnonymisedLearning, shape: Shape, source: Source) -> None:
        self._learning, self._source = learning, source
        self._both = Pass(shape, learning.training.batch)
        self._total, self._reach, self._zero = np.zeros((3, shape.count), np.float32)
        self._totals, self._reaches = shape.views(self._total), shape.views(self._reach)
        self._threshold = np.full(shape.count, learning.threshold, np.float32)
        self._printed, self._certified = PrintedRanges(shape), CertifiedRanges(shape)
        self._ranges: Ranges | None = None
        self._age = 0
        self._factor = np.float32(2 * learning.training.epochs / learning.epsilon)
        """Under substitution an increment that reaches r both ways moves by 2 r."""

    def __call__(self, network: Network, batch: Batch) -> Floats:
        self._both.run(network, batch)
        noise = self._source.laplaces(len(self._total))
        is_printed = self._learning.form == "printed"
        noise *= self._printed_scale(network) if is_printed else self._scale(network)
        self._both.sums(self._totals)
        # A product with itself is the quickest look at whether all of a vector are numbers.
        if not is_printed and not math.isfinite(self._total @ self._total):
            drop_broken(self._both)
            self._both.sums(self._totals)
        self._total += noise
        if self._learning.clamps:
            np.maximum(self._total, -self._reach, out=self._total)
            np.minimum(self._total, self._reach, out=self._total)
        return self._total

    def _printed_scale(self, network: Network) -> Floats:
        """Set how far a record is thought to reach, and return the scale of the noise."""
        self._printed(network).into(self._reaches)
        np.minimum(self._reach, self._threshold, out=self._reach)
        return np.maximum(self._reach, self._zero) * self._factor

    def _scale(self, network: Network) -> Floats | np.float32:
        """Clip what each record adds, and return the scale of the noise."""
        learning, ranges = self._learning, self._current(network)
        if learning.form == "norm":
            clip_norms(self._both, np.float32(learning.norm))
            return np.float32(learning.norm) * self._factor
        clip_factors(self._both, ranges)
        if learning.form == "clipped":
            return self._reach * self._factor
        return np.float32(sum_of_reaches(ranges)) * self._factor

    def _current(self, network: Network) -> Ranges:
        """Return ranges that are not too old, and set how far a record reaches."""
        if self._ranges is None or self._age >= self._learning.refresh:
            self._ranges, self._age = self._certified(network), 0
            _narrow(self._ranges, np.float32(self._learning.threshold))
            self._ranges.into(self._reaches)
        self._age += 1
        return self._ranges


def _narrow(ranges: Ranges, threshold: np.float32) -> None:
    """Narrow ranges to public ones, in place: signals to 1 and errors to the threshold.

    Those of weights too large for floats may be no numbers: the public ones hold then.
    """
    for signal in ranges.signals:
        np.fmin(signal, 1, out=signal)
    for error in ranges.errors:
        np.fmin(error, threshold, out=error)


def sum_of_reaches(ranges: Ranges) -> float:
    """Return the sum over all parameters of how far an increment reaches, rounded up a little."""
    parts = (
        float(signal.sum(dtype=np.float64)) * float(error.sum(dtype=np.float64))
        for signal, error in zip(ranges.signals, ranges.errors, strict=True)
    )
    return sum(parts) / float(_MARGIN)


def clip_factors(both: Pass, ranges: Ranges) -> None:
    """Clip signals and errors of each record, so that its increments lie in their ranges.

    An increment is a product of two: clipping the two costs as much as the layers are wide, and
    clipping the products as much as there are parameters, for every record.
    """
    for signal, most in zip(both.inputs[1:], ranges.signals[1:], strict=True):
        np.minimum(signal, most, out=signal)
    for error, most in zip(both.errors, ranges.errors, strict=True):
        np.maximum(error, -most, out=error)
        np.minimum(error, most, out=error)


def drop_broken(both: Pass) -> None:
    """Make records add nothing whose signals or errors are no numbers: large weights do that."""
    # The last column of the inputs is the 1 of the biases, which is kept between calls.
    factors = [*(one[:, :-1] for one in both.inputs[1:]), *both.errors]
    is_whole = np.logical_and.reduce([np.isfinite(one).all(axis=1) for one in factors])
    for one in factors:
        one[~is_whole] = 0


def norms_of(both: Pass) -> Floats:
    """Return the L1 norm of the increments of each record, from those of the factors."""
    total = np.zeros(len(both.inputs[0]), np.float32)
    for signal, error in zip(both.inputs, both.errors, strict=True):
        # Signals are never negative. A product with ones adds rows up faster than a sum does.
        signals = signal @ np.ones(signal.shape[1], np.float32)
        total += signals * (np.abs(error) @ np.ones(error.shape[1], np.float32))
    return total


def clip_norms(both: Pass, norm: np.float32) -> None:
    """Shrink the errors of each record until its increments have at most this L1 norm."""
    shrink = norm * _MARGIN / np.maximum(norms_of(both), norm * _MARGIN)
    for error in both.errors:
        error *= shrink[:, None]
