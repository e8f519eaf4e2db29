"""Rounds of training on the streams: a closed round becomes the next broadcast.

The trainer role with Redis for its memory. A step follows from the round's sums and the broadcast
before it, so it may be repeated: whoever dies between close and broadcast is made good by the next
who closes the same round.
"""

import threading

from noisefloor.ads.training import Training
from noisefloor.roles.broadcast import read_broadcast, write_broadcast
from noisefloor_services.board import Board
from noisefloor_services.streams.store import EpochStore


class Rounds:
    """Takes the step after each round.

    Args:
        store: Where the reports are summed; the round is their epoch.
        board: Where broadcasts are left.
        training: How the server learns.
    """

    __slots__ = ("_board", "_lock", "_store", "_training")

    def __init__(self, store: EpochStore, board: Board, training: Training) -> None:
        self._store = store
        self._board = board
        self._training = training
        self._lock = threading.Lock()

    def start(self) -> None:
        """Leave the first broadcast, unless there is one already."""
        self._board.start(write_broadcast(0, self._training.start()))

    def closed(self, kind: str, epoch: int) -> None:
        """Learn from a round that was closed; nothing happens for another kind or round."""
        with self._lock:
            notice = self._board.read()
            if notice is None or epoch >= self._training.rounds:
                return
            number, sent = read_broadcast(notice.content)
            if number != epoch or self._training.kind(epoch).name != kind:
                return
            tally, rows = self._store.release(kind, epoch)
            if rows:
                sent = self._training.update(number, sent, tally, rows)
            self._board.write(write_broadcast(number + 1, sent))
