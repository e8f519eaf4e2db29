"""Gaussian noise on a vector, on a grid that does not depend on the data.

What floats leave open. The normal numbers are finite for every word that a source can give, but
they are float32 numbers and not real ones: tails end at 8.66 standard deviations, and a sum with
them has low-order bits that may depend on what was noised (Mironov 2012 shows how such bits
betray Laplace noise). So results are rounded to multiples of about a thousandth of the noise,
which leaves nothing of these bits. This closes the known attack; it is no proof for floats, and
neither sums of float32 gradients nor their norms are exact: clipping keeps a margin of 4e-6 for
norms, and the plan's noise has one for sums. Discrete noise on integer gradients would be exact,
and slower.

Who takes part in a step.
"""

import math
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from noisefloor.publication.private_sgd.plan import SgdPlan
from noisefloor.randomness import Source


def poisson_sample(plan: SgdPlan, examples: int, source: Source) -> Tensor | None:
    """Return the places of the examples that take part; None for all of them.

    Each is in with the plan's rate, by itself, to the last of 64 bits. The sample may be empty.
    """
    if plan.is_full_batch:
        return None
    return torch.from_numpy(np.flatnonzero(source.bernoulli(plan.threshold, examples)))


def micro_batches(places: Tensor | None, examples: int, most: int) -> Iterator[Tensor | slice]:
    """Cut a sample into parts that fit into memory; an empty one has none."""
    if places is None:
        for start in range(0, examples, most):
            yield slice(start, min(start + most, examples))
    elif len(places):
        yield from torch.split(places, most)


_BLOCK = 1 << 14
"""Numbers drawn at once: what is in between stays in the processor's caches. It is part of the
definition of seeded runs: changing it changes the draws."""

_FINER = 10
"""Halvings from the noise's scale to the grid."""


def add_step_noise(plan: SgdPlan, sums: Tensor, source: Source) -> None:
    """Add the noise of one step to a sum of clipped gradients, in place."""
    add_noise(sums, plan.noise_scale, source)


def add_noise(vector: Tensor, scale: float, source: Source) -> None:
    """Add independent normal noise to each coordinate, and round to the grid, in place.

    Args:
        vector: One axis, float32 or float64.
        scale: The standard deviation.
        source: Drawn from in blocks.
    """
    for block in torch.split(vector, _BLOCK):
        block.add_(torch.from_numpy(source.normals(len(block))), alpha=scale)
        snap(block, grid(scale))


def grid(scale: float) -> float:
    """Return the step of the grid for noise of this scale: a power of two."""
    return math.ldexp(1.0, math.frexp(scale)[1] - 1 - _FINER)


def snap(vector: Tensor, step: float) -> None:
    """Round to multiples of a power of two, in place.

    Adding and taking away a number whose last place is worth the step rounds to the step, with no
    division. What is too large for that has a last place worth more than the step already.
    """
    mantissa = 23 if vector.dtype == torch.float32 else 52
    # 1.5 and not 1: the sum keeps its exponent for negative entries, too.
    large = 1.5 * math.ldexp(step, mantissa)
    vector.add_(large).sub_(large)
