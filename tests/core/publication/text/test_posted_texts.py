"""Posts in frames: bounded in bytes, cut between characters, collected as they are."""

import numpy as np
import pytest

from noisefloor.errors import BadFrame, BadParameter, BadTable, OutOfDomain
from noisefloor.publication.text import (
    cut_to_bytes,
    posted_records,
    posted_texts_kind,
    posts_of,
)
from noisefloor.randomness import SeededSource
from noisefloor.tables import Categories, TextSchema
from noisefloor.wire import Reduction, decode_frame, encode_frame

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


def test_an_empty_post_is_refused_without_its_neighbours_texts() -> None:
    kind = posted_texts_kind(2, 64)
    batch = kind.encode(posts_of(["a secret", " "], np.array([0, 1])))
    with pytest.raises(BadTable) as refused:
        posted_records(kind, [batch], SCHEMA)
    assert "secret" not in str(refused.value)
    assert "row 2" in str(refused.value)


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
