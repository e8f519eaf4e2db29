"""A plain dense network, trained as the paper prints it: one vector of parameters, no magic.

Every layer is one block of (inputs + 1) x outputs: its last row are the biases, which belong to an
input that is always 1. All blocks lie one after the other in one vector, so that noise, thresholds
and updates are a few operations on whole vectors. Forward and backward are written out; batches
of fifty are so small that a framework would spend its time on itself.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import check_count, check_finite
from noisefloor.errors import BadParameter, NoisefloorError
from noisefloor.randomness import Source
from noisefloor.tables import Examples

Floats: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True)
class NetworkShape:
    """How wide the layers are; public.

    Attributes:
        widths: Inputs first, then every layer, classes last.
    """

    widths: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.widths) < 2:
            raise BadParameter("widths", self.widths, "at least inputs and classes")
        for width in self.widths:
            check_count(width, "widths", most=1 << 16)
        check_count(self.widths[-1], "classes", least=2, most=1 << 16)

    @cached_property
    def blocks(self) -> tuple[tuple[int, int], ...]:
        """Rows and columns of each layer's block; the last row are the biases."""
        return tuple(
            (rows + 1, columns)
            for rows, columns in zip(self.widths[:-1], self.widths[1:], strict=True)
        )

    @cached_property
    def count(self) -> int:
        """How many parameters there are: P."""
        return sum(rows * columns for rows, columns in self.blocks)

    def views(self, vector: NDArray[np.float32]) -> list[Floats]:
        """Return the block of each layer in a vector of all parameters; nothing is copied."""
        ends = np.cumsum([rows * columns for rows, columns in self.blocks])[:-1]
        return [
            part.reshape(block)
            for part, block in zip(np.split(vector, ends), self.blocks, strict=True)
        ]

    def is_weight(self) -> NDArray[np.bool_]:
        """Return which parameters are weights; the others are biases."""
        flags = np.ones(self.count, dtype=np.float32)
        for block in self.views(flags):
            block[-1] = 0
        return flags > 0


class DenseNetwork:
    """Parameters of a shape, as one vector and as blocks of it.

    Args:
        shape: How wide the layers are.
        vector: All parameters.
    """

    def __init__(self, shape: NetworkShape, vector: Floats) -> None:
        if vector.shape != (shape.count,) or vector.dtype != np.float32:
            raise BadParameter("vector", vector.shape, f"{shape.count} single floats")
        self.shape = shape
        self.vector = vector
        self.blocks = shape.views(vector)

    @classmethod
    def initial(cls, shape: NetworkShape, source: Source) -> "DenseNetwork":
        """Draw weights of variance 2 / inputs, which keeps the size of signals; biases are 0.

        Reference: He, Zhang, Ren and Sun 2015, arXiv 1502.01852.
        """
        network = cls(shape, source.normals(shape.count))
        for block in network.blocks:
            block *= np.float32(math.sqrt(2 / (len(block) - 1)))
            block[-1] = 0
        return network

    def logits(self, features: Floats) -> Floats:
        """Return a row of logits for each row of features."""
        signal = np.asarray(features, dtype=np.float32)
        for block in self.blocks[:-1]:
            signal = np.maximum(signal @ block[:-1] + block[-1], np.float32(0))
        last = self.blocks[-1]
        return np.asarray(signal @ last[:-1] + last[-1])

    def predict_classes(self, features: Floats) -> NDArray[np.int64]:
        """Return the likeliest class of each row."""
        return np.asarray(np.argmax(self.logits(features), axis=1))


@dataclass(frozen=True, slots=True)
class TrainingBatch:
    """Some examples as a step wants them.

    Attributes:
        inputs: Features with a last column of ones.
        targets: A one for the class of each.
    """

    inputs: Floats
    targets: Floats

    def __len__(self) -> int:
        return len(self.inputs)


class NetworkPass:
    """One forward and one backward pass over a batch, with what every layer saw.

    Buffers are kept between calls: what a call left is gone after the next one.

    Args:
        shape: Of the network.
        size: Of the largest batch.
    """

    def __init__(self, shape: NetworkShape, size: int) -> None:
        self.shape = shape
        self._signals = [np.ones((size, width + 1), np.float32) for width in shape.widths[1:-1]]
        self._errors = [np.empty((size, width), np.float32) for width in shape.widths[1:]]
        self.inputs: list[Floats] = []
        """What came into each layer, with the 1 of its biases: y of the layer before."""
        self.errors: list[Floats] = []
        """The derivative of the loss by what each layer added up: delta."""

    def run(self, network: DenseNetwork, batch: TrainingBatch) -> None:
        """Fill ``inputs`` and ``errors``, a row for each example: (2), (3), (18), (19)."""
        n = len(batch)
        self.inputs = [batch.inputs, *(one[:n] for one in self._signals)]
        self.errors = [one[:n] for one in self._errors]
        for here, block, onward in zip(
            self.inputs, network.blocks[:-1], self.inputs[1:], strict=False
        ):
            inner = onward[:, :-1]
            np.matmul(here, block, out=inner)
            np.maximum(inner, 0, out=inner)
        last = self.errors[-1]
        np.matmul(self.inputs[-1], network.blocks[-1], out=last)
        softmax(last)
        last -= batch.targets
        for place in range(len(self.errors) - 2, -1, -1):
            error = self.errors[place]
            np.matmul(self.errors[place + 1], network.blocks[place + 1][:-1].T, out=error)
            error *= self.inputs[place + 1][:, :-1] > 0

    def sums(self, into: Sequence[Floats]) -> None:
        """Add up the increments of all examples, block by block: (4)."""
        for here, error, block in zip(self.inputs, self.errors, into, strict=True):
            np.matmul(here.T, error, out=block)

    def each(self) -> Floats:
        """Return the increments of each example on its own; for tests and small nets."""
        parts = [
            (here[:, :, None] * error[:, None, :]).reshape(len(here), -1)
            for here, error in zip(self.inputs, self.errors, strict=True)
        ]
        return np.concatenate(parts, axis=1)


def softmax(rows: Floats) -> None:
    """Turn logits into probabilities, in place."""
    rows -= rows.max(axis=1, keepdims=True)
    np.exp(rows, out=rows)
    rows /= rows.sum(axis=1, keepdims=True)


@dataclass(frozen=True, slots=True)
class NetworkTraining:
    """How a network is trained; all of it public. The values are the paper's.

    Attributes:
        hidden: Widths of the hidden layers; the paper says how many, not how wide.
        learning_rate: Of the mean increment of a batch.
        batch: Examples a batch.
        epochs: How often each example is seen.
        decay: Weight decay, on weights alone, added to the sum of a batch.
    """

    hidden: tuple[int, ...] = (64, 64, 64)
    learning_rate: float = 0.01
    batch: int = 50
    epochs: int = 500
    decay: float = 0.001

    def __post_init__(self) -> None:
        for name in ("batch", "epochs"):
            check_count(getattr(self, name), name)
        if check_finite(self.learning_rate, "learning_rate") <= 0:
            raise BadParameter("learning_rate", self.learning_rate, "> 0")
        if not 0 <= check_finite(self.decay, "decay") * self.learning_rate < self.batch:
            raise BadParameter("decay", self.decay, "in [0, batch / learning_rate)")

    def shape(self, features: int, classes: int) -> NetworkShape:
        """Return the shape of the network for n features and classes."""
        return NetworkShape((features, *self.hidden, classes))

    def batches(self, examples: Examples, source: Source) -> list[TrainingBatch]:
        """Cut the examples into batches, by draws and places alone and not by what they hold.

        So a record that becomes another stays in its batch: what is done to the batches of an
        epoch composes in parallel.
        """
        order = source.permutation(len(examples))
        inputs = np.ones((len(order), examples.features.shape[1] + 1), np.float32)
        inputs[:, :-1] = examples.features[order]
        targets = np.zeros((len(order), examples.classes), np.float32)
        targets[np.arange(len(order)), examples.labels[order]] = 1
        return [
            TrainingBatch(inputs[start : start + self.batch], targets[start : start + self.batch])
            for start in range(0, len(order), self.batch)
        ]


Increments: TypeAlias = Callable[[DenseNetwork, TrainingBatch], Floats]
"""What a batch adds up to, as one vector; it may be overwritten by the next call."""


def plain_increments(shape: NetworkShape, size: int) -> Increments:
    """Return the step that adds up the increments of a batch, without any noise."""
    both, total = NetworkPass(shape, size), np.empty(shape.count, np.float32)
    blocks = shape.views(total)

    def increments(network: DenseNetwork, batch: TrainingBatch) -> Floats:
        both.run(network, batch)
        both.sums(blocks)
        return total

    return increments


def steps(
    network: DenseNetwork,
    batches: Sequence[TrainingBatch],
    training: NetworkTraining,
    increments: Increments,
) -> Iterator[int]:
    """Train in place by (5) and (6), and give the number of each step once it is done."""
    rate = np.float32(training.learning_rate / training.batch)
    keep = np.where(network.shape.is_weight(), 1 - rate * np.float32(training.decay), 1)
    keep = keep.astype(np.float32)
    for number in range(training.epochs * len(batches)):
        change = increments(network, batches[number % len(batches)])
        change *= rate
        network.vector *= keep
        network.vector -= change
        yield number


def train(
    examples: Examples,
    training: NetworkTraining,
    source: Source,
    increments_of: Callable[[NetworkShape, Source], Increments] | None = None,
    *,
    is_checked: bool = True,
) -> DenseNetwork:
    """Return a network that was trained on the examples.

    Args:
        examples: With features in [0, 1].
        training: How.
        source: Of the first weights, the batches, and the noise if there is any.
        increments_of: Makes the step that adds up a batch; the plain one if left out.
        is_checked: Whether weights that are no numbers are refused. An error about a network that
            is private yet would tell of the records; what takes such weights may switch it off.

    Raises:
        NoisefloorError: Weights are no numbers any more. Such a network tells one class for
            everything and looks like one that noise has drowned, so it is not handed on.
    """
    shape = training.shape(examples.features.shape[1], examples.classes)
    network = DenseNetwork.initial(shape, source.stage("weights"))
    batches = training.batches(examples, source.stage("batches"))
    if increments_of is None:
        increments = plain_increments(shape, training.batch)
    else:
        increments = increments_of(shape, source.stage("noise"))
    with np.errstate(over="ignore", invalid="ignore"):  # reported once, at the end
        for _ in steps(network, batches, training, increments):
            pass
    if is_checked:
        check_finite_parameters(network)
    return network


def check_finite_parameters(network: DenseNetwork) -> None:
    """Refuse a network whose parameters are not all finite."""
    if not np.isfinite(network.vector).all():
        raise NoisefloorError(
            "Training failed: weights are NaN or infinite; lower the learning rate."
        )
