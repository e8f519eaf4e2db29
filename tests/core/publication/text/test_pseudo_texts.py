"""The file of published texts: a line is a text, whatever is in it; other files are refused."""

import json

import numpy as np
import pytest

from noisefloor.errors import BadParameter, BadSnapshot
from noisefloor.publication.text import PseudoTexts, plain_text, text_column
from noisefloor.tables import Categories, TextSchema

SCHEMA = TextSchema("one review", {"review": 6}, "mood", Categories(("bad", "good")))
STRANGE = [
    "two\nlines\r and \u2028 more \u2029 of them",
    'quotes " and \\ and \x00 and \x1b[31m',
    "\U0001f600 \u65e5\u672c\u8a9e <script>alert(1)</script>",
    "",
]


def the_texts() -> PseudoTexts:
    return PseudoTexts(SCHEMA, STRANGE, np.array([0, 1, 1, 0]))


def test_every_text_comes_back() -> None:
    found = PseudoTexts.read(the_texts().written(), SCHEMA)
    assert list(found.texts) == STRANGE
    assert found.labels.tolist() == [0, 1, 1, 0]


def test_a_line_is_a_text_for_every_reader() -> None:
    lines = the_texts().written().decode().splitlines()
    assert [json.loads(line)["review"] for line in lines] == STRANGE
    assert json.loads(lines[0])["mood"] == "bad"


def test_half_a_character_does_not_stop_a_release() -> None:
    content = PseudoTexts(SCHEMA, ["\ud83d"], np.array([0])).written()
    assert PseudoTexts.read(content, SCHEMA).count == 1


def test_empty_texts_are_no_records() -> None:
    assert the_texts().records().count == 3


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\n",
        b"[]\n",
        b"{}\n",
        b'{"review": 3, "mood": "bad"}\n',
        b'{"review": "x", "mood": "fair"}\n',
        b'{"review": "x", "mood": "bad", "more": 1}\n',
        b'{"review": "x", "mood": ["bad"]}\n',
        b"[" * 5000 + b"\n",
    ],
)
def test_other_files_are_refused(content: bytes) -> None:
    with pytest.raises(BadSnapshot, match="no texts of this schema"):
        PseudoTexts.read(content, SCHEMA)


def test_labels_have_to_fit() -> None:
    with pytest.raises(BadParameter, match="labels"):
        PseudoTexts(SCHEMA, ["x"], np.array([0, 1]))


def test_pairs_of_texts_are_not_published() -> None:
    pair = TextSchema("one pair", {"a": 3, "b": 3}, "mood", Categories(("bad", "good")))
    with pytest.raises(BadParameter, match="one column of texts"):
        text_column(pair)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("one<br />two", "one two"),
        ("<p class='x'>a &amp; b</p>", " a & b "),
        ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
        ("<3 you", "<3 you"),
        ("no end <b", "no end <b"),
    ],
)
def test_markup_is_taken_out(text: str, plain: str) -> None:
    assert plain_text(text) == plain
