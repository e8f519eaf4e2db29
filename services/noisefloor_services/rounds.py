"""Rounds of training on the streams: a closed round becomes the next broadcast.

The trainer role with Redis for its memory. A step follows from the round's sums and the broadcast
before it, so it may be repeated: whoever dies between close and broadcast is made good by the next
who closes the same round.
"""

import threading

from noisefloor.roles.courses import Course
from noisefloor.roles.learner import released
from noisefloor_services.board import Board
from noisefloor_services.streams.store import EpochStore


class Rounds:
    """Takes the step after each round.

    Args:
        store: Where the reports are summed; the round is their epoch.
        board: Where broadcasts are left.
        course: How the server learns.
    """

    __slots__ = ("_board", "_course", "_lock", "_store")

    def __init__(self, store: EpochStore, board: Board, course: Course) -> None:
        self._store = store
        self._board = board
        self._course = course
        self._lock = threading.Lock()

    def start(self) -> None:
        """Leave the first broadcast, unless there is one already."""
        self._board.start(self._course.first())

    def closed(self, kind: str, epoch: int) -> None:
        """Learn from a round that was closed; nothing happens for another kind or round."""
        with self._lock:
            notice = self._board.read()
            if notice is None or epoch >= self._course.rounds:
                return
            number = self._course.round_of(notice.content)
            own = self._course.kind(epoch)
            if number != epoch or own.name != kind:
                return
            given = released(self._store, own, epoch)
            self._board.write(self._course.next(number, notice.content, given))
