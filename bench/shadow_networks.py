"""Many small networks trained together: one batched product where there would be one per model.

Forward and backward are written out for layers with rectified units and cross-entropy, weights of
all models lie in one buffer, and Adam passes over it once a step. Each model has its own subset,
its own start and its own order of examples, and ends where it would have ended alone.

Tables as an overfitting learner wants them: one-hot, and where in its bin each number lies.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from noisefloor.adversary.models.shadow_runs import Bits
from noisefloor.checks import check_count, check_finite
from noisefloor.errors import BadParameter
from noisefloor.randomness import Source
from noisefloor.tables.one_hot import Examples, OneHot
from noisefloor.tables.records import Records
from noisefloor.tables.schema import Bins


def fine_examples(records: Records, label: str) -> Examples:
    """Return one-hot examples with a feature more for each column of numbers.

    Bins alone make many records alike, and what is alike cannot be learnt by heart. The places
    follow from the public edges, so nothing is taken from the data.
    """
    one_hot = OneHot(records.schema, label)
    coarse = one_hot.examples(records)
    places = [_places(records, name) for name in one_hot.columns if _is_cut(records, name)]
    features = np.column_stack([coarse.features, *places]).astype(np.float32)
    return Examples(features, coarse.labels, coarse.classes)


def _is_cut(records: Records, name: str) -> bool:
    return isinstance(records.schema.column(name), Bins)


def _places(records: Records, name: str) -> NDArray[np.float64]:
    """Return how far up its bin each value lies, in [0, 1]."""
    column = records.schema.column(name)
    edges = np.array(column.edges if isinstance(column, Bins) else (), dtype=np.float64)
    code = records.codes[name]
    low, high = edges[code], edges[code + 1]
    return np.asarray((records.values[name].astype(np.float64) - low) / (high - low))


_READ_AT_ONCE = 1024
"""Records whose logits are computed at once, so that memory does not grow with their number."""


class Networks:
    """Multilayer perceptrons of one shape, side by side.

    Attributes:
        parameters: All weights and biases of all models; ``weights`` and ``biases`` are views.
        gradient: Of the same layout, filled by ``backward``.
    """

    def __init__(self, models: int, sizes: Sequence[int]) -> None:
        shapes = [
            shape
            for fan_in, fan_out in pairwise(sizes)
            for shape in ((models, fan_in, fan_out), (models, 1, fan_out))
        ]
        total = sum(math.prod(shape) for shape in shapes)
        self.models, self.sizes = models, tuple(sizes)
        self.parameters, self.gradient = torch.zeros(total), torch.zeros(total)
        self.weights, self.biases = _views(self.parameters, shapes)
        self._weight_gradients, self._bias_gradients = _views(self.gradient, shapes)

    def start(self, sources: Sequence[Source]) -> None:
        """Draw each model's weights uniformly in +-1/sqrt(fan in), as torch's own layers do."""
        for model, randomness in enumerate(sources):
            for weight, bias in zip(self.weights, self.biases, strict=True):
                reach = 1 / math.sqrt(weight.shape[1])
                weight[model] = _uniform(weight[model].shape, reach, randomness)
                bias[model] = _uniform(bias[model].shape, reach, randomness)

    def forward(self, inputs: Tensor) -> list[Tensor]:
        """Return the inputs, each hidden layer's output, and the logits: models, rows, units."""
        outputs = [inputs]
        for number, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            made = torch.baddbmm(bias, outputs[-1], weight)
            outputs.append(made.relu_() if number + 1 < len(self.weights) else made)
        return outputs

    def deltas(self, outputs: list[Tensor], slope: Tensor) -> list[Tensor]:
        """Carry the loss's slope by the logits back to every layer's sums."""
        slopes = [slope]
        for number in range(len(self.weights) - 1, 0, -1):
            back = torch.bmm(slopes[0], self.weights[number].transpose(1, 2))
            # What relu's own backward does, in one pass and in place.
            torch.ops.aten.threshold_backward(back, outputs[number], 0, grad_input=back)
            slopes.insert(0, back)
        return slopes

    def backward(self, outputs: list[Tensor], slopes: list[Tensor]) -> None:
        """Fill the gradient with the sum over rows."""
        for number, slope in enumerate(slopes):
            inputs = outputs[number].transpose(1, 2)
            torch.bmm(inputs, slope, out=self._weight_gradients[number])
            torch.sum(slope, dim=1, keepdim=True, out=self._bias_gradients[number])

    def logits(self, features: Tensor) -> NDArray[np.float32]:
        """Return what every model says of every record."""
        parts = []
        for rows in torch.split(features, _READ_AT_ONCE):
            parts.append(self.forward(rows.expand(self.models, *rows.shape))[-1])
        return torch.cat(parts, dim=1).numpy()


@dataclass(frozen=True, slots=True, eq=False)
class DenseTraining:
    """Ordinary training of perceptrons by Adam on shuffled batches; no privacy at all.

    Attributes:
        examples: All audited records.
        hidden: Units of each hidden layer.
        batch: Examples a step. Batches run on from one shuffled pass into the next, so that all
            are full and all models take equally many steps.
        steps: How many.
        rate: Of Adam.
        together: Models trained at once; more need more memory.
    """

    examples: Examples
    hidden: tuple[int, ...] = (64, 64)
    batch: int = 64
    steps: int = 1000
    rate: float = 1e-3
    together: int = 64

    def __post_init__(self) -> None:
        check_shape(self.hidden, self.rate, self.together)
        check_count(self.batch, "batch")
        check_count(self.steps, "steps")

    def __call__(self, members: Bits, source: Source) -> NDArray[np.float32]:
        """Train a model on each subset; return the logits of all records."""
        check_members(members, len(self.examples))
        parts = []
        for first, some in in_turns(members, self.together):
            # By their place among all models: how many train together moves nobody's coins.
            own = [source.child("model", first + place) for place in range(len(some))]
            parts.append(self._train(some, own))
        return np.concatenate(parts)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Units of every layer, inputs and classes included."""
        return layer_sizes(self.examples, self.hidden)

    @torch.no_grad()
    def _train(self, members: Bits, sources: Sequence[Source]) -> NDArray[np.float32]:
        networks = Networks(len(members), self.sizes)
        networks.start([source.child("start") for source in sources])
        features, labels = tensors(self.examples)
        randomness = [source.child("order") for source in sources]
        batches = orders(members, self.steps, self.batch, randomness)
        fit(networks, features, labels, batches, self.rate)
        return networks.logits(features)


def fit(
    networks: Networks,
    features: Tensor,
    labels: Tensor,
    batches: NDArray[np.int32],
    rate: float,
) -> None:
    """Train the networks in place by Adam on the mean cross-entropy of each batch.

    Args:
        networks: Where to start.
        features: Of all records.
        labels: Of all records.
        batches: Which records each model learns from in each step: steps, models, batch.
        rate: Adam's.
    """
    models, size = batches.shape[1:]
    optimiser = adam(networks, rate)
    inputs = torch.empty(models, size, features.shape[1])
    share = 1 / size
    for rows in torch.from_numpy(batches):
        torch.index_select(features, 0, rows.view(-1), out=inputs.view(models * size, -1))
        outputs = networks.forward(inputs)
        slope = slopes_of_loss(outputs[-1], labels[rows.view(-1)]).mul_(share)
        networks.backward(outputs, networks.deltas(outputs, slope))
        optimiser.step()


def adam(networks: Networks, rate: float) -> torch.optim.Adam:
    """Return torch's Adam over the one buffer, in its form that passes over memory once."""
    networks.parameters.grad = networks.gradient
    return torch.optim.Adam([networks.parameters], lr=rate, fused=True)


def slopes_of_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Return softmax minus one-hot: the slope of each row's cross-entropy by its logits."""
    slopes = logits.softmax(dim=-1)
    flat = slopes.view(-1, slopes.shape[-1])
    flat.scatter_add_(1, labels.view(-1, 1), torch.full((1, 1), -1.0).expand(len(flat), 1))
    return slopes


def orders(members: Bits, steps: int, batch: int, sources: Sequence[Source]) -> NDArray[np.int32]:
    """Return which records each model learns from in each step: steps, models, batch.

    A model passes over its own records in a fresh order each time; batches run on across passes.
    """
    needed = steps * batch
    drawn = np.empty((steps, len(members), batch), dtype=np.int32)
    for model, (row, randomness) in enumerate(zip(members, sources, strict=True)):
        own = np.flatnonzero(row).astype(np.int32)
        passes = [own[randomness.permutation(len(own))] for _ in range(-(-needed // len(own)))]
        drawn[:, model] = np.concatenate(passes)[:needed].reshape(steps, batch)
    return drawn


def tensors(examples: Examples) -> tuple[Tensor, Tensor]:
    """Return features and labels as torch sees them, without a copy where it can be."""
    features = np.ascontiguousarray(examples.features, dtype=np.float32)
    return torch.from_numpy(features), torch.from_numpy(examples.labels.astype(np.int64))


def layer_sizes(examples: Examples, hidden: tuple[int, ...]) -> tuple[int, ...]:
    """Return the units of every layer, inputs and classes included."""
    return (examples.features.shape[1], *hidden, examples.classes)


def in_turns(members: Bits, together: int) -> Iterator[tuple[int, Bits]]:
    """Cut the models into groups that are trained together."""
    for first in range(0, len(members), together):
        yield first, members[first : first + together]


def check_shape(hidden: tuple[int, ...], rate: float, together: int) -> None:
    """Refuse what no network can be made of."""
    for units in hidden:
        check_count(units, "hidden", most=1 << 16)
    if check_finite(rate, "rate") <= 0:
        raise BadParameter("rate", rate, "> 0")
    check_count(together, "together")


def check_members(members: Bits, records: int) -> None:
    """Refuse subsets of other records, and models that would learn from nobody."""
    if members.ndim != 2 or members.shape[1] != records or members.dtype != np.bool_:
        raise BadParameter("members", members.shape, f"booleans, models by {records} records")
    if not members.any(axis=1).all():
        raise BadParameter("members", "<array>", "to give every model a record at least")


def _views(
    flat: Tensor, shapes: Sequence[tuple[int, int, int]]
) -> tuple[list[Tensor], list[Tensor]]:
    parts = torch.split(flat, [math.prod(shape) for shape in shapes])
    views = [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]
    return views[0::2], views[1::2]


def _uniform(shape: Sequence[int], reach: float, randomness: Source) -> Tensor:
    steps = randomness.words(math.prod(shape)) >> np.uint64(11)
    drawn = (steps.astype(np.float64) + 0.5) * 2.0**-52 - 1.0
    return torch.from_numpy((reach * drawn).astype(np.float32)).view(*shape)
