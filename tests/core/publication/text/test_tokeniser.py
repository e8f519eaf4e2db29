"""Tokenisers of two kinds: WordPiece with its endings, byte-level BPE with its spaces."""

from pathlib import Path

import numpy as np

from noisefloor.publication.text import TextTokeniser, load_tokeniser
from tiny_backbones import SPECIAL, write_piece_file
from tiny_language_models import MARKS, write_byte_tokeniser


def words_of(tokeniser: TextTokeniser, places: np.ndarray) -> set[str]:
    return {str(word) for word in tokeniser.words[places]}


def test_word_pieces_go_on_with_a_word_by_their_marks(tmp_path: Path) -> None:
    tokeniser = load_tokeniser(write_piece_file(tmp_path))
    assert not tokeniser.is_byte_level
    assert words_of(tokeniser, tokeniser.marks) == set(SPECIAL)
    assert words_of(tokeniser, tokeniser.continuations) == {"##ly", "##s", "##er", "##known"}


def test_byte_level_pieces_begin_a_word_with_a_space(tmp_path: Path) -> None:
    tokeniser = load_tokeniser(write_byte_tokeniser(tmp_path))
    assert tokeniser.is_byte_level
    assert words_of(tokeniser, tokeniser.marks) == set(MARKS)
    going_on = words_of(tokeniser, tokeniser.continuations)
    assert {"a", "7"} <= going_on
    assert not {word for word in going_on if word[0] in "\u0120\u010a"}
    assert not {".", ",", "\u0120", "\u010a", "\u0120film", *MARKS} & going_on


def test_byte_level_texts_come_back_as_they_were(tmp_path: Path) -> None:
    tokeniser = load_tokeniser(write_byte_tokeniser(tmp_path))
    texts = [
        "The film was great.",
        "caf\u00e9 \U0001f600 \u65e5\u672c\u8a9e",
        "two\nlines and 1998",
        "",
        " A space before and after ",
    ]
    pieces, offsets = tokeniser.cut(texts, 200)
    assert tokeniser.written(pieces, offsets) == [text.strip() for text in texts]


def test_a_sign_that_was_cut_is_written_as_one_that_is_unknown(tmp_path: Path) -> None:
    tokeniser = load_tokeniser(write_byte_tokeniser(tmp_path))
    pieces, offsets = tokeniser.cut(["\U0001f600"], 2)
    assert tokeniser.written(pieces, offsets) == ["\ufffd"]
