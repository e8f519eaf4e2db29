"""Sources that give the words they were told to, and numbers laid out as draws read them."""

from collections.abc import Mapping, Sequence

import numpy as np

from noisefloor.distributions import ONE
from noisefloor.randomness import Source, Words

Name = tuple[str | int, ...]


class Redrawn(Exception):
    """A draw was rejected, and more was asked for than was scripted."""


class Scripted(Source):
    """Gives the words it was told to, in order; asking for more raises ``Redrawn``."""

    def __init__(
        self, words: Sequence[int], spares: Mapping[Name, Sequence[int]] | None = None
    ) -> None:
        self._left = list(words)
        self._spares = {name: Scripted(script) for name, script in (spares or {}).items()}

    @property
    def is_used_up(self) -> bool:
        return not self._left and all(spare.is_used_up for spare in self._spares.values())

    def words(self, count: int) -> Words:
        if count > len(self._left):
            raise Redrawn
        given, self._left = self._left[:count], self._left[count:]
        return np.array(given, dtype=np.uint64)

    def stage(self, *name: str | int) -> Source:
        return self

    def _spare(self, *name: str | int) -> Source:
        return self._spares.setdefault(name, Scripted(()))


class Zeros(Scripted):
    """A source that is not random at all."""

    def __init__(self) -> None:
        super().__init__(())

    def words(self, count: int) -> Words:
        return np.zeros(count, dtype=np.uint64)

    def _spare(self, *name: str | int) -> Source:
        return self


def packed(values: Sequence[int], dtype: type[np.unsignedinteger]) -> list[int]:
    """Lay small integers out in words, in the order in which a draw reads them."""
    array = np.array(values, dtype=dtype)
    padded = np.pad(array, (0, -array.size % (8 // array.itemsize)))
    return [int(word) for word in padded.view(np.uint64)]


def rest_of(draws: Sequence[int], bits: int) -> list[int]:
    """Return tie words that hold the low bits of draws, with rubbish in the bits below them."""
    rubbish = (1 << (64 - bits)) - 1
    return [
        (draw % (1 << bits)) << (64 - bits) | (rubbish if place % 2 else 0)
        for place, draw in enumerate(draws)
    ]


def around(*centres: int) -> list[int]:
    """Return the 64-bit numbers at, just below and just above each centre, and the extremes."""
    near = {centre + step for centre in centres for step in (-1, 0, 1)}
    return sorted(number for number in near | {0, ONE - 1} if 0 <= number < ONE)
