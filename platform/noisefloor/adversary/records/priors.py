"""What an adversary believes of a value before it sees reports: the shares of its classes."""

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Floats
from noisefloor.errors import BadParameter


def shares_of(codes: NDArray[np.integer] | NDArray[np.bool_], size: int) -> Floats:
    """Return how often each of n classes comes."""
    if not len(codes):
        raise BadParameter("codes", "<0>", "at least one")
    counts = np.bincount(np.asarray(codes, dtype=np.int64), minlength=size)
    return np.asarray(counts / counts.sum())
