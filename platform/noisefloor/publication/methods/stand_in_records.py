"""Records that a public schema alone gives: to try a plan on before any real record is touched.

Every value of a feature is equally likely, columns are independent, and the label is drawn by a
logistic law in effects of each value, of a stated strength. Nothing of it is about real records.
"""

import numpy as np
from numpy.typing import NDArray

from noisefloor.randomness import Generator
from noisefloor.tables import OneHot, Records

STRENGTH = 2.0
"""Standard deviation of each class's score: of two classes, 0.8 or so can be predicted right."""


class StandInRecords:
    """A made-up population of a schema, with a label that depends on every column.

    Args:
        encoding: The schema, and which column is the label.
        draw: Of the effects; they are those of all records of this population.
    """

    def __init__(self, encoding: OneHot, draw: Generator) -> None:
        self._encoding = encoding
        scale = STRENGTH / np.sqrt(len(encoding.columns))
        self._effects = [
            _centred(draw.standard_normal((size, encoding.classes))) * scale
            for size in encoding.sizes
        ]

    def records(self, count: int, draw: Generator) -> Records:
        """Draw some records."""
        encoding = self._encoding
        codes = {
            name: draw.integers(0, size, count)
            for name, size in zip(encoding.columns, encoding.sizes, strict=True)
        }
        scores = np.zeros((count, encoding.classes))
        for name, effect in zip(encoding.columns, self._effects, strict=True):
            scores += effect[codes[name]]
        # The largest of scores with Gumbel noise is a draw by their softmax.
        codes[encoding.label] = (scores + draw.gumbel(size=scores.shape)).argmax(axis=1)
        ordered = {name: codes[name].astype(np.int64) for name in encoding.schema.columns}
        return Records(encoding.schema, {}, ordered)


def _centred(effects: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return effects that favour no class on the whole."""
    return np.asarray(effects - effects.mean(axis=0))
