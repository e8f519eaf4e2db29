"""The factors that clip, from squared norms; and a batch that they clip."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from noisefloor.errors import NoisefloorError
from noisefloor.publication.private_sgd.clipping import Automatic, Clipping
from noisefloor.publication.private_sgd.contributions import Contribution


class BrokenExamples(NoisefloorError):
    """Some examples have a loss or a gradient that is no finite number; they count as zero.

    That there are any is a fact about single examples, which no guarantee covers: a training
    catches this, leaves them out and goes on, and nothing shows it.

    Args:
        broken: A flag for each example of those that were looked at; at least one is set.
    """

    def __init__(self, broken: Tensor) -> None:
        super().__init__("Some examples have a loss or a gradient that is not finite.")
        self.broken = broken


class ClippedBatch(NamedTuple):
    """The clipped gradients of a batch, before they are added to the sums.

    Attributes:
        contributions: Of each layer, with its group of clipping.
        squares: The squared norm of each example's gradient, unclipped, for each group.
        factors: What it is multiplied by.
    """

    contributions: list[tuple[Contribution, int]]
    squares: list[Tensor]
    factors: list[Tensor]

    def add(self) -> None:
        """Add them to the sums."""
        with torch.no_grad():
            for contribution, group in self.contributions:
                contribution.add(self.factors[group])


_MARGIN = 1 - 2.0**-18
"""Bounds are kept to with room for the rounding of norms, factors and products."""


def clip_factors(clipping: Clipping, squares: Sequence[Tensor]) -> list[Tensor]:
    """Return what each example's gradient is multiplied by, for each group.

    Args:
        clipping: How.
        squares: The squared norms of each example's gradient, for each group.

    Raises:
        BrokenExamples: A norm is NaN or infinite. A factor of zero would not do: NaN remains.
    """
    found = []
    for bound, square in zip(clipping.bounds, squares, strict=True):
        norms = square.sqrt()
        if not math.isfinite(norms.sum().item()):
            raise BrokenExamples(~torch.isfinite(norms))
        if isinstance(clipping, Automatic):
            found.append(torch.reciprocal(norms.add_(clipping.stability)).mul_(bound * _MARGIN))
        else:
            least = bound * _MARGIN
            found.append(torch.reciprocal(norms.clamp_(min=least)).mul_(least))
    return found
