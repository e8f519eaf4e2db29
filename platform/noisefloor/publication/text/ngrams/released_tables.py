"""What released tables say: all that is published follows from them, the plan and public text.

No function here takes a document. A release adds noise to one table after the other and publishes
what these functions make of the noisy tables; whoever has the tables can do it again, and an audit
does. So nothing else of the documents can reach what is published without being seen.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisefloor.errors import BadParameter
from noisefloor.publication.text.ngrams.ngram_plan import NgramPlan
from noisefloor.publication.text.ngrams.piece_estimates import LengthEstimates, PieceEstimates
from noisefloor.publication.text.ngrams.public_corpus import PublicCorpus
from noisefloor.publication.text.ngrams.table_cells import (
    LengthCells,
    PairCells,
    PieceCells,
    TableCells,
    length_cells,
    pair_cells,
    piece_cells,
)

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]

ReleasedTables: TypeAlias = Mapping[str, Counts]
"""Noisy tables by their names, in units of the grid, as they were released."""


@dataclass(frozen=True, slots=True, eq=False)
class PieceCounts:
    """What was counted without pairs, after its noise.

    Attributes:
        lengths: How long documents are.
        estimates: How frequent pieces are.
    """

    lengths: LengthEstimates
    estimates: PieceEstimates


@dataclass(frozen=True, slots=True, eq=False)
class NgramCounts:
    """What was counted, after its noise.

    Attributes:
        lengths: How long documents are.
        estimates: How frequent pieces are.
        cells: The pairs that were looked at.
        pairs: Noisy counts of those that are counted, in counts.
        pair_noise: Variance of the noise of each.
        rests: Noisy counts of all other pairs after a piece, where they have a cell.
        rest_noise: Variance of the noise of each.
    """

    lengths: LengthEstimates
    estimates: PieceEstimates
    cells: PairCells
    pairs: Floats
    pair_noise: Floats
    rests: Floats
    rest_noise: Floats


def piece_tables(
    plan: NgramPlan, frequencies: Floats, released: ReleasedTables
) -> Iterator[LengthCells | PieceCells]:
    """Yield the cells of lengths and of pieces; as ``ngram_tables``, without pairs.

    Args:
        plan: What is counted, with how much noise.
        frequencies: The public share of each piece of the vocabulary.
        released: The tables so far.
    """
    yield length_cells(plan)
    yield piece_cells(plan, frequencies, _read_lengths(plan, released))


def ngram_tables(
    plan: NgramPlan, public: PublicCorpus, released: ReleasedTables
) -> Iterator[TableCells]:
    """Yield the cells of each table in turn.

    Args:
        plan: What is counted, with how much noise.
        public: Says what is frequent.
        released: The tables so far: each has to be there before the next one.
    """
    yield from piece_tables(plan, public.frequencies, released)
    known = read_pieces(plan, public.frequencies, released)
    yield pair_cells(plan, public, known.lengths, known.estimates)


def read_pieces(plan: NgramPlan, frequencies: Floats, released: ReleasedTables) -> PieceCounts:
    """Return what tables of lengths and pieces say.

    Args:
        plan: What was counted, with how much noise.
        frequencies: The public share of each piece of the vocabulary.
        released: The noisy tables.
    """
    lengths = _read_lengths(plan, released)
    cells = piece_cells(plan, frequencies, lengths)
    noisy, noise = _in_counts(cells, released)
    cut, shape = cells.counted.size + 1, (plan.classes, cells.counted.size)
    estimates = PieceEstimates.of(
        cells.counted,
        noisy[:cut],
        noise[:cut],
        noisy[cut:].reshape(shape),
        noise[cut:].reshape(shape),
        frequencies,
        lengths.documents,
    )
    return PieceCounts(lengths, estimates)


def read_ngrams(plan: NgramPlan, public: PublicCorpus, released: ReleasedTables) -> NgramCounts:
    """Return what all tables say.

    Args:
        plan: What was counted, with how much noise.
        public: Says what is frequent.
        released: The noisy tables.
    """
    known = read_pieces(plan, public.frequencies, released)
    cells = pair_cells(plan, public, known.lengths, known.estimates)
    noisy, noise = _in_counts(cells, released)
    cut = int(cells.is_counted.sum())
    return NgramCounts(
        known.lengths,
        known.estimates,
        cells,
        noisy[:cut],
        noise[:cut],
        noisy[cut:],
        noise[cut:],
    )


def _read_lengths(plan: NgramPlan, released: ReleasedTables) -> LengthEstimates:
    noisy, _ = _in_counts(length_cells(plan), released)
    by_label = noisy.astype(np.int64).reshape(plan.classes, plan.bins)
    return LengthEstimates.of(by_label, plan.bin_width, plan.longest)


def _in_counts(cells: TableCells, released: ReleasedTables) -> tuple[Floats, Floats]:
    """Return a table in counts, and the variance of the noise of each."""
    noisy, counting = released[cells.name], cells.counting
    if len(noisy) != counting.size:
        raise BadParameter(cells.name, len(noisy), f"a table of {counting.size} cells")
    return noisy / counting.bound.grid, counting.deviations**2
