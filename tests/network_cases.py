"""Small networks and examples for tests of what is published."""

import numpy as np

from noisefloor.publication.networks.dense import DenseNetwork, NetworkShape
from noisefloor.randomness import SeededSource, Source, Words
from noisefloor.tables.one_hot import Examples

SILENT = (1 << 63) - 1
"""The word that the float Laplace distribution turns into no noise at all."""


class Silent(Source):
    """Gives one word for ever: by default the one that means no noise."""

    def __init__(self, word: int = SILENT) -> None:
        self._word = word

    def words(self, count: int) -> Words:
        return np.full(count, self._word, dtype=np.uint64)

    def stage(self, *name: str | int) -> Source:
        return self

    def _spare(self, *name: str | int) -> Source:
        return self


def random_network(shape: NetworkShape, seed: int, size: float = 1.0) -> DenseNetwork:
    """Return a network whose parameters are normal numbers, biases too."""
    draw = SeededSource(seed, "network").generator()
    return DenseNetwork(shape, (size * draw.standard_normal(shape.count)).astype(np.float32))


def examples_of(count: int, features: int, classes: int) -> Examples:
    """Return examples in [0, 1] whose class is that of the largest of the first features."""
    draw = SeededSource(7, "examples").generator()
    rows = draw.random((count, features)).astype(np.float32)
    return Examples(rows, np.argmax(rows[:, :classes], axis=1), classes)
