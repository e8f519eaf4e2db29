"""Tuples of sampled attributes: which are drawn, how many symbols they have, and the answers."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from noisefloor.errors import BadParameter
from noisefloor.laws import ONE
from noisefloor.mechanisms.randomised_response import KaryResponse, Responder
from noisefloor.randomness import Source

MOST_SYMBOLS = 1 << 31
_MOST_SPACES = 1 << 10

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Responders:
    """A response for each number of symbols, each with streams of its own.

    Attributes:
        epsilon: Of each response.
        source: Of all coins.
        opened: Those that have answered.
    """

    epsilon: float
    source: Source
    opened: dict[int, Responder] = field(default_factory=dict)

    def __call__(self, symbols: Integers, spaces: Integers) -> Integers:
        """Answer for a block of owners; those of one space keep their order."""
        answers = np.empty_like(symbols)
        for space in np.unique(spaces).tolist():
            some = np.flatnonzero(spaces == space)
            answers[some] = self._responder(space)(symbols[some])
        return answers

    def _responder(self, space: int) -> Responder:
        if space not in self.opened:
            stage = self.source.stage("response", space)
            self.opened[space] = response_over(space, self.epsilon).responder(stage)
        return self.opened[space]


@lru_cache(maxsize=256)
def response_over(space: int, epsilon: float) -> KaryResponse:
    """Return the response over so many symbols; its law is a table, so it is kept."""
    return KaryResponse(space, epsilon)


def kept_share(response: KaryResponse) -> float:
    """Return keep - lie: a report is the truth with this share, and even noise with the rest."""
    others = response.size - 1
    return (response.keep * others - (ONE - response.keep)) / (ONE * others)


def spaces_of(sizes: tuple[int, ...], chosen: int, labels: int) -> tuple[int, ...]:
    """Return every number of symbols that a draw of attributes can lead to."""
    reached: list[set[int]] = [{labels}, *(set() for _ in range(chosen))]
    for size, times in Counter(sizes).items():
        for taken in reversed(range(chosen)):
            for more in range(1, min(times, chosen - taken) + 1):
                reached[taken + more] |= {space * size**more for space in reached[taken]}
        if len(reached[chosen]) > _MOST_SPACES:
            raise BadParameter("chosen", chosen, "fewer: too many different numbers of symbols")
    if max(reached[chosen]) > MOST_SYMBOLS:
        rule = f"fewer: a tuple may be one of {MOST_SYMBOLS} symbols at most"
        raise BadParameter("chosen", chosen, rule)
    return tuple(sorted(reached[chosen]))


def subsets(draw: Sequence[Source], attributes: int, count: int) -> NDArray[np.uint16]:
    """Draw subsets, each equally likely, in increasing order (Floyd's way).

    The i-th draw is below ``attributes - chosen + i + 1``; what was drawn before becomes the
    largest number that this draw could give, which cannot have come before.
    """
    chosen = len(draw)
    subsets = np.empty((count, chosen), dtype=np.uint16)
    for place, stage in enumerate(draw):
        last = attributes - chosen + place
        drawn = stage.below(last + 1, count).astype(np.uint16)
        again = (subsets[:, :place] == drawn[:, None]).any(axis=1)
        subsets[:, place] = np.where(again, last, drawn)
    subsets.sort(axis=1)
    return subsets
