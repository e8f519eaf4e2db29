"""One timer for the deadlines of many readings: a timer each would cost more than the reading."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")
_SWEEPS = 4
"""How often within the time it is looked who is late: so much later, at most, is the end."""


class Deadline:
    """Ends what takes longer than a time, or up to a quarter of it more.

    Args:
        time_s: The time.
    """

    __slots__ = ("_late", "_loop", "_started", "_time_s")

    def __init__(self, time_s: float) -> None:
        self._time_s = time_s
        self._started: dict[asyncio.Task[Any], float] = {}
        self._late: set[asyncio.Task[Any]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def bound(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Wait for the work in the current task; TimeoutError if it takes too long."""
        task = asyncio.current_task()
        assert task is not None  # a coroutine runs in one
        loop = task.get_loop()
        if loop is not self._loop:
            self._watch(loop)
        self._started[task] = loop.time()
        try:
            return await work
        except asyncio.CancelledError:
            # Somebody else may have cancelled as well; then it is not for us to go on.
            if task in self._late and not task.uncancel():
                raise TimeoutError from None
            raise
        finally:
            self._late.discard(task)
            self._started.pop(task, None)

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._started.clear()
        loop.call_later(self._time_s / _SWEEPS, self._sweep, loop)

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for task, start_s in self._started.items():
            if now - start_s >= self._time_s and task not in self._late:
                self._late.add(task)
                task.cancel()
        if self._started:
            loop.call_later(self._time_s / _SWEEPS, self._sweep, loop)
        else:
            self._loop = None  # nobody reads: the next one starts the timer again
