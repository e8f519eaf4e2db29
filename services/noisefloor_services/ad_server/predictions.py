"""Protected queries, answered beside the requests: one after the other, and not too many.

There is one thread for them, whatever the number of collections, so that taking reports does not
wait for answers; whoever comes when too many wait is asked to come again.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from noisefloor.errors import BusFull, NotFitted
from noisefloor.tasks import TrainingTask, answer_queries
from noisefloor_services.store import BroadcastContent

MOST_WAITING = 16


class PredictionQueue:
    """Answers queries; made for one event loop."""

    __slots__ = ("_pool", "_waiting")

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="predictions")
        self._waiting = 0

    async def answers(
        self, course: TrainingTask, broadcast_content: BroadcastContent | None, data: bytes
    ) -> NDArray[np.bool_]:
        """Return a decision for each query of a frame.

        Raises:
            BadFrame: It is none of this course's queries.
            NotLearnt: There is nothing to answer by.
            BusFull: Too many wait.
        """
        if broadcast_content is None:
            raise NotFitted("There is no model yet.")
        if self._waiting >= MOST_WAITING:
            raise BusFull("Too many queries wait.")
        self._waiting += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(
                self._pool, answer_queries, course, broadcast_content.content, data
            )
        finally:
            self._waiting -= 1
