"""Labels and lengths of made-up documents, from noisy counts of lengths by label."""

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import check_count
from noisefloor.randomness import Source

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]


def spread_labels(documents: Floats, count: int) -> Counts:
    """Return labels in the proportions that were estimated, spread evenly.

    Args:
        documents: How many documents each label has, as estimated.
        count: How many labels to return.
    """
    check_count(count, "texts")
    ends = np.round(np.cumsum(documents) / documents.sum() * count)
    return np.searchsorted(ends, np.arange(count), side="right").astype(np.int64)


def draw_lengths(
    chances: Floats, labels: Counts, bin_width: int, longest: int, source: Source
) -> Counts:
    """Draw a length for each label; all lengths of a bin are as likely.

    Args:
        chances: Of each bin of lengths, given the label: [labels, bins].
        labels: Of each document.
        bin_width: How many lengths are in a bin.
        longest: The largest length.
        source: Of the draws.
    """
    running = np.cumsum(chances, axis=1)
    running /= running[:, -1:]
    drawn = source.stage("bins").uniforms(len(labels))
    bins = (drawn[:, None] >= running[labels]).sum(axis=1)
    inside = source.stage("inside").uniforms(len(labels)) * bin_width
    found = bins * bin_width + inside.astype(np.int64) + 1
    return np.asarray(np.minimum(found, longest))
