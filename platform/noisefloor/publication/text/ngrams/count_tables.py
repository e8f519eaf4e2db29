"""How often each document has each cell of a table: it follows from that document alone."""

import numpy as np
from numpy.typing import NDArray

from noisefloor.publication.text.documents import Documents
from noisefloor.publication.text.ngrams.noisy_counts import CellCounts
from noisefloor.publication.text.ngrams.public_corpus import followers
from noisefloor.publication.text.ngrams.table_cells import (
    LengthCells,
    PairCells,
    PieceCells,
    TableCells,
)

Counts = NDArray[np.int64]


def count_cells(documents: Documents, cells: TableCells) -> CellCounts:
    """Count how often each document has each cell.

    Args:
        documents: None longer than the plan's longest.
        cells: Of the table.
    """
    if isinstance(cells, LengthCells):
        return _lengths(documents, cells)
    return _pieces(documents, cells) if isinstance(cells, PieceCells) else _pairs(documents, cells)


def _lengths(documents: Documents, cells: LengthCells) -> CellCounts:
    """Count lengths by label: a document is in one cell."""
    bins = np.maximum(documents.lengths - 1, 0) // cells.bin_width
    owners = np.arange(documents.count, dtype=np.int64)
    found = documents.labels * cells.bins + bins
    return CellCounts(owners, found, np.ones_like(owners), documents.count)


def _pieces(documents: Documents, cells: PieceCells) -> CellCounts:
    """Count pieces in all, all others in one cell, and how labels differ: all are moved together.

    The cells of labels get a document's counts times the classes less one, or times minus one.
    Their sum over labels is 0: nothing of the norm is spent on what the pooled cells say.
    """
    size, classes = cells.counted.size, cells.classes
    place = np.full(cells.vocabulary, size, dtype=np.int64)
    place[cells.counted] = np.arange(size)
    pooled = CellCounts.of(documents.owners, place[documents.pieces], documents.count, size + 1)
    own = pooled.cells < size
    owners, found, counts = pooled.owners[own], pooled.cells[own], pooled.counts[own]
    parts = [(pooled.owners, pooled.cells, pooled.counts)]
    for label in range(classes):
        signs = classes * (documents.labels[owners] == label) - 1
        parts.append((owners, size + 1 + label * size + found, counts * signs))
    joined = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return CellCounts(joined[0], joined[1], joined[2], pooled.documents)


def _pairs(documents: Documents, cells: PairCells) -> CellCounts:
    """Count pairs that have cells of their own, and all others by the piece before."""
    size = len(cells.rows) - 1
    keys = cells.before[cells.is_counted] * size + cells.pieces[cells.is_counted]
    with_rest = np.flatnonzero(cells.has_rest)
    place = np.full(size + 1, -1, dtype=np.int64)
    place[with_rest] = keys.size + np.arange(with_rest.size)
    before, pieces = followers(documents, size)
    at = np.minimum(np.searchsorted(keys, before * size + pieces), max(keys.size - 1, 0))
    is_own = keys[at] == before * size + pieces if keys.size else np.zeros(len(pieces), bool)
    found = np.where(is_own, at, place[before])
    has_cell = found >= 0
    return CellCounts.of(
        documents.owners[has_cell],
        found[has_cell],
        documents.count,
        keys.size + with_rest.size,
    )
