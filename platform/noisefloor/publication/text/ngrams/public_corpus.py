"""What is known in public of a language: pieces, pairs and triples of a public corpus.

It decides what is counted and with how much noise, and fills in what is not counted. Nothing of
it depends on private texts, so it costs nothing.
"""

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from noisefloor.errors import BadParameter
from noisefloor.publication.text.documents import Documents
from noisefloor.publication.text.tokeniser import TextTokeniser

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]

_UNSEEN = 0.3
"""Counted for every piece beside what was seen: a piece that was not seen is rare, not absent."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Distributions of the next piece, one for each context that was seen.

    Attributes:
        contexts: Sorted, without repeats.
        starts: Where the row of each context begins, and the end.
        pieces: Next pieces, sorted within a row.
        counts: How often each was seen.
    """

    contexts: Counts
    starts: Counts
    pieces: Counts
    counts: Floats

    @classmethod
    def of(cls, contexts: Counts, pieces: Counts, size: int) -> "Rows":
        """Count pairs of context and next piece."""
        keys, counts = np.unique(contexts * size + pieces, return_counts=True)
        seen, starts = np.unique(keys // size, return_index=True)
        return cls(seen, np.append(starts, keys.size), keys % size, counts.astype(np.float64))

    def find(self, contexts: Counts) -> tuple[Counts, NDArray[np.bool_]]:
        """Return the row of each context, and whether it was seen."""
        if not self.contexts.size:
            return np.zeros(len(contexts), dtype=np.int64), np.zeros(len(contexts), dtype=np.bool_)
        rows = np.minimum(np.searchsorted(self.contexts, contexts), self.contexts.size - 1)
        return rows, self.contexts[rows] == contexts

    @cached_property
    def totals(self) -> Floats:
        """How often each context was seen."""
        return np.add.reduceat(self.counts, self.starts[:-1])


@dataclass(frozen=True, eq=False)
class PublicCorpus:
    """A public corpus as counts of its pieces.

    Attributes:
        name: Of the corpus, for cards.
        documents: Its texts; labels are not looked at.
        tokeniser: That cut them.
    """

    name: str
    documents: Documents
    tokeniser: TextTokeniser

    def __post_init__(self) -> None:
        if not len(self.documents.pieces):
            raise BadParameter("public", self.name, "a corpus with texts")

    @property
    def size(self) -> int:
        """How many pieces the vocabulary has; as a context it stands for the start of a text."""
        return self.tokeniser.size

    @cached_property
    def frequencies(self) -> Floats:
        """The share of each piece, above 0 for all but marks; they add up to 1."""
        seen = np.bincount(self.documents.pieces, minlength=self.size) + _UNSEEN
        seen[self.tokeniser.marks] = 0.0
        return np.asarray(seen / seen.sum())

    @cached_property
    def pairs(self) -> Rows:
        """The next piece after each piece, and after the start of a text."""
        return Rows.of(*followers(self.documents, self.size), self.size)

    @cached_property
    def triples(self) -> Rows:
        """The next piece after each two: contexts are the first, times size + 1, plus the second.

        The start of a text stands before its first piece, twice.
        """
        before, pieces = followers(self.documents, self.size)
        twice = np.append(self.size, before[:-1])
        twice[before == self.size] = self.size
        return Rows.of(twice * (self.size + 1) + before, pieces, self.size)

    @cached_property
    def sha256(self) -> str:
        """Of its pieces and their tokeniser."""
        digest = hashlib.sha256(self.tokeniser.sha256.encode())
        for array in (self.documents.offsets, self.documents.pieces):
            digest.update(np.ascontiguousarray(array.astype("<i8")).tobytes())
        return digest.hexdigest()


def followers(documents: Documents, start: int) -> tuple[Counts, Counts]:
    """Return what stands before each piece, ``start`` before the first, and the piece."""
    pieces = documents.pieces.astype(np.int64)
    before = np.append(start, pieces[:-1])
    before[documents.offsets[:-1][documents.lengths > 0]] = start
    return before, pieces
