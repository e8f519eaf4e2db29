"""Published models: the file tells everything that is needed to ask it."""

import hashlib
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from noisefloor.errors import BadParameter, BadSnapshot, BadTable
from noisefloor.publication.published_model import Layer, PublishedModel, load_model
from noisefloor.publication.tensors import write_tensors
from noisefloor.randomness import SeededSource
from noisefloor.tables.one_hot import OneHot
from noisefloor.tables.schema import Bins, Categories, Schema

SCHEMA = Schema(
    "one visit",
    {
        "country": Categories(("CH", "DE")),
        "buys": Categories((0, 1)),
        "age": Bins((0, 18, 65, 120)),  # not in the order of the alphabet, which features have not
    },
)
ENCODING = OneHot(SCHEMA, "buys")


def layers(*sizes: int) -> tuple[Layer, ...]:
    draw = SeededSource(1, "layers").generator()
    return tuple(
        (
            draw.standard_normal((before, after)).astype(np.float32),
            draw.standard_normal(after).astype(np.float32),
        )
        for before, after in pairwise(sizes)
    )


@pytest.mark.parametrize("sizes", [(5, 2), (5, 7, 2), (5, 4, 3, 2)])
def test_what_is_read_answers_as_what_was_written(sizes: tuple[int, ...]) -> None:
    model = PublishedModel(ENCODING, layers(*sizes))
    again = PublishedModel.read(model.written())
    features = ENCODING.features(np.array([[1, 0], [0, 2], [1, 1]]))
    assert again.encoding == ENCODING
    assert again.encoding.columns == ENCODING.columns  # mappings are equal in any order
    assert again.parameters == sum((a + 1) * b for a, b in pairwise(sizes))
    assert np.array_equal(again.logits(features), model.logits(features))
    assert again.written() == model.written()


def test_two_layers_are_a_relu_between_two_maps() -> None:
    (first, low), (second, high) = layers(5, 7, 2)
    model = PublishedModel(ENCODING, ((first, low), (second, high)))
    features = ENCODING.features(np.array([[1, 0], [0, 2]]))
    by_hand = np.maximum(features @ first + low, 0) @ second + high
    assert np.array_equal(model.logits(features), by_hand)
    assert model.predict_classes(features).tolist() == by_hand.argmax(axis=1).tolist()


def test_layers_that_do_not_fit_are_refused() -> None:
    with pytest.raises(BadParameter, match=r"\(5, 2\)"):
        PublishedModel(ENCODING, layers(4, 2))
    with pytest.raises(BadParameter, match="at least one"):
        PublishedModel(ENCODING, ())
    ((weights, biases),) = layers(5, 2)
    weights[0, 0] = np.nan
    with pytest.raises(BadParameter, match="finite"):
        PublishedModel(ENCODING, ((weights, biases),))


def test_other_files_are_refused() -> None:
    good = PublishedModel(ENCODING, layers(5, 2)).written()
    other = write_tensors({"counts": np.zeros(3, np.int64)}, {"noisefloor": '{"method": "x"}'})
    for content in (b"", b"nonsense", good[:40], other, write_tensors({})):
        with pytest.raises(BadSnapshot):
            PublishedModel.read(content)


def test_a_loaded_model_is_queried_by_values_and_a_changed_file_is_refused() -> None:
    model = PublishedModel(ENCODING, layers(5, 2))
    content = model.written()
    card = {"content_sha256": hashlib.sha256(content).hexdigest()}
    rows: dict[str, list[Any]] = {"age": [17, 120], "country": ["DE", "CH"]}
    predicted = model.predict_classes(ENCODING.features(np.array([[1, 0], [0, 2]])))
    assert load_model(content, card, unsigned=True).predict(rows) == predicted.tolist()
    for place in (0, 20, len(content) - 1):
        changed = bytearray(content)
        changed[place] ^= 1
        with pytest.raises(BadSnapshot, match="SHA-256"):
            load_model(bytes(changed), card, unsigned=True)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ({"age": [17]}, "column 'country': Expected this column"),
        ({"age": [17, 18], "country": ["CH"]}, "one length"),
        ({"age": [17], "country": ["FR"]}, "one of its 2 categories in every row"),
        ({"age": [121], "country": ["CH"]}, r"a number in \[0, 120\] in every row"),
        ({"age": ["x"], "country": ["CH"]}, "Expected numbers"),
    ],
)
def test_rows_outside_of_the_schema_are_refused(rows: dict[str, list[object]], said: str) -> None:
    with pytest.raises(BadTable, match=said):
        PublishedModel(ENCODING, layers(5, 2)).predict(rows)


def test_bins_are_named_by_their_lower_edge() -> None:
    by_age = OneHot(SCHEMA, "age")
    model = PublishedModel(by_age, ((np.eye(4, 3, dtype=np.float32), np.zeros(3, np.float32)),))
    assert model.predict({"country": ["CH", "DE"], "buys": [1, 1]}) == [0, 18]
