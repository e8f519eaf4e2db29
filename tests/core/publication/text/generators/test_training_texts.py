"""Vocabularies, and documents as rows."""

import numpy as np
import pytest

from generator_cases import SHAPES, a_vocabulary, documents_of, some_documents
from noisefloor.errors import BadParameter, BadTable
from noisefloor.publication.text.generators import PieceVocabulary, most_frequent_pieces
from noisefloor.publication.text.generators.shapes import STEP
from noisefloor.publication.text.generators.training_texts import lay_out


def test_the_most_frequent_pieces_come_first_and_the_rest_is_unknown() -> None:
    found = most_frequent_pieces(np.array([5, 9, 9, 7, 7, 3, 3, 3]), 3, is_public=True)
    assert found.pieces.tolist() == [3, 7, 9]
    assert found.places(np.array([9, 3, 5, 1000, 0])).tolist() == [2, 0, 3, 3, 3]
    assert found.shares.tolist() == pytest.approx(np.array([3.5, 2.5, 2.5, 1.5]) / 10)
    private = most_frequent_pieces(np.array([4, 4, 4, 8]), 9, is_public=False)
    assert private.pieces.tolist() == [4, 8]
    assert private.shares.tolist() == [1 / 3] * 3, "counts of private pieces are not published"


@pytest.mark.parametrize(
    ("pieces", "shares"),
    [([3, 3], [0.3, 0.3, 0.4]), ([], [1.0]), ([3, 4], [0.5, 0.5]), ([3], [0.0, 1.0])],
)
def test_a_vocabulary_has_each_piece_once_and_a_share_for_each(
    pieces: list[int], shares: list[float]
) -> None:
    with pytest.raises(BadParameter):
        PieceVocabulary(np.array(pieces, np.int32), np.array(shares), is_public=True)


def test_rows_of_a_decoder_and_an_encoder() -> None:
    vocabulary = a_vocabulary()
    documents = documents_of([[100, 101, 119], [102], [], list(range(100, 110))], [0, 1, 0, 1])
    rows = lay_out(documents, vocabulary, SHAPES["encoder-decoder"])
    assert rows.inputs[0].tolist() == [0, 1, *([0] * 14)]
    assert rows.targets[0].tolist() == [1, vocabulary.unknown, *([-1] * 14)]
    assert rows.read[0, :STEP].tolist() == [-1] * 5 + [0, 1, vocabulary.unknown]
    assert rows.read[1, :STEP].tolist() == [-1] * 7 + [2]
    assert rows.read[3, : 2 * STEP].tolist() == [-1] * 6 + list(range(10))
    assert (rows.targets[[1, 2]] == -1).all()
    assert (rows.read[2] == -1).all()
    assert rows.lengths.tolist() == [3, 1, 0, 10]
    alone = lay_out(documents, vocabulary, SHAPES["encoder-decoder"], "seed").read
    # What is read of a text of one piece is the same in training and afterwards.
    assert alone.tolist() == [[-1] * 7 + [one] for one in (0, 2, -1, 0)]
    assert np.array_equal(alone[1], rows.read[1, :STEP])
    seeds = lay_out(documents, vocabulary, SHAPES["encoder-decoder from the seed"]).read
    assert seeds.tolist() == [[0], [2], [-1], [0]]
    assert lay_out(documents, vocabulary, SHAPES["transformer"]).read.shape == (4, 0)


@pytest.mark.parametrize("name", SHAPES)
def test_a_row_does_not_depend_on_other_documents(name: str) -> None:
    documents = some_documents(8)
    whole = lay_out(documents, a_vocabulary(), SHAPES[name])
    for place in range(8):
        alone = lay_out(documents[np.array([place])], a_vocabulary(), SHAPES[name])
        for field in ("inputs", "read", "labels", "targets", "lengths"):
            assert np.array_equal(getattr(alone, field)[0], getattr(whole, field)[place])


def test_a_text_that_is_too_long_is_refused() -> None:
    with pytest.raises(BadTable, match="at most 11 pieces"):
        lay_out(documents_of([[100] * 12]), a_vocabulary(), SHAPES["transformer"])
