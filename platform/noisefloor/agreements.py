"""In how many rows of signs two places agree: what a second moment is summed from.

Both the mechanism and the frame that carries its reports count so, and neither knows the other.
"""

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import blocks


def agreements(bits: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return in how many rows each pair of places agrees."""
    size = bits.shape[1]
    total = np.zeros((size, size), dtype=np.int64)
    for rows in blocks(len(bits), size):
        # Sums of fewer than 2**24 ones and minus ones are exact in single precision.
        signs = bits[rows].astype(np.float32)
        signs *= 2
        signs -= 1
        total += (signs.T @ signs).astype(np.int64)
    upper = total[np.triu_indices(size, 1)]
    return np.asarray((upper + len(bits)) // 2)
