"""How frequent each piece is, in all and by label, as estimated from noisy tables."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.publication.text.ngrams.shrinkage import (
    calibrated,
    magnitude_buckets,
    posterior_means,
)

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]

_LEAST_SHARE = 0.05
"""Of an even part of a piece that each label has at least: no piece belongs to one label alone."""


@dataclass(frozen=True, slots=True, eq=False)
class LengthEstimates:
    """How long documents are, by label.

    Attributes:
        chances: Of each bin of lengths, given the label: [classes, bins].
        documents: Of each label.
        pieces: In all documents.
    """

    chances: Floats
    documents: Floats
    pieces: float

    @classmethod
    def of(cls, noisy: Counts, width: int, longest: int) -> "LengthEstimates":
        """Read noisy counts of lengths: what is below 0 is 0, and no label is without documents.

        Args:
            noisy: By label and bin.
            width: How many lengths a bin has.
            longest: The largest length.
        """
        counts = np.maximum(noisy, 0).astype(np.float64)
        empty = counts.sum(axis=1) == 0
        counts[empty] = 1.0  # nothing is known of this label: any length
        documents = counts.sum(axis=1)
        ends = np.minimum((np.arange(counts.shape[1]) + 1) * width, longest)
        middles = (ends + np.arange(counts.shape[1]) * width + 1) / 2
        pieces = float((counts * middles).sum())
        return cls(counts / documents[:, None], documents, pieces)


@dataclass(frozen=True, slots=True, eq=False)
class PieceEstimates:
    """How frequent pieces are.

    Attributes:
        pooled: The share of each piece of the vocabulary, in all labels together.
        by_label: The share of each piece among those of a label: [classes, vocabulary].
        counted: The pieces that had cells of their own.
    """

    pooled: Floats
    by_label: Floats
    counted: Counts

    @classmethod
    def of(
        cls,
        counted: Counts,
        pooled: Floats,
        pooled_noise: Floats,
        contrasts: Floats,
        contrast_noise: Floats,
        public: Floats,
        documents: Floats,
    ) -> "PieceEstimates":
        """Estimate shares from noisy counts and public frequencies.

        Args:
            counted: The pieces that have cells of their own.
            pooled: Noisy counts of these in all labels, and of all other pieces at the end.
            pooled_noise: Variance of the noise of each.
            contrasts: By label, noisy counts times the number of labels less the count in all.
            contrast_noise: Variance of the noise of each.
            public: The public share of each piece of the vocabulary.
            documents: How many documents each label has.
        """
        classes = len(documents)
        total = max(float(pooled.sum()), 1.0)
        expected = public[counted] * total
        buckets = magnitude_buckets(expected)
        expected = calibrated(pooled[:-1], expected, buckets)
        counts = posterior_means(pooled[:-1], pooled_noise[:-1], expected, buckets)
        counts = np.maximum(counts, 0.1 * expected)
        gaps = np.stack(
            [
                posterior_means(noisy, noise, np.zeros(len(counted)), buckets)
                for noisy, noise in zip(contrasts, contrast_noise, strict=True)
            ]
        )
        gaps -= gaps.mean(axis=0)
        parts = np.maximum(counts + gaps, _LEAST_SHARE * counts) / classes
        others = max(float(pooled[-1]), 0.0)
        return cls(*_shares(counted, parts, others, public, documents), counted)


def _shares(
    counted: Counts, parts: Floats, others: float, public: Floats, documents: Floats
) -> tuple[Floats, Floats]:
    """Spread what pieces without cells have by their public shares, the same under each label.

    Where no piece is counted and noise took all of the others, public shares are all there is.
    """
    if not counted.size and not others:
        others = 1.0
    rest = public.copy()
    rest[counted] = 0.0
    rest *= others / max(rest.sum(), 1e-12)
    weights = documents / documents.sum()
    by_label = weights[:, None] * rest
    by_label[:, counted] = parts
    pooled = by_label.sum(axis=0)
    return pooled / pooled.sum(), by_label / by_label.sum(axis=1, keepdims=True)
