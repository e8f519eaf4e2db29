"""Texts as pieces: cut to the schema's length, written, chosen by row."""

from pathlib import Path

import numpy as np
import pytest

from noisefloor.errors import BadBackbone, BadParameter
from noisefloor.publication.text import (
    Documents,
    TextTokeniser,
    load_tokeniser,
    read_documents,
    shared_tokeniser,
)
from noisefloor.tables import Categories, TextRecords, TextSchema
from tiny_backbones import write_piece_file

SCHEMA = TextSchema("one review", {"review": 3}, "mood", Categories(("bad", "good")))


@pytest.fixture(scope="module")
def tokeniser(tmp_path_factory: pytest.TempPathFactory) -> TextTokeniser:
    """A tokeniser of a few words."""
    return load_tokeniser(write_piece_file(tmp_path_factory.mktemp("pieces")))


def the_documents(tokeniser: TextTokeniser) -> Documents:
    """Three reviews, of which the first is too long and the second has unknown words."""
    texts = ["a good film and a fine story", "Zebra!", "unknown plots"]
    table = {"review": texts, "mood": ["good", "bad", "bad"]}
    return read_documents(TextRecords.of(table, SCHEMA, "here"), tokeniser)


def test_each_text_is_cut_by_itself(tokeniser: TextTokeniser) -> None:
    documents = the_documents(tokeniser)
    assert documents.count == 3
    assert documents.lengths.tolist() == [3, 2, 3]
    assert tokeniser.written(documents.pieces, documents.offsets)[::2] == [
        "a good film",
        "unknown plot",
    ]
    assert documents.labels.tolist() == [1, 0, 0]
    assert documents.owners.tolist() == [0, 0, 0, 1, 1, 2, 2, 2]


def test_rows_are_chosen_in_any_order(tokeniser: TextTokeniser) -> None:
    documents = the_documents(tokeniser)
    chosen = documents[np.array([2, 0])]
    assert chosen.offsets.tolist() == [0, 3, 6]
    assert chosen.labels.tolist() == [0, 1]
    assert chosen.pieces.tolist() == [*documents.pieces[5:], *documents.pieces[:3]]
    assert documents[documents.labels == 5].count == 0


def test_marks_are_no_part_of_a_text(tokeniser: TextTokeniser) -> None:
    assert {tokeniser.words[place] for place in tokeniser.marks} >= {"[PAD]", "[CLS]", "[SEP]"}
    assert "film" not in {tokeniser.words[place] for place in tokeniser.marks}


def test_a_pair_of_texts_is_refused(tokeniser: TextTokeniser) -> None:
    schema = TextSchema("one pair", {"a": 3, "b": 3}, "mood", Categories(("bad", "good")))
    records = TextRecords.of({"a": ["x"], "b": ["y"], "mood": ["bad"]}, schema, "here")
    with pytest.raises(BadParameter, match="one column of texts"):
        read_documents(records, tokeniser)


@pytest.mark.parametrize("content", [None, "{", '{"model": 3}'])
def test_a_directory_without_a_tokeniser_is_refused(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(BadBackbone, match=r"tokenizer\.json"):
        load_tokeniser(tmp_path)


def test_this_machine_has_one_tokeniser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOISEFLOOR_BACKBONE", str(write_piece_file(tmp_path / "own")))
    assert shared_tokeniser() is shared_tokeniser()
    assert shared_tokeniser().name == "own"


def test_offsets_have_to_fit(tokeniser: TextTokeniser) -> None:
    with pytest.raises(BadParameter, match="where each document begins"):
        Documents(np.zeros(3, np.int32), np.array([0, 2]), np.zeros(1, np.int64))
