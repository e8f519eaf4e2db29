"""The pieces that a generator can write: a small part of a tokeniser's, and one for the rest.

Chosen from a public corpus they cost nothing. Chosen from the private one, as in the paper, the
list depends on single documents, and nothing is guaranteed.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import check_count
from noisefloor.errors import BadParameter

Pieces = NDArray[np.int32]
Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class PieceVocabulary:
    """Pieces of a tokeniser by their places in a generator; the last place is all others'.

    Attributes:
        pieces: Of the tokeniser, each once.
        shares: How frequent each place is in the corpus that the pieces were chosen from, the
            place of all others included; all the same if that corpus is private. They add up to
            one.
        is_public: Whether that corpus is public.
    """

    pieces: Pieces
    shares: NDArray[np.float64]
    is_public: bool

    def __post_init__(self) -> None:
        if not len(self.pieces) or len(np.unique(self.pieces)) != len(self.pieces):
            raise BadParameter("pieces", f"<{len(self.pieces)} pieces>", "some, each once")
        if self.shares.shape != (self.size,) or not (self.shares > 0).all():
            raise BadParameter("shares", "<numbers>", f"{self.size} positive numbers")

    @property
    def size(self) -> int:
        """How many places there are."""
        return len(self.pieces) + 1

    @property
    def unknown(self) -> int:
        """The place of all pieces that are not in the list."""
        return len(self.pieces)

    def places(self, pieces: NDArray[np.integer]) -> Places:
        """Return the places of pieces."""
        order = np.argsort(self.pieces)
        spot = np.searchsorted(self.pieces, pieces, sorter=order)
        found = order[np.minimum(spot, len(order) - 1)]
        return np.where(self.pieces[found] == pieces, found, self.unknown)


def most_frequent_pieces(
    pieces: NDArray[np.integer], size: int, *, is_public: bool
) -> PieceVocabulary:
    """Return the most frequent pieces of a corpus; of equally frequent ones, the lower.

    Args:
        pieces: Of all documents of the corpus.
        size: How many to keep, at most.
        is_public: Whether the corpus is.
    """
    check_count(size, "size")
    found, counts = np.unique(np.asarray(pieces), return_counts=True)
    order = np.lexsort((found, -counts))[:size]
    rest = counts.sum() - counts[order].sum()
    # Half a piece more each: no place is impossible. Shares of a private corpus would be published
    # with the vocabulary: they are left out.
    shares = np.append(counts[order], rest) + 0.5 if is_public else np.ones(len(order) + 1)
    return PieceVocabulary(found[order].astype(np.int32), shares / shares.sum(), is_public)
