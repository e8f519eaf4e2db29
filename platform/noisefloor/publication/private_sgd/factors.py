"""The factors that clip, from squared norms."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from noisefloor.errors import DeadRun
from noisefloor.publication.private_sgd.clipping import Automatic, Clipping


class BrokenExamples(DeadRun):
    """Some examples have a loss or a gradient that is no finite number.

    Which ones, ``broken`` says, to whoever leaves them out; the text is for everybody.

    Args:
        text: What to check.
        broken: A flag for each example of those that were looked at.
    """

    def __init__(self, text: str, broken: Tensor) -> None:
        super().__init__(text)
        self.broken = broken


_MARGIN = 1 - 2.0**-18
"""Bounds are kept to with room for the rounding of norms, factors and products."""


def clip_factors(clipping: Clipping, squares: Sequence[Tensor]) -> list[Tensor]:
    """Return what each example's gradient is multiplied by, for each group.

    Args:
        clipping: How.
        squares: The squared norms of each example's gradient, for each group.

    Raises:
        BrokenExamples: A norm is NaN or infinite. Such an example is never dropped in silence: a
            factor of zero would hide that the training is broken. That a run stops here is a fact
            about one example, and not covered by the guarantee; ``train`` can leave it out.
    """
    found = []
    for bound, square in zip(clipping.bounds, squares, strict=True):
        norms = square.sqrt()
        if not math.isfinite(norms.sum().item()):
            raise BrokenExamples(
                "The gradient of an example is NaN or too large for floats: check the inputs, the "
                "loss and the learning rate.",
                ~torch.isfinite(norms),
            )
        if isinstance(clipping, Automatic):
            found.append(torch.reciprocal(norms.add_(clipping.stability)).mul_(bound * _MARGIN))
        else:
            least = bound * _MARGIN
            found.append(torch.reciprocal(norms.clamp_(min=least)).mul_(least))
    return found
