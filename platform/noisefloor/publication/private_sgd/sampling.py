"""Who takes part in a step."""

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


def parts(places: Tensor | None, examples: int, most: int) -> Iterator[Tensor | slice]:
    """Cut a sample into parts that fit into memory; an empty one has none."""
    if places is None:
        for start in range(0, examples, most):
            yield slice(start, min(start + most, examples))
    elif len(places):
        yield from torch.split(places, most)
