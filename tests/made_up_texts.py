"""Made-up texts as pieces: classes and authors with words of their own, from a Markov chain."""

import numpy as np
from numpy.typing import NDArray

from noisefloor.publication.text import Documents
from noisefloor.randomness import SeededSource

SIZE = 200
"""Pieces of the made-up vocabulary."""

LENGTH = 20


def documents_of(rows: list[list[int]], labels: list[int] | None = None) -> Documents:
    """Return documents of given pieces."""
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    pieces = np.array([piece for row in rows for piece in row], dtype=np.int32)
    return Documents(pieces, offsets, np.array(labels or [0] * len(rows), dtype=np.int64))


def same_length(rows: NDArray[np.integer], labels: NDArray[np.integer]) -> Documents:
    """Return documents, one a row of a matrix."""
    offsets = np.arange(len(rows) + 1) * rows.shape[1]
    return Documents(rows.reshape(-1).astype(np.int32), offsets, labels.astype(np.int64))


def class_texts(
    count: int, seed: int, *path: str, classes: int = 2, pull: float = 0.3
) -> Documents:
    """Return texts of classes in turn, each with a share of pieces of its class alone.

    A piece follows from the one before it with probability one half, so bigrams matter.
    """
    draw = SeededSource(seed, "texts", *path).generator()
    labels = np.arange(count) % classes
    rows = np.empty((count, LENGTH), dtype=np.int64)
    own = SIZE // (4 * classes)
    for place in range(LENGTH):
        common = own * classes + (draw.random(count) ** 2 * (SIZE - own * classes)).astype(int)
        special = labels * own + draw.integers(0, own, count)
        fresh = np.where(draw.random(count) < pull, special, common)
        if place:
            followed = own * classes + (7 * rows[:, place - 1] + 3) % (SIZE - own * classes)
            fresh = np.where(draw.random(count) < 0.5, followed, fresh)
        rows[:, place] = fresh
    return same_length(rows, labels)


def shuffled(documents: Documents, seed: int) -> Documents:
    """Return texts of the same pieces in random places: unigrams without grammar."""
    order = SeededSource(seed, "shuffled").permutation(len(documents.pieces))
    return Documents(documents.pieces[order], documents.offsets, documents.labels)
