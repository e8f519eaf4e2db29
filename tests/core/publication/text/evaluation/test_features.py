"""Sparse features against loops that count by hand."""

import numpy as np
import pytest

from made_up_texts import documents_of
from noisefloor.errors import BadParameter
from noisefloor.publication.text.evaluation import pair_presence, piece_counts, piece_presence

TEXTS = documents_of([[3, 1, 3], [], [2], [1, 3, 1, 3]])


def test_pieces_are_counted_for_each_document() -> None:
    counts = piece_counts(TEXTS, 5).toarray()
    assert counts.tolist() == [[0, 1, 0, 2, 0], [0] * 5, [0, 0, 1, 0, 0], [0, 2, 0, 2, 0]]
    assert piece_presence(TEXTS, 5).toarray().tolist() == (counts > 0).astype(float).tolist()


def test_bigrams_are_counted_within_documents_alone() -> None:
    bigrams = pair_presence(TEXTS, 5)[:, 5:]
    # (3, 1) and (1, 3) in the first and the last; none leads from one document into another.
    assert bigrams.sum(axis=1).tolist() == [[2], [0], [0], [2]]
    assert (bigrams[0] != bigrams[3]).nnz == 0
    assert bigrams.max() == 1
    swapped = pair_presence(documents_of([[3, 1], [1, 3]]), 5)
    assert (swapped[0] != swapped[1]).nnz == 2  # the same pieces, another order


def test_bigrams_seldom_share_a_column() -> None:
    rows = [[one, two] for one in range(150) for two in range(150)]
    columns = np.unique(pair_presence(documents_of(rows), 30_000).indices)
    # Of 22,500 in 2**18 columns about 940 would share one by chance.
    assert (columns >= 30_000).sum() > 22_500 - 1_200


@pytest.mark.parametrize("piece", [-1, 5])
def test_a_piece_beyond_the_vocabulary_is_refused(piece: int) -> None:
    with pytest.raises(BadParameter, match="pieces of a vocabulary of 5"):
        piece_counts(documents_of([[1, piece]]), 5)
