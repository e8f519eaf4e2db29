"""The tables that are counted: which cells they have, and how often each document has each cell.

Which cells there are follows from public figures and from the noisy tables before them; how often
a document has them follows from that document alone.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.publication.text.documents import Documents
from noisefloor.publication.text.ngrams.ngram_plan import (
    POOLED_SHIFT,
    NgramPlan,
    scale_exponents,
)
from noisefloor.publication.text.ngrams.noisy_counts import CellCounts, NoisyCounting
from noisefloor.publication.text.ngrams.piece_estimates import LengthEstimates, PieceEstimates
from noisefloor.publication.text.ngrams.public_corpus import PublicCorpus, followers

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_PIECE_FLOOR, _PAIR_FLOOR = 2.0, 1.7
"""A cell is counted if it is expected to be this many times the noise of the rarest one."""

_PUBLIC_WEIGHT = 0.7
_TRUSTED_AFTER = 20.0
"""Public pairs after a piece weigh half of their most once it was seen this often in public."""

_MOST_FREQUENT = 4096
"""Pieces of which all pairs are looked at."""


@dataclass(frozen=True, slots=True, eq=False)
class CountedTable:
    """A table that noise is yet to be added to.

    Attributes:
        counting: The noise and scale of each cell.
        found: How often each document has each cell.
    """

    counting: NoisyCounting
    found: CellCounts


@dataclass(frozen=True, slots=True, eq=False)
class PairCells:
    """The pairs that are looked at, sorted, and which of them are counted.

    Attributes:
        before: The first piece of each pair; the size of the vocabulary at the start of a text.
        pieces: The second piece of each pair.
        expected: How often each is expected, in counts.
        is_counted: Whether a pair has a cell of its own.
        rows: How often each piece is expected to stand before another; the start comes last.
        has_rest: Whether all other pairs after a piece have a cell together.
    """

    before: Counts
    pieces: Counts
    expected: Floats
    is_counted: Flags
    rows: Floats
    has_rest: Flags


def length_table(documents: Documents, plan: NgramPlan) -> CountedTable:
    """Count lengths by label: a document is in one cell."""
    bins = np.maximum(documents.lengths - 1, 0) // plan.bin_width
    cells = documents.labels * plan.bins + bins
    owners = np.arange(documents.count, dtype=np.int64)
    found = CellCounts(owners, cells, np.ones_like(owners), documents.count)
    exponents = np.zeros(plan.classes * plan.bins, dtype=np.int8)
    return CountedTable(plan.counting("lengths", exponents), found)


def counted_pieces(plan: NgramPlan, frequencies: Floats, lengths: LengthEstimates) -> Counts:
    """Return the pieces that have cells of their own: those that are frequent in public."""
    floor = _PIECE_FLOOR * plan.deviation("pieces")
    return np.flatnonzero(frequencies * lengths.pieces >= floor)


def piece_table(
    documents: Documents,
    plan: NgramPlan,
    frequencies: Floats,
    lengths: LengthEstimates,
    counted: Counts,
) -> CountedTable:
    """Count pieces in all, all others in one cell, and how labels differ: all are moved together.

    Cells are the counted pieces and the others; then, label by label, the counted pieces again.
    """
    classes, floor = plan.classes, _PIECE_FLOOR * plan.deviation("pieces")
    expected = frequencies * lengths.pieces
    place = np.full(len(frequencies), counted.size, dtype=np.int64)
    place[counted] = np.arange(counted.size)
    at = np.append(expected[counted], expected.sum() - expected[counted].sum())
    top = plan.bound("pieces").top
    spread = math.ceil(math.log2(classes * (classes - 1))) if classes > 1 else 0
    exponents = np.concatenate(
        [
            scale_exponents(at, floor, POOLED_SHIFT, top),
            np.tile(scale_exponents(at[:-1], floor, spread, top), classes),
        ]
    )
    pooled = CellCounts.of(
        documents.owners, place[documents.pieces], documents.count, counted.size + 1
    )
    found = _with_contrasts(pooled, documents.labels, counted.size, classes)
    return CountedTable(plan.counting("pieces", exponents), found)


def _with_contrasts(pooled: CellCounts, labels: Counts, size: int, classes: int) -> CellCounts:
    """Add the cells of labels: a document's counts times the classes less one, or times minus one.

    Their sum over labels is 0: nothing of the norm is spent on what the pooled cells say.
    """
    own = pooled.cells < size
    owners, cells, counts = pooled.owners[own], pooled.cells[own], pooled.counts[own]
    parts = [(pooled.owners, pooled.cells, pooled.counts)]
    for label in range(classes):
        signs = classes * (labels[owners] == label) - 1
        parts.append((owners, size + 1 + label * size + cells, counts * signs))
    joined = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return CellCounts(joined[0], joined[1], joined[2], pooled.documents)


def pair_cells(
    plan: NgramPlan, public: PublicCorpus, lengths: LengthEstimates, estimates: PieceEstimates
) -> PairCells:
    """Choose the pairs that are worth a count: frequent in public, or if pieces were independent.

    A pair of two frequent pieces is counted even where it is rare: else it would be made up as
    often as independence has it, and give the texts away.
    """
    size, floor = public.size, _PAIR_FLOOR * plan.deviation("pairs")
    shares = estimates.pooled
    rows = np.append(shares * lengths.pieces, lengths.documents.sum())
    keys = _public_keys(public)
    alone = _frequent_keys(rows, shares, floor, size)
    looked = np.union1d(keys, alone)
    before, pieces = looked // size, looked % size
    seen = np.zeros(looked.size)
    seen[np.searchsorted(looked, keys)] = public.pairs.counts
    totals = np.zeros(size + 1)
    totals[public.pairs.contexts] = public.pairs.totals
    weight = _PUBLIC_WEIGHT * totals[before] / (totals[before] + _TRUSTED_AFTER)
    chances = weight * seen / np.maximum(totals[before], 1.0) + (1 - weight) * shares[pieces]
    expected = rows[before] * chances
    has_rest = rows >= floor
    return PairCells(
        before, pieces, expected, (expected >= floor) & has_rest[before], rows, has_rest
    )


def _public_keys(public: PublicCorpus) -> Counts:
    contexts = np.repeat(public.pairs.contexts, np.diff(public.pairs.starts))
    return contexts * public.size + public.pairs.pieces


def _frequent_keys(rows: Floats, shares: Floats, floor: float, size: int) -> Counts:
    """Return the pairs that would be frequent if pieces were independent."""
    frequent = np.flatnonzero(shares * rows.max() >= floor)
    if frequent.size > _MOST_FREQUENT:
        frequent = np.sort(frequent[np.argsort(-shares[frequent], kind="stable")][:_MOST_FREQUENT])
    before = np.append(frequent, size)
    first, second = np.nonzero(np.outer(rows[before], shares[frequent]) >= floor)
    return before[first] * size + frequent[second]


def pair_table(documents: Documents, plan: NgramPlan, cells: PairCells) -> CountedTable:
    """Count pairs that have cells of their own, and all others by the piece before.

    Cells are the counted pairs, then the pieces that have one for all other pairs after them.
    """
    size = len(cells.rows) - 1
    chosen = np.flatnonzero(cells.is_counted)
    keys = cells.before[chosen] * size + cells.pieces[chosen]
    with_rest = np.flatnonzero(cells.has_rest)
    place = np.full(size + 1, -1, dtype=np.int64)
    place[with_rest] = keys.size + np.arange(with_rest.size)
    before, pieces = followers(documents, size)
    found = np.minimum(np.searchsorted(keys, before * size + pieces), max(keys.size - 1, 0))
    is_own = keys[found] == before * size + pieces if keys.size else np.zeros(len(pieces), bool)
    cell = np.where(is_own, found, place[before])
    is_counted = cell >= 0
    counts = CellCounts.of(
        documents.owners[is_counted],
        cell[is_counted],
        documents.count,
        keys.size + with_rest.size,
    )
    own = np.bincount(cells.before[chosen], cells.expected[chosen], size + 1)
    rest = np.maximum(cells.rows - own, 0.05 * cells.rows)[with_rest]
    floor = _PAIR_FLOOR * plan.deviation("pairs")
    at = np.concatenate([cells.expected[chosen], rest])
    exponents = scale_exponents(at, floor, 0, plan.bound("pairs").top)
    return CountedTable(plan.counting("pairs", exponents), counts)
