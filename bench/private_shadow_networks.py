"""Many small networks trained together by DP-SGD, so that its guarantee can be attacked.

Per-example norms need no per-example gradients: a layer's gradient is input times slope, so its
squared norm is the product of theirs, and clipping is a weight on the slopes.
"""

from dataclasses import dataclass

import numpy as np
import torch
from bench.shadow_networks import (
    Networks,
    adam,
    check_members,
    check_shape,
    in_turns,
    layer_sizes,
    slopes_of_loss,
    tensors,
)
from numpy.typing import NDArray
from torch import Tensor

from noisefloor.accounting.accountant import SampledGaussian, epsilon_at, noise_multiplier_for
from noisefloor.adversary.models.shadow_runs import Bits
from noisefloor.checks import check_count, check_finite, check_probability
from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source
from noisefloor.tables.one_hot import Examples


@dataclass(frozen=True, slots=True, eq=False)
class PrivateDenseTraining:
    """Training of perceptrons by DP-SGD with Adam's step, a model for each subset.

    Guarantee:  (epsilon, delta) DP of each model by itself, by the account of all its steps. For
                real numbers; noise and sums here are 32-bit floats, which the account leaves out.
    Neighbours: one record is there or not; substitution is accounted for on request.
    Domain:     examples with features in [0, 1]; gradients are clipped to an L2 norm.
    Reference:  Abadi et al. 2016, arXiv 1607.00133.

    Attributes:
        examples: All audited records.
        noise_multiplier: Standard deviation of the noise on a sum, over the clip.
        sampling_rate: Chance of each record to be in a step, apart from all others.
        steps: How many.
        clip: Longest gradient of one record.
        hidden: Units of each hidden layer.
        rate: Of Adam.
        together: Models trained at once; they draw from one stream, so it moves coins.
    """

    examples: Examples
    noise_multiplier: float
    sampling_rate: float
    steps: int
    clip: float = 1.0
    hidden: tuple[int, ...] = (64, 64)
    rate: float = 1e-3
    together: int = 64

    def __post_init__(self) -> None:
        check_shape(self.hidden, self.rate, self.together)
        check_count(self.steps, "steps")
        check_probability(self.sampling_rate, "sampling_rate")
        for name in ("noise_multiplier", "clip"):
            if check_finite(getattr(self, name), name) <= 0:
                raise BadParameter(name, getattr(self, name), "> 0")

    @classmethod
    def within(
        cls,
        examples: Examples,
        epsilon: float,
        delta: float,
        *,
        sampling_rate: float,
        steps: int,
        clip: float = 1.0,
        hidden: tuple[int, ...] = (64, 64),
        rate: float = 1e-3,
        neighbours: Neighbours = Neighbours.RECORD_ADD_REMOVE,
    ) -> "PrivateDenseTraining":
        """Take the least noise that keeps to (epsilon, delta)."""
        noise = noise_multiplier_for(
            epsilon, delta, sampling_rate, steps, "pld", neighbours=neighbours
        )
        return cls(examples, noise, sampling_rate, steps, clip=clip, hidden=hidden, rate=rate)

    def guarantee(
        self, delta: float, neighbours: Neighbours = Neighbours.RECORD_ADD_REMOVE
    ) -> Guarantee:
        """Return what all steps of one model cost together."""
        event = SampledGaussian(self.noise_multiplier, self._chance / ONE, self.steps)
        return epsilon_at([event], delta, neighbours=neighbours)

    @property
    def _chance(self) -> int:
        """The sampling rate as it is drawn by, out of 2**64."""
        return int(self.sampling_rate * ONE)

    def __call__(self, members: Bits, source: Source) -> NDArray[np.float32]:
        """Train a model on each subset; return the logits of all records."""
        check_members(members, len(self.examples))
        parts = []
        for first, some in in_turns(members, self.together):
            parts.append(self._train(some, source.child("from", first)))
        return np.concatenate(parts)

    @torch.no_grad()
    def _train(self, members: Bits, source: Source) -> NDArray[np.float32]:
        networks = Networks(len(members), layer_sizes(self.examples, self.hidden))
        networks.start([source.child("start", model) for model in range(len(members))])
        features, labels = tensors(self.examples)
        optimiser = adam(networks, self.rate)
        # Public: that half of the records are in is the rule of the game, not a count.
        expected = max(1.0, self.sampling_rate * members.shape[1] / 2)
        for step in range(self.steps):
            randomness = source.child("step", step)
            rows, is_there = _sampled(members, self._chance, randomness.child("sample"))
            clipped_sums(networks, features[rows], labels[rows], is_there, self.clip)
            self._add_noise(networks, randomness.child("noise"))
            networks.gradient.div_(expected)
            optimiser.step()
        return networks.logits(features)

    def _add_noise(self, networks: Networks, randomness: Source) -> None:
        noise = torch.from_numpy(randomness.normals(len(networks.gradient)))
        networks.gradient.add_(noise, alpha=self.noise_multiplier * self.clip)


def clipped_sums(
    networks: Networks, inputs: Tensor, labels: Tensor, is_there: Tensor, clip: float
) -> Tensor:
    """Fill the gradient with each model's sum of clipped gradients; return the norms.

    Args:
        networks: What is differentiated.
        inputs: Models, rows, features.
        labels: Models, rows.
        is_there: Which rows count: models sample unlike numbers of them.
        clip: Longest gradient of one row, over all layers.
    """
    outputs = networks.forward(inputs)
    slopes = networks.deltas(outputs, slopes_of_loss(outputs[-1], labels))
    squares = torch.zeros(is_there.shape)
    for layer, slope in enumerate(slopes):
        # The bias has an input of one.
        into = outputs[layer].square().sum(dim=-1).add_(1)
        squares.addcmul_(into, slope.square().sum(dim=-1))
    norms = squares.sqrt_()
    factors = (clip / norms.clamp(min=clip)).mul_(is_there)
    networks.backward(outputs, [slope.mul_(factors.unsqueeze(-1)) for slope in slopes])
    return norms


def _sampled(members: Bits, chance: int, randomness: Source) -> tuple[Tensor, Tensor]:
    """Return each model's sample of its own records, padded to one length, and what is padding."""
    drawn = randomness.bernoulli(chance, members.size).reshape(members.shape)
    model, record = np.nonzero(drawn & members)
    counts = np.bincount(model, minlength=len(members))
    longest = max(1, int(counts.max()))
    place = np.arange(len(model)) - np.repeat(np.cumsum(counts) - counts, counts)
    rows = np.zeros((len(members), longest), dtype=np.int64)
    rows[model, place] = record
    is_there = np.arange(longest) < counts[:, None]
    return torch.from_numpy(rows), torch.from_numpy(is_there)
