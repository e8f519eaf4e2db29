"""Whether rows come in random order.

A frame's order is a permutation. Of two neighbouring rows either comes first with probability one
half, and pairs of rows that share none are independent: so the number of ascents among such pairs
is binomial, exactly. Rows in the order of users, or in reverse, have all of them or none.
"""

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary.fit.table import FitTable


def see_order(table: FitTable, order: NDArray[np.int64]) -> None:
    """Count the ascents among disjoint pairs of neighbouring rows.

    Args:
        table: Where they are counted.
        order: Row ``i`` of the frame is report ``order[i]``.
    """
    half = len(order) // 2
    if half:
        ascents = np.count_nonzero(order[: 2 * half : 2] < order[1 : 2 * half : 2])
        table.add("rows in the order of users", ascents, half, 0.5)
