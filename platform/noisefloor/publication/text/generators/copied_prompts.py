"""Labels, seeds and lengths as the paper takes them from the private documents: no guarantee."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from noisefloor.publication.text.documents import Documents
from noisefloor.randomness import Source


class Prompts(NamedTuple):
    """What each text starts from.

    Attributes:
        labels: Of each text.
        seeds: The first piece, of the tokeniser.
        lengths: Pieces of each text.
    """

    labels: NDArray[np.int64]
    seeds: NDArray[np.int32]
    lengths: NDArray[np.int64]


def copied_prompts(documents: Documents, source: Source) -> Prompts:
    """Return one prompt for each document that is not empty, by the paper's Algorithm 2.

    Labels and lengths are the document's own. A seed is drawn from all pieces of the documents of
    its label, each as often as it occurs: a piece that occurs c times among n comes up among d
    texts with probability 1 - (1 - c/n)**d, and never if it does not occur.

    Guarantee:  none: epsilon is infinite for seeds and for lengths.
    Neighbours: one document there or not.
    Domain:     any documents.
    Reference:  the paper's Algorithm 2 and equation (3), read as a categorical distribution.
    """
    own = documents[documents.lengths > 0]
    seeds = np.zeros(own.count, dtype=np.int32)
    labels_of_pieces = own.labels[own.owners]
    for label in np.unique(own.labels):
        rows = np.flatnonzero(own.labels == label)
        pieces = own.pieces[labels_of_pieces == label]
        seeds[rows] = pieces[source.stage("seeds", int(label)).below(len(pieces), len(rows))]
    return Prompts(own.labels.copy(), seeds, own.lengths)
