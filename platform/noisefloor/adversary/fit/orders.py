"""Whether rows come in random order.

A frame's order is a permutation. Of two neighbouring rows either comes first with probability one
half, and pairs of rows that share none are independent: so the number of ascents among such pairs
is binomial, exactly. Rows in the order of users, or in reverse, have all of them or none. So have
rows that are half a frame apart if users of one half come first, whatever the order in a half.
"""

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary.fit.table import FitTable


def see_order(table: FitTable, order: NDArray[np.int64], most: int) -> None:
    """Count the ascents among disjoint pairs of rows, next to each other and half a frame apart.

    Args:
        table: Where they are counted.
        order: Row ``i`` of the frame is report ``order[i]``.
        most: Rows that are looked at.
    """
    half = len(order) // 2
    if half:
        pairs = min(half, most // 2)
        ascents = np.count_nonzero(order[: 2 * pairs : 2] < order[1 : 2 * pairs : 2])
        table.add("rows in the order of users", ascents, pairs, 0.5)
        rises = np.count_nonzero(order[:pairs] < order[half : half + pairs])
        table.add("rows half a frame apart in the order of users", rises, pairs, 0.5)
