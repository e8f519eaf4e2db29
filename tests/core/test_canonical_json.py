"""Canonical JSON has one form: sorted keys, no blanks, ASCII."""

import math

import pytest

from noisefloor.canonical_json import canonical_json


def test_the_order_of_keys_does_not_change_the_bytes() -> None:
    assert canonical_json({"b": [1, 2.5], "a": {"d": None, "c": "é"}}) == (
        b'{"a":{"c":"\\u00e9","d":null},"b":[1,2.5]}'
    )
    assert canonical_json({"a": 1, "b": 2}) == canonical_json({"b": 2, "a": 1})


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_json_number_is_refused_where_it_has_to_be(value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        canonical_json([value], allow_nan=False)
    assert canonical_json([value]).startswith(b"[")
