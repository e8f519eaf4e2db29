"""Tables as an overfitting learner wants them: one-hot, and where in its bin each number lies."""

import numpy as np
from numpy.typing import NDArray

from noisefloor.publication.examples import Examples, OneHot
from noisefloor.publication.records import Records
from noisefloor.publication.schema import Bins


def fine_examples(records: Records, label: str) -> Examples:
    """Return one-hot examples with a feature more for each column of numbers.

    Bins alone make many records alike, and what is alike cannot be learnt by heart. The places
    follow from the public edges, so nothing is taken from the data.
    """
    one_hot = OneHot(records.schema, label)
    coarse = one_hot.examples(records)
    places = [_places(records, name) for name in one_hot.columns if _is_cut(records, name)]
    features = np.column_stack([coarse.features, *places]).astype(np.float32)
    return Examples(features, coarse.labels, coarse.classes)


def _is_cut(records: Records, name: str) -> bool:
    return isinstance(records.schema.column(name), Bins)


def _places(records: Records, name: str) -> NDArray[np.float64]:
    """Return how far up its bin each value lies, in [0, 1]."""
    column = records.schema.column(name)
    edges = np.array(column.edges if isinstance(column, Bins) else (), dtype=np.float64)
    code = records.codes[name]
    low, high = edges[code], edges[code + 1]
    return np.asarray((records.values[name].astype(np.float64) - low) / (high - low))
