"""Likeness of corpora by residual inverse document frequency: the paper's cosine matrices.

A piece that comes in bursts is in fewer documents than one that is spread at random, and by how
much is its weight. A small cosine says that texts share few such pieces. It is no guarantee: the
texts that lie nearest decide what an attacker learns, and even these need not be copies.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Floats, blocks, check_count
from noisefloor.publication.text.documents import Documents
from noisefloor.publication.text.evaluation.features import Sparse, check_texts, piece_counts
from noisefloor.randomness import Source

HEAT = 60
"""Rows and columns of a heat map."""

MOST_TEXTS = 2000
"""Texts of each corpus that are compared, if not said otherwise."""


def residual_idf(documents: Documents, size: int) -> Floats:
    """Return the weight of each piece in a corpus; a piece that no document has weighs 0.

    Formula: ``RIDF(w) = -log2(df / N) + log2(1 - exp(-cf / N))``, df documents that have the
    piece, cf its occurrences, N documents: the observed IDF less that of a Poisson distribution.
    Reference: Church and Gale 1995 (inverse document frequency, a measure of deviations from
    Poisson).
    """
    counts = piece_counts(check_texts("documents", documents, size), size)
    frequency = np.bincount(counts.indices, minlength=size).astype(np.float64)
    occurrences = np.bincount(counts.indices, weights=counts.data, minlength=size)
    weights = np.zeros(size)
    some = frequency > 0
    expected = -np.expm1(-occurrences[some] / documents.count)
    weights[some] = np.log2(expected) - np.log2(frequency[some] / documents.count)
    return weights


def ridf_vectors(documents: Documents, weights: Floats) -> Sparse:
    """Return each document as occurrences times weights, of length one (or 0 if it is empty)."""
    from scipy.sparse import diags

    vectors = (piece_counts(documents, len(weights)) @ diags(weights)).tocsr()
    lengths = np.sqrt(np.asarray(vectors.multiply(vectors).sum(axis=1)).ravel())
    return (diags(1 / np.where(lengths > 0, lengths, 1.0)) @ vectors).tocsr()


def cosines(first: Documents, second: Documents, weights: Floats) -> NDArray[np.float32]:
    """Return the cosine of each text of one corpus with each of another: [first, second]."""
    rows, columns = (ridf_vectors(some, weights) for some in (first, second))
    found = np.empty((first.count, second.count), dtype=np.float32)
    turned = columns.T.tocsc()
    for some in blocks(first.count, max(1, second.count)):
        found[some] = (rows[some] @ turned).toarray()
    return found


@dataclass(frozen=True, slots=True, eq=False)
class CosineSummary:
    """How alike two corpora are, over texts chosen from each.

    Attributes:
        rows: Texts of the first corpus, the real one.
        columns: Texts of the second, the published one.
        mean: Of all cosines.
        maximum: The largest.
        row_maxima: For each real text the cosine with the nearest published one.
        heat_map: Cosines of evenly spaced rows and columns of those, for a figure.
    """

    rows: int
    columns: int
    mean: float
    maximum: float
    row_maxima: Floats = field(repr=False)
    heat_map: NDArray[np.float32] = field(repr=False)

    def as_json(self) -> dict[str, Any]:  # Any: JSON
        """Return the figures as one JSON object, the heat map left out."""
        quantiles = np.quantile(self.row_maxima, [0.5, 0.95]).tolist()
        found = {"rows": self.rows, "columns": self.columns, "mean": self.mean}
        maxima = {"row_maximum_mean": float(self.row_maxima.mean())}
        maxima |= dict(zip(("row_maximum_median", "row_maximum_95"), quantiles, strict=True))
        return {**found, "maximum": self.maximum, **maxima}


def compare_cosines(
    real: Documents,
    published: Documents,
    size: int,
    source: Source,
    most: int = MOST_TEXTS,
) -> CosineSummary:
    """Compare texts chosen from two corpora; weights are those of the whole real corpus.

    Args:
        real: The texts that a generator was trained on.
        published: What it wrote.
        size: Of the vocabulary.
        source: Chooses the texts.
        most: Texts of each corpus.
    """
    check_count(most, "most")
    check_texts("published", published, size)
    weights = residual_idf(real, size)
    chosen = [
        some[np.sort(source.child(name).permutation(some.count)[:most])]
        for name, some in (("real", real), ("published", published))
    ]
    found = cosines(chosen[0], chosen[1], weights)
    picked = [np.arange(min(HEAT, count)) * count // min(HEAT, count) for count in found.shape]
    return CosineSummary(
        rows=found.shape[0],
        columns=found.shape[1],
        mean=float(found.mean(dtype=np.float64)),
        maximum=float(found.max()),
        row_maxima=found.max(axis=1).astype(np.float64),
        heat_map=found[np.ix_(*picked)],
    )
