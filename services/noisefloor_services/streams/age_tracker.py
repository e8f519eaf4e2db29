"""How long things have been as they are, by the clock of this process.

The idle times of Redis are differences of its wall clock: after that is set back by an hour they
are zero for an hour, and after it is set forward everything is an hour old. A process's monotonic
clock is never set.
"""

import time
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

K = TypeVar("K")

Clock = Callable[[], float]
"""Seconds that never run backwards."""


class AgeTracker(Generic[K]):
    """Remembers since when each of some things has been seen with the same value.

    Args:
        clock: Seconds that never run backwards.
    """

    __slots__ = ("_clock", "_since")

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._since: dict[K, tuple[object, float]] = {}

    def ages(self, values: Mapping[K, object]) -> dict[K, float]:
        """Note the present values, and return for how many seconds each has been seen so.

        What is not among them is forgotten.
        """
        now_s = self._clock()
        before, self._since = self._since, {}
        for key, value in values.items():
            old = before.get(key)
            self._since[key] = old if old and old[0] == value else (value, now_s)
        return {key: now_s - since_s for key, (_, since_s) in self._since.items()}

    def forget(self) -> None:
        """Begin anew."""
        self._since = {}
