"""Which cells each table has, and how much noise each cell gets; no document is looked at.

The first table follows from the plan. Which cells a later table has, and their scales, follow from
public figures and from the tables that were released before it.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisefloor.publication.text.ngrams.ngram_plan import (
    POOLED_SHIFT,
    NgramPlan,
    scale_exponents,
)
from noisefloor.publication.text.ngrams.noisy_counts import NoisyCounting
from noisefloor.publication.text.ngrams.piece_estimates import LengthEstimates, PieceEstimates
from noisefloor.publication.text.ngrams.public_corpus import PublicCorpus

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
class LengthCells:
    """Cells of lengths by label.

    Attributes:
        bins: How many cells each label has.
        bin_width: How many lengths are counted as one.
        counting: The noise and scale of each cell.
    """

    name: ClassVar[str] = "lengths"

    bins: int
    bin_width: int
    counting: NoisyCounting


@dataclass(frozen=True, slots=True, eq=False)
class PieceCells:
    """Cells of the counted pieces and of all others; then, label by label, the counted again.

    Attributes:
        counted: The pieces that have cells of their own.
        vocabulary: How many pieces there are.
        classes: Of the label.
        counting: The noise and scale of each cell.
    """

    name: ClassVar[str] = "pieces"

    counted: Counts
    vocabulary: int
    classes: int
    counting: NoisyCounting


@dataclass(frozen=True, slots=True, eq=False)
class PairCells:
    """The pairs that are looked at, sorted, and which of them are counted.

    Cells are the counted pairs, then the pieces that have one for all other pairs after them.

    Attributes:
        before: The first piece of each pair; the size of the vocabulary at the start of a text.
        pieces: The second piece of each pair.
        expected: How often each is expected, in counts.
        is_counted: Whether a pair has a cell of its own.
        rows: How often each piece is expected to stand before another; the start comes last.
        has_rest: Whether all other pairs after a piece have a cell together.
        counting: The noise and scale of each cell.
    """

    name: ClassVar[str] = "pairs"

    before: Counts
    pieces: Counts
    expected: Floats
    is_counted: Flags
    rows: Floats
    has_rest: Flags
    counting: NoisyCounting


TableCells: TypeAlias = LengthCells | PieceCells | PairCells
"""The cells of one table."""


def length_cells(plan: NgramPlan) -> LengthCells:
    """Return the cells of lengths: all have the least scale."""
    exponents = np.zeros(plan.classes * plan.bins, dtype=np.int8)
    return LengthCells(plan.bins, plan.bin_width, plan.counting("lengths", exponents))


def piece_cells(plan: NgramPlan, frequencies: Floats, lengths: LengthEstimates) -> PieceCells:
    """Choose the pieces that have cells of their own: those that are frequent in public.

    Args:
        plan: What is counted.
        frequencies: The public share of each piece of the vocabulary.
        lengths: As they were released.
    """
    classes, floor = plan.classes, _PIECE_FLOOR * plan.deviation("pieces")
    expected = frequencies * lengths.pieces
    counted = np.flatnonzero(expected >= floor)
    at = np.append(expected[counted], expected.sum() - expected[counted].sum())
    top = plan.bound("pieces").top
    spread = math.ceil(math.log2(classes * (classes - 1))) if classes > 1 else 0
    exponents = np.concatenate(
        [
            scale_exponents(at, floor, POOLED_SHIFT, top),
            np.tile(scale_exponents(at[:-1], floor, spread, top), classes),
        ]
    )
    counting = plan.counting("pieces", exponents)
    return PieceCells(counted, len(frequencies), classes, counting)


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
    looked = np.union1d(_public_keys(public), _frequent_keys(rows, shares, floor, size))
    before, pieces = looked // size, looked % size
    expected = rows[before] * _chances(public, shares, looked)
    has_rest = rows >= floor
    is_counted = (expected >= floor) & has_rest[before]
    own = np.bincount(before[is_counted], expected[is_counted], size + 1)
    rest = np.maximum(rows - own, 0.05 * rows)[has_rest]
    at = np.concatenate([expected[is_counted], rest])
    counting = plan.counting("pairs", scale_exponents(at, floor, 0, plan.bound("pairs").top))
    return PairCells(before, pieces, expected, is_counted, rows, has_rest, counting)


def _chances(public: PublicCorpus, shares: Floats, looked: Counts) -> Floats:
    """Return how likely the second piece of each pair is after its first one."""
    size = public.size
    before, pieces = looked // size, looked % size
    seen, totals = np.zeros(looked.size), np.zeros(size + 1)
    seen[np.searchsorted(looked, _public_keys(public))] = public.pairs.counts
    totals[public.pairs.contexts] = public.pairs.totals
    weight = _PUBLIC_WEIGHT * totals[before] / (totals[before] + _TRUSTED_AFTER)
    return np.asarray(
        weight * seen / np.maximum(totals[before], 1.0) + (1 - weight) * shares[pieces]
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
