"""AnonymizedLearning: noise in the increments of every batch, scaled by certified ranges.

How far one record can move an increment: ranges that follow from the parameters alone.

Inputs lie in [0, 1] by the public schema, and the current parameters are released already; so
ranges of every signal and every error can be worked out without looking at a record: (20)-(26) of
the paper. Errors at the output lie in [-1, 1], and (23) keeps ranges of errors symmetric: one
number for each says both ends.
"""

import math
from dataclasses import dataclass
from functools import reduce
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import product_up
from noisefloor.checks import check_count, check_finite
from noisefloor.errors import BadParameter, OutOfDomain
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication.networks.dense import (
    DenseNetwork,
    Floats,
    Increments,
    NetworkPass,
    NetworkShape,
    NetworkTraining,
    TrainingBatch,
    train,
)
from noisefloor.publication.noised_vectors import NoisedVector, ResidualObserver
from noisefloor.randomness import Source
from noisefloor.tables import Examples

Layers: TypeAlias = list[Floats]


@dataclass(frozen=True, slots=True)
class Ranges:
    """Ranges of what one record sends through a network.

    Attributes:
        signals: The largest of each input of each layer; the last, of the biases, is 1.
        errors: The largest size of each error of each layer.
    """

    signals: Layers
    errors: Layers

    def into(self, blocks: Layers) -> None:
        """Write how far each increment reaches from 0, both ways: (24), (25), (26)."""
        for signal, error, block in zip(self.signals, self.errors, blocks, strict=True):
            np.multiply(signal[:, None], error, out=block)


class PrintedRanges:
    """Ranges as printed.

    (21) takes max x for max y, which the paper says is never negative. It can be: then the range
    is too small in this layer and in every later one, and records get outside of it.

    Buffers are kept between calls: what a call returned is overwritten by the next one.

    Args:
        shape: Of the networks.
    """

    def __init__(self, shape: NetworkShape) -> None:
        self._sizes = np.empty(shape.count, np.float32)
        self._size_of = [block[:-1] for block in shape.views(self._sizes)]
        self._most = [np.ones(width + 1, np.float32) for width in shape.widths[:-1]]
        self._errors = [np.ones(width, np.float32) for width in shape.widths[1:]]

    def __call__(self, network: DenseNetwork) -> Ranges:
        """Return the ranges for the parameters as they are."""
        np.abs(network.vector, out=self._sizes)
        for place, block in enumerate(network.blocks[:-1]):
            # Half of w + |w| is max(w, 0).
            here, onward = self._most[place][:-1], self._most[place + 1][:-1]
            np.add(here @ block[:-1], here @ self._size_of[place], out=onward)
            onward *= np.float32(0.5)
            onward += block[-1]
        for place in range(len(self._errors) - 2, -1, -1):
            weights = self._size_of[place + 1]
            np.matmul(weights, self._errors[place + 1], out=self._errors[place])
        return Ranges(self._most, self._errors)


class CertifiedRanges:
    """Ranges that hold for every record, and are tighter than the printed ones.

    Signals are never negative (21). The least a signal can be counts too, where the paper takes
    0. The errors at the output add up to 0 and their sizes to 2 at most, so what they send back is
    the difference of two weights at most.

    Buffers are kept between calls: what a call returned is overwritten by the next one.

    Args:
        shape: Of the networks.
    """

    def __init__(self, shape: NetworkShape) -> None:
        self._sizes = np.empty(shape.count, np.float32)
        self._size_of = shape.views(self._sizes)
        # The last is the 1 of the biases, the most and the least of it.
        self._most = [np.ones(width + 1, np.float32) for width in shape.widths[:-1]]
        self._least = [np.ones(width + 1, np.float32) for width in shape.widths[:-1]]
        self._least[0][:-1] = 0
        self._errors = [np.ones(width, np.float32) for width in shape.widths[1:]]

    def __call__(self, network: DenseNetwork) -> Ranges:
        """Return the ranges for the parameters as they are."""
        np.abs(network.vector, out=self._sizes)
        for place in range(len(self._most) - 1):
            self._onward(place, network.blocks[place])
        if len(self._errors) > 1:
            # Class by class: there are few, and a reduction along so short an axis is slow.
            classes = network.blocks[-1][:-1].T
            most, least = reduce(np.maximum, classes), reduce(np.minimum, classes)
            np.subtract(most, least, out=self._errors[-2])
        for place in range(len(self._errors) - 3, -1, -1):
            weights = self._size_of[place + 1][:-1]
            np.matmul(weights, self._errors[place + 1], out=self._errors[place])
        return Ranges(self._most, self._errors)

    def _onward(self, place: int, block: Floats) -> None:
        """Set the most and the least of what a layer hands on.

        With m the middle of a range and h half its width, m w + h |w| is the most of its product
        with w, and m w - h |w| the least.
        """
        middle = (self._most[place] + self._least[place]) * np.float32(0.5)
        centre = middle @ block
        spread = (self._most[place] - middle) @ self._size_of[place]
        np.maximum(centre + spread, 0, out=self._most[place + 1][:-1])
        np.maximum(centre - spread, 0, out=self._least[place + 1][:-1])


IncrementForm: TypeAlias = Literal["printed", "clipped", "widths", "norm"]

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
                form is ``printed``; what is no number is taken for 0, and not reported.
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
    training: NetworkTraining
    form: IncrementForm = "norm"
    threshold: float = 1.0
    norm: float = 1.0
    clamps: bool = True
    refresh: int = 8

    def __post_init__(self) -> None:
        for name in ("epsilon", "threshold", "norm"):
            if check_finite(getattr(self, name), name) <= 0:
                raise BadParameter(name, getattr(self, name), "> 0")
        if self.form not in get_args(IncrementForm):
            raise BadParameter("form", self.form, f"one of {', '.join(get_args(IncrementForm))}")
        check_count(self.refresh, "refresh")

    def guarantee(self, parameters: int) -> Guarantee:
        """Return what is proved of a network with n parameters, and of each of them."""
        check_count(parameters, "parameters")
        if self.form == "printed":
            return Guarantee.none(UNCLIPPED, SUBSTITUTE, TrustModel.CENTRAL)
        times = parameters if self.form == "clipped" else 1
        return Guarantee(product_up(self.epsilon, times), SUBSTITUTE, model=TrustModel.CENTRAL)

    def train(
        self, examples: Examples, source: Source, residuals: ResidualObserver | None = None
    ) -> DenseNetwork:
        """Return a network that was trained on the examples, with noise.

        Args:
            examples: With features in [0, 1].
            source: Of weights, batches and noise.
            residuals: Gets the sum of every batch before and after its noise; for simulations
                alone.
        """
        # There may be no rows: that a release failed would be seen.
        low, high = examples.features.min(initial=0.0), examples.features.max(initial=0.0)
        if not (low >= 0 and high <= 1):
            raise OutOfDomain("Expected features in [0, 1]; a feature lies outside.")

        def increments(shape: NetworkShape, noise_source: Source) -> Increments:
            return self.increments_of(shape, noise_source, residuals)

        return train(examples, self.training, source, increments)

    def increments_of(
        self, shape: NetworkShape, source: Source, residuals: ResidualObserver | None = None
    ) -> Increments:
        """Return the step that adds up a batch with noise drawn from the source."""
        return _Step(self, shape, source, residuals)


class _Step:
    """Adds up batches with noise; buffers are kept between calls."""

    def __init__(
        self,
        learning: AnonymisedLearning,
        shape: NetworkShape,
        source: Source,
        residuals: ResidualObserver | None = None,
    ) -> None:
        self._learning, self._source, self._observe = learning, source, residuals
        self._both = NetworkPass(shape, learning.training.batch)
        self._total, self._reach, self._zero = np.zeros((3, shape.count), np.float32)
        self._totals, self._reaches = shape.views(self._total), shape.views(self._reach)
        self._threshold = np.full(shape.count, learning.threshold, np.float32)
        self._printed, self._certified = PrintedRanges(shape), CertifiedRanges(shape)
        self._ranges: Ranges | None = None
        self._age = 0
        self._factor = np.float32(2 * learning.training.epochs / learning.epsilon)
        """Under substitution an increment that reaches r both ways moves by 2 r."""

    def __call__(self, network: DenseNetwork, batch: TrainingBatch) -> Floats:
        self._both.run(network, batch)
        noise = self._source.laplaces(len(self._total))
        is_printed = self._learning.form == "printed"
        noise *= self._printed_scale(network) if is_printed else self._scale(network)
        self._both.sums(self._totals)
        # A product with itself is the quickest look at whether all of a vector are numbers.
        if not is_printed and not math.isfinite(self._total @ self._total):
            zero_non_finite(self._both)
            self._both.sums(self._totals)
        clean = None if self._observe is None else self._total.astype(np.float64)
        self._total += noise
        if clean is not None:
            self._hand_out(clean)
        if self._learning.clamps:
            np.maximum(self._total, -self._reach, out=self._total)
            np.minimum(self._total, self._reach, out=self._total)
        return self._total

    def _hand_out(self, clean: NDArray[np.float64]) -> None:
        """Show an observer what noise was added to, and how much of it is one record's."""
        is_norm = self._learning.form == "norm"
        if self._observe is None:
            return
        with np.errstate(over="ignore", invalid="ignore"):
            longest = largest_norm(self._both) if is_norm else None
        unit = self._noise_unit()
        noised = self._total.astype(np.float64)
        self._observe(NoisedVector("step", noised, clean, longest, unit=unit))

    def _noise_unit(self) -> NDArray[np.float64] | None:
        """Return what the noise's factor is multiplied by; None for the plan's norm."""
        if self._learning.form == "norm":
            return None
        if self._learning.form == "widths" and self._ranges is not None:
            return np.full(len(self._total), total_range(self._ranges))
        return np.maximum(self._reach, 0).astype(np.float64)

    def _printed_scale(self, network: DenseNetwork) -> Floats:
        """Set how far a record is thought to reach, and return the scale of the noise."""
        self._printed(network).into(self._reaches)
        np.minimum(self._reach, self._threshold, out=self._reach)
        return np.maximum(self._reach, self._zero) * self._factor

    def _scale(self, network: DenseNetwork) -> Floats | np.float32:
        """Clip what each record adds, and return the scale of the noise."""
        learning, ranges = self._learning, self._current(network)
        if learning.form == "norm":
            clip_norms(self._both, np.float32(learning.norm))
            return np.float32(learning.norm) * self._factor
        clip_factors(self._both, ranges)
        if learning.form == "clipped":
            return self._reach * self._factor
        return np.float32(total_range(ranges)) * self._factor

    def _current(self, network: DenseNetwork) -> Ranges:
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


def total_range(ranges: Ranges) -> float:
    """Return the sum over all parameters of how far an increment reaches, rounded up a little."""
    parts = (
        float(signal.sum(dtype=np.float64)) * float(error.sum(dtype=np.float64))
        for signal, error in zip(ranges.signals, ranges.errors, strict=True)
    )
    return sum(parts) / float(_MARGIN)


def clip_factors(both: NetworkPass, ranges: Ranges) -> None:
    """Clip signals and errors of each record, so that its increments lie in their ranges.

    An increment is a product of two: clipping the two costs as much as the layers are wide, and
    clipping the products as much as there are parameters, for every record.
    """
    for signal, most in zip(both.inputs[1:], ranges.signals[1:], strict=True):
        np.minimum(signal, most, out=signal)
    for error, most in zip(both.errors, ranges.errors, strict=True):
        np.maximum(error, -most, out=error)
        np.minimum(error, most, out=error)


def zero_non_finite(both: NetworkPass) -> None:
    """Make records add nothing whose signals or errors are no numbers: large weights do that."""
    # The last column of the inputs is the 1 of the biases, which is kept between calls.
    factors = [*(one[:, :-1] for one in both.inputs[1:]), *both.errors]
    is_whole = np.logical_and.reduce([np.isfinite(one).all(axis=1) for one in factors])
    for one in factors:
        one[~is_whole] = 0


def norms_of(both: NetworkPass) -> Floats:
    """Return the L1 norm of the increments of each record, from those of the factors."""
    total = np.zeros(len(both.inputs[0]), np.float32)
    for signal, error in zip(both.inputs, both.errors, strict=True):
        # Signals are never negative. A product with ones adds rows up faster than a sum does.
        signals = signal @ np.ones(signal.shape[1], np.float32)
        total += signals * (np.abs(error) @ np.ones(error.shape[1], np.float32))
    return total


def largest_norm(both: NetworkPass) -> float:
    """Return the largest L1 norm of one record's increments, from all products of its factors."""
    totals = sum(
        np.abs(here, dtype=np.float64).sum(axis=1) * np.abs(error, dtype=np.float64).sum(axis=1)
        for here, error in zip(both.inputs, both.errors, strict=True)
    )
    return float(np.max(totals, initial=0.0))


def clip_norms(both: NetworkPass, norm: np.float32) -> None:
    """Shrink the errors of each record until its increments have at most this L1 norm."""
    shrink = norm * _MARGIN / np.maximum(norms_of(both), norm * _MARGIN)
    for error in both.errors:
        error *= shrink[:, None]
