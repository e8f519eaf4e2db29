"""Random bits for everything that protects a real person."""

import os

import numpy as np

from noisefloor.randomness.source import Source, Words


class SecureSource(Source):
    """Random bits from the operating system, read on demand and never kept.

    Nothing is buffered, so nothing is shared across a fork and nothing can be replayed.
    """

    __slots__ = ()

    def words(self, count: int) -> Words:
        """Return ``count`` words of OS entropy."""
        # A bytearray makes the array writable without a copy of its own.
        return np.frombuffer(bytearray(os.urandom(8 * count)), dtype=np.uint64)

    def stage(self, *name: str | int) -> Source:
        """Return this source: OS entropy needs no names."""
        return self

    def _spare(self, *name: str | int) -> Source:
        return self
