"""Counts lengths, pieces and pairs of documents, each table once, with the noise of a plan.

Documents are read here and in ``count_tables`` alone; what leaves is noisy tables.
"""

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from noisefloor.errors import BadParameter
from noisefloor.publication.noised_vectors import NoisedVector, ResidualObserver
from noisefloor.publication.text.documents import Documents
from noisefloor.publication.text.ngrams.count_tables import count_cells
from noisefloor.publication.text.ngrams.ngram_plan import NgramPlan
from noisefloor.publication.text.ngrams.public_corpus import PublicCorpus
from noisefloor.publication.text.ngrams.released_tables import (
    NgramCounts,
    ReleasedTables,
    ngram_tables,
    piece_tables,
    read_ngrams,
)
from noisefloor.publication.text.ngrams.table_cells import TableCells
from noisefloor.randomness import Source

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]


def release_ngrams(
    documents: Documents,
    plan: NgramPlan,
    public: PublicCorpus,
    source: Source,
    residuals: ResidualObserver | None = None,
) -> ReleasedTables:
    """Count documents with the noise of a plan; each call is a release of its own.

    Args:
        documents: None longer than the plan's longest.
        plan: What is counted, with how much noise.
        public: Says what is frequent.
        source: Of the noise.
        residuals: For simulations alone: gets each table before and after its noise.
    """
    return _released(
        documents, plan, lambda so_far: ngram_tables(plan, public, so_far), source, residuals
    )


def release_pieces(
    documents: Documents,
    plan: NgramPlan,
    frequencies: Floats,
    source: Source,
    residuals: ResidualObserver | None = None,
) -> ReleasedTables:
    """Count lengths and pieces alone; as ``release_ngrams``, of a plan without pairs.

    Args:
        documents: None longer than the plan's longest.
        plan: What is counted, with how much noise.
        frequencies: The public share of each piece of the vocabulary.
        source: Of the noise.
        residuals: For simulations alone.
    """
    return _released(
        documents, plan, lambda so_far: piece_tables(plan, frequencies, so_far), source, residuals
    )


def count_ngrams(
    documents: Documents,
    plan: NgramPlan,
    public: PublicCorpus,
    source: Source,
    residuals: ResidualObserver | None = None,
) -> NgramCounts:
    """Return what the tables of a release say; for the arguments see ``release_ngrams``."""
    released = release_ngrams(documents, plan, public, source, residuals)
    return read_ngrams(plan, public, released)


def _released(
    documents: Documents,
    plan: NgramPlan,
    tables: Callable[[ReleasedTables], Iterable[TableCells]],
    source: Source,
    residuals: ResidualObserver | None,
) -> ReleasedTables:
    if documents.count and documents.lengths.max() > plan.longest:
        raise BadParameter("documents", "<documents>", f"of at most {plan.longest} pieces")
    released: dict[str, Counts] = {}
    for cells in tables(released):
        clean = cells.counting.sums(count_cells(documents, cells))
        noisy = clean + cells.counting.noise(source.child(cells.name))
        if residuals is not None:
            residuals(_watched(cells, clean, noisy))
        released[cells.name] = noisy
    return released


def _watched(cells: TableCells, clean: Counts, noisy: Counts) -> NoisedVector:
    return NoisedVector(
        cells.name,
        noisy.astype(np.float64),
        clean.astype(np.float64),
        unit=cells.counting.units,
    )
