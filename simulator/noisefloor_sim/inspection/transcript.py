"""The transcript: what shows beside the content of reports, if connections can be told apart.

A server that links what comes by one connection sees how many reports a user sends, on which days,
and which reports belong together. No epsilon covers the first two.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Array
from noisefloor_sim.inspection.flow import SeenFrame

Rows = NDArray[np.int64]

MOST_CONNECTIONS = 1 << 12
"""Users whose connections are recorded, those of the first cohorts."""


@dataclass(frozen=True, slots=True, eq=False)
class _Arrived:
    """The recorded rows of one frame: whose they are, which of a cohort's epoch, what they say."""

    epoch: int
    connections: NDArray[np.uint16]
    places: NDArray[np.uint32]
    symbols: Array


@dataclass(slots=True)
class Transcript:
    """What arrived of a flow by each connection; one user has one connection.

    Only whole numbers are kept, and nothing depends on the order in which frames arrive.
    """

    _arrived: list[_Arrived] = field(default_factory=list)

    def add(self, seen: SeenFrame, connections: Rows) -> None:
        """Record a frame of a kind of one column.

        Args:
            seen: As it arrived.
            connections: The user of each report, in the order before reports were permuted.
        """
        users = connections[seen.order]
        some = users < MOST_CONNECTIONS
        if not some.any():
            return
        rows = seen.rows
        symbols = rows[some] if rows.ndim == 1 else np.empty(0, dtype=np.uint8)
        connected, places = users[some].astype(np.uint16), seen.order[some].astype(np.uint32)
        self._arrived.append(_Arrived(seen.frame.epoch, connected, places, symbols))

    def counts(self, users: int, epochs: int) -> Rows:
        """Return how many reports of each user arrived in each epoch, one row per user."""
        total = np.zeros((users, epochs), dtype=np.int64)
        for one in self._arrived:
            total[:, one.epoch] += np.bincount(one.connections, minlength=users)[:users]
        return total

    def halves(self, most: int) -> tuple[Rows, Rows] | None:
        """Return what the same users sent on even and on odd days: users by reports, twice.

        All send equally many reports, so that the number tells nobody apart: what the median user
        sends in the lesser half. Users who send fewer are left out, and later reports.

        Args:
            most: Reports of a half, at most.

        Returns:
            None if nobody sent reports of one symbol in both halves.
        """
        sorted_halves = [self._in_order(parity) for parity in (0, 1)]
        numbers = np.stack(
            [np.bincount(users, minlength=MOST_CONNECTIONS) for users, _ in sorted_halves]
        )
        lesser = numbers.min(axis=0)
        if not lesser.any():
            return None
        length = min(most, int(np.quantile(lesser[lesser > 0], 0.5, method="lower")))
        chosen = np.flatnonzero(lesser >= length)
        first, second = (
            symbols[np.searchsorted(users, chosen)[:, None] + np.arange(length)]
            for users, symbols in sorted_halves
        )
        return first, second

    def _in_order(self, parity: int) -> tuple[Rows, Rows]:
        """Return users and symbols of half of the epochs, by user, epoch and order of sending."""
        columns = [
            np.stack(np.broadcast_arrays(one.symbols, one.places, one.epoch, one.connections))
            for one in self._arrived
            if one.epoch % 2 == parity and len(one.symbols)
        ]
        table = np.concatenate([np.empty((4, 0), dtype=np.int64), *columns], axis=1)
        order = np.lexsort(table[1:])
        return table[3, order], table[0, order]
