"""Posts in frames: bounded in bytes, cut between characters, collected as they are."""

import numpy as np
import pytest

from ngram_cases import a_plan, number_tokeniser, public_texts
from noisefloor.errors import BadFrame, BadParameter, OutOfDomain
from noisefloor.publication.text import (
    cut_to_bytes,
    posted_records,
    posted_texts_kind,
    posts_of,
    read_documents,
)
from noisefloor.publication.text.ngrams import count_ngrams
from noisefloor.randomness import SeededSource
from noisefloor.roles.kind_registry import kind_description, kinds_from_sizes
from noisefloor.tables import Categories, TextSchema
from noisefloor.tables.coded_texts import decode_texts, encode_texts
from noisefloor.wire import Reduction, Symbols, Text, decode_frame, encode_frame, record_kind

SCHEMA = TextSchema("one post", {"post": 20}, "mood", Categories(("bad", "good")))
TEXTS = ["a fine day", "schön\u2028 & <b>bold</b>", "\U0001f600 yes", "a fine day"]
LABELS = np.array([1, 0, 1, 0], dtype=np.int64)


def test_posts_come_back_as_records_without_anybody_s_name() -> None:
    kind = posted_texts_kind(2, 64)
    assert kind.reduction is Reduction.COLLECT
    data = encode_frame(kind, 3, posts_of(TEXTS, LABELS), SeededSource(1, "frame"))
    frame = decode_frame(data, {kind.name: kind})
    records = posted_records(kind, [frame.batch, frame.batch], SCHEMA)
    assert records is not None
    assert records.count == 8
    found = sorted(zip(records.texts["post"], records.labels.tolist(), strict=True))
    assert found == sorted(2 * list(zip(TEXTS, LABELS.tolist(), strict=True)))
    assert [name for name, _ in kind.columns] == ["text", "label"]


def test_nothing_collected_is_no_records() -> None:
    assert posted_records(posted_texts_kind(2, 64), [], SCHEMA) is None


def test_a_post_that_is_too_long_or_of_no_class_is_refused() -> None:
    kind = posted_texts_kind(2, 12)
    for texts, labels in ((["thirteen byte"], [0]), (["short"], [2])):
        with pytest.raises(OutOfDomain) as refused:
            kind.encode(posts_of(texts, np.array(labels)))
        assert texts[0] not in str(refused.value)
    wide = posted_texts_kind(2, 13)
    batch = wide.encode(posts_of(["thirteen byte"], np.array([0])))
    with pytest.raises(BadFrame) as broken:
        kind.check(batch)
    assert "thirteen byte" not in str(broken.value)


HOSTILE = {
    "an empty text": ("", "has an empty text"),
    "white space alone": (" \t\n\u2028\u3000\x1c", "has an empty text"),
    "a document of a megabyte": ("a secret " * 120_000, "has a text of more than 64 bytes"),
    "65 bytes": ("ä" * 32 + "a", "has a text of more than 64 bytes"),
    "half of a surrogate pair": ("a secret \ud800", "one is not Unicode"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_post_is_refused_on_the_device_by_one_line(what: str) -> None:
    text, rule = HOSTILE[what]
    with pytest.raises(OutOfDomain) as refused:
        posted_texts_kind(2, 64).encode(posts_of(["a fine day", text], np.zeros(2, dtype=int)))
    said = str(refused.value)
    assert rule in said
    assert "\n" not in said and "secret" not in said and "fine" not in said


@pytest.mark.parametrize("old", [b"a secret post", b"secret"])
@pytest.mark.parametrize("new", [b" ", b"\xff", b"\xc0\x80", b"\xed\xa0\x80"])
def test_an_empty_post_and_broken_utf_8_are_refused_where_frames_are_taken(
    old: bytes, new: bytes
) -> None:
    kind = posted_texts_kind(2, 64)
    posts = posts_of(["a secret post"], np.zeros(1, dtype=np.int64))
    good = encode_frame(kind, 3, posts, SeededSource(2, "frame"))
    changed = good.replace(old, (new * len(old))[: len(old)])
    assert changed != good
    if new == b" " and old == b"secret":
        decode_frame(changed, {kind.name: kind})  # white space in between is text
        return
    with pytest.raises(BadFrame) as refused:
        decode_frame(changed, {kind.name: kind})
    assert "secret" not in str(refused.value)


def test_control_characters_emoji_and_tags_travel_as_they_are() -> None:
    kind = posted_texts_kind(2, 64)
    texts = ["\0", "\a\x1b[31m", "\u202e\u200b", "\U0001f600" * 16, "<script>alert(1)</script>"]
    posts = posts_of(texts, np.zeros(len(texts), dtype=np.int64))
    data = encode_frame(kind, 0, posts, SeededSource(3, "frame"))
    found = decode_frame(data, {kind.name: kind}).batch["text"].to_pylist()
    assert sorted(found) == sorted(texts)


def test_a_kind_that_is_described_by_its_columns_refuses_the_same() -> None:
    kind = posted_texts_kind(2, 64)
    again = kinds_from_sizes({kind.name: kind_description(kind)})[kind.name]
    assert again == kind
    with pytest.raises(OutOfDomain):
        again.encode(posts_of([" "], np.zeros(1, dtype=np.int64)))


def test_an_empty_post_of_an_aggregator_without_the_rule_is_left_out() -> None:
    lax = record_kind("posted-texts", {"text": Text(64), "label": Symbols(2)})
    batch = lax.encode(posts_of(["a fine day", " \t", "", "rain"], np.array([0, 1, 0, 1])))
    records = posted_records(posted_texts_kind(2, 64), [batch], SCHEMA)
    assert records is not None
    assert records.texts["post"].tolist() == ["a fine day", "rain"]
    assert records.labels.tolist() == [0, 1]
    assert posted_records(posted_texts_kind(2, 64), [batch[1:3]], SCHEMA) is None


WITHOUT_PIECES = ["<br>", "<p></p>", "\0", "\u200b", "&nbsp;", "&#32;<br />"]


def test_a_post_without_pieces_is_a_document_and_stops_no_release() -> None:
    """Markup alone, or characters that no piece stands for."""
    kind = posted_texts_kind(2, 64)
    texts = ["w1 w2 w3", *WITHOUT_PIECES]
    batch = kind.encode(posts_of(texts, np.arange(len(texts), dtype=np.int64) % 2))
    records = posted_records(kind, [batch], SCHEMA)
    assert records is not None
    assert decode_texts(encode_texts(records), SCHEMA).count == len(texts)  # to a service
    documents = read_documents(records, number_tokeniser())
    assert documents.lengths.tolist() == [3] + [0] * len(WITHOUT_PIECES)
    found = count_ngrams(documents, a_plan(), public_texts(), SeededSource(4, "counts"))
    assert np.isfinite(found.estimates.by_label).all()


def test_texts_are_cut_between_characters() -> None:
    assert cut_to_bytes(["abcdef", "äöü", "\U0001f600x", "é"], 5) == [
        "abcde",
        "äö",
        "\U0001f600x",
        "é",
    ]
    assert cut_to_bytes(["\U0001f600x"], 3) == [""]


@pytest.mark.parametrize("most_bytes", [0, (1 << 16) + 1])
def test_bytes_are_bounded(most_bytes: int) -> None:
    with pytest.raises(BadParameter):
        posted_texts_kind(2, most_bytes)
