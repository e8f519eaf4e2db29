"""Features of texts for classifiers, as sparse matrices: a row for each document.

All matrices are ``scipy.sparse.csr_matrix``; scipy is imported on first use.
"""

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import check_count
from noisefloor.errors import BadParameter
from noisefloor.publication.text.documents import Documents

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    Sparse: TypeAlias = csr_matrix
else:
    Sparse: TypeAlias = Any

HASH_BITS = 18
"""Bigrams are hashed to 2**18 columns: about a tenth of 300,000 different ones share theirs."""

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


def check_texts(name: str, documents: Documents, size: int, least: int = 1) -> Documents:
    """Return documents of a vocabulary, or refuse too few of them or pieces beyond it.

    Args:
        name: Of the parameter, for the error.
        documents: Any; a document may be empty.
        size: Of the vocabulary.
        least: How many documents there have to be.
    """
    check_count(size, "size")
    if documents.count < least:
        raise BadParameter(name, f"<{documents.count} documents>", f"at least {least}")
    pieces = documents.pieces
    if len(pieces) and not 0 <= int(pieces.min()) <= int(pieces.max()) < size:
        raise BadParameter(name, "<pieces>", f"pieces of a vocabulary of {size}")
    return documents


def piece_counts(documents: Documents, size: int) -> Sparse:
    """Return how often each piece occurs in each document: [documents, size]."""
    check_texts("documents", documents, size, least=0)
    return _counted(documents.owners, documents.pieces, (documents.count, size))


def piece_presence(documents: Documents, size: int) -> Sparse:
    """Return 1 for each piece that a document has: [documents, size]."""
    return _as_presence(piece_counts(documents, size))


def pair_presence(documents: Documents, size: int) -> Sparse:
    """Return 1 for each piece and each hashed bigram that a document has, side by side.

    The hash is one of its own, a multiplication: columns are the same on every machine.
    """
    from scipy.sparse import hstack

    inside = np.diff(documents.owners) == 0
    pieces = documents.pieces.astype(np.uint64)
    keys = pieces[:-1][inside] * np.uint64(size) + pieces[1:][inside]
    columns = (keys * _MULTIPLIER) >> np.uint64(64 - HASH_BITS)
    owners = documents.owners[:-1][inside]
    bigrams = _counted(owners, columns, (documents.count, 1 << HASH_BITS))
    return hstack([piece_presence(documents, size), _as_presence(bigrams)], format="csr")


def _counted(owners: NDArray[Any], columns: NDArray[Any], shape: tuple[int, int]) -> Sparse:
    """Return how often each column occurs in each row, without Python's loops."""
    from scipy.sparse import csr_matrix

    keys, counts = np.unique(owners * shape[1] + columns.astype(np.int64), return_counts=True)
    rows = np.searchsorted(keys, np.arange(shape[0] + 1) * shape[1])
    values = counts.astype(np.float64)
    return csr_matrix((values, keys % shape[1], rows), shape=shape)


def _as_presence(counts: Sparse) -> Sparse:
    counts.data[:] = 1.0
    return counts
