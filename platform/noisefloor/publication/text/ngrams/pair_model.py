"""A chain of pieces for each label, fitted to noisy counts: what follows what, how often.

Every table of a label has the label's own shares of pieces as its row and column sums: so the
texts that are written have them too, and no piece multiplies by following itself.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.publication.text.ngrams.released_tables import NgramCounts
from noisefloor.publication.text.ngrams.shrinkage import (
    calibrated,
    magnitude_buckets,
    posterior_means,
)
from noisefloor.publication.text.ngrams.table_cells import PairCells

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]

_ROUNDS = 20
"""Of fitting; row and column sums are within a hundredth after some ten."""

_LEAST_PART = 0.05
"""Of what is expected that is left of a count, however small the noise made it."""

_ENDING_PART = 0.05
"""Of how often endings of words follow what they were not seen to follow."""

_TINY = 1e-15


@dataclass(frozen=True, slots=True, eq=False)
class LabelChain:
    """What follows what in the texts of one label.

    Attributes:
        pairs: The weight of each pair of the model.
        rests: The weight of all other pairs after each piece; the start of a text comes last.
        others: The share of each piece among the second pieces of other pairs.
    """

    pairs: Floats
    rests: Floats
    others: Floats


@dataclass(frozen=True, slots=True, eq=False)
class PairModel:
    """Chains of all labels over one list of pairs.

    Attributes:
        before: The first piece of each pair, sorted; the size of the vocabulary is the start.
        pieces: The second piece of each pair, sorted among those of one first piece.
        chains: By label.
        shares: Of each piece, by label.
        lengths: Chances of each bin of lengths, by label.
        documents: How many documents each label had, as estimated.
    """

    before: Counts
    pieces: Counts
    chains: tuple[LabelChain, ...]
    shares: Floats
    lengths: Floats
    documents: Floats

    @property
    def size(self) -> int:
        """How many pieces the vocabulary has."""
        return int(self.shares.shape[1])


def fit_pairs(counts: NgramCounts, continuations: Counts) -> PairModel:
    """Fit chains to noisy counts and public figures, and to nothing else.

    Args:
        counts: As they were released.
        continuations: Pieces that go on with a word. They follow in pairs of the model alone,
            but for a few: any word with any ending is no word.
    """
    cells, estimates = counts.cells, counts.estimates
    pairs, rests = _pooled(counts)
    # The last piece of a text stands before no other.
    ends = counts.lengths.documents.sum() / max(counts.lengths.pieces, 1.0)
    alone = estimates.pooled.copy()
    alone[continuations] *= _ENDING_PART
    chains = [_fitted(cells, pairs, rests, alone, shares, ends) for shares in estimates.by_label]
    return PairModel(
        cells.before,
        cells.pieces,
        tuple(chains),
        estimates.by_label,
        counts.lengths.chances,
        counts.lengths.documents,
    )


def _pooled(counts: NgramCounts) -> tuple[Floats, Floats]:
    """Return the weight of every pair, and of all other pairs after a piece, in all labels."""
    cells = counts.cells
    own, has_rest = cells.is_counted, cells.has_rest
    # Long documents count with a smaller multiplier: the tables say by how much, on the whole.
    scale = (counts.pairs.sum() + counts.rests.sum()) / max(cells.rows[has_rest].sum(), 1.0)
    expected = cells.expected * max(scale, 0.01)
    weights = expected.copy()
    weights[own] = _shrunk(counts.pairs, counts.pair_noise, expected[own])
    size = len(cells.rows)
    counted = np.bincount(cells.before[own], weights[own], size)
    rows = cells.rows * max(scale, 0.01)
    rests = np.maximum(rows - counted, _LEAST_PART * rows)
    rests[has_rest] = _shrunk(counts.rests, counts.rest_noise, rests[has_rest])
    # Pairs that were looked at and not counted take their expected part of the rest.
    uncounted = np.bincount(cells.before[~own], expected[~own], size)
    part = np.minimum(1.0, (1 - _LEAST_PART) * rests / np.maximum(uncounted, _TINY))
    weights[~own] *= part[cells.before[~own]]
    return weights, rests - uncounted * part


def _shrunk(noisy: Floats, noise: Floats, expected: Floats) -> Floats:
    buckets = magnitude_buckets(expected)
    expected = calibrated(noisy, expected, buckets)
    return np.maximum(posterior_means(noisy, noise, expected, buckets), _LEAST_PART * expected)


def _fitted(
    cells: PairCells, pairs: Floats, rests: Floats, alone: Floats, shares: Floats, ends: float
) -> LabelChain:
    """Scale rows and columns in turn until their sums are those of a label.

    Reference: Deming, Stephan 1940, doi 10.1214/aoms/1177731829 (iterative proportional fitting).
    """
    size = len(shares)
    rows = np.append(shares * (1 - ends), ends)
    total = pairs.sum() + rests.sum()
    pairs, rests = pairs / total, rests / total
    others = np.maximum(alone - np.bincount(cells.pieces, pairs, size), _LEAST_PART * alone)
    others /= others.sum()
    for _ in range(_ROUNDS):
        sums = np.bincount(cells.before, pairs, size + 1) + rests
        factors = np.where(sums > 0, rows / np.maximum(sums, _TINY), 0.0)
        pairs, rests = pairs * factors[cells.before], rests * factors
        sums = np.bincount(cells.pieces, pairs, size) + others * rests.sum()
        factors = np.where(sums > 0, shares / np.maximum(sums, _TINY), 0.0)
        pairs, others = pairs * factors[cells.pieces], others * factors
        rests, others = rests * others.sum(), others / others.sum()
    return LabelChain(pairs, rests, others)
