"""A card is refused in words of its own: unsigned, unknown key, changed, newer, damaged."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisefloor.canonical_json import canonical_json
from noisefloor.cards.card import check_card, sign_card
from noisefloor.cards.signing import SigningKey
from noisefloor.errors import (
    BadCard,
    DamagedCard,
    NewerCard,
    NoisefloorError,
    UnknownKey,
    UnsignedCard,
    WrongSignature,
)
from properties import examples

KEY, OTHER = (SigningKey(bytes([n]) * 32, name) for n, name in enumerate(("ours", "theirs")))
KEYS = (KEY.public,)
CARD = {
    "content_sha256": "ab" * 32,
    "guarantee": "é little",
    "cost": 1e-06,
    "list": [1, 2.5, None],
}
SIGNED = sign_card(CARD, KEY)
BYTES = canonical_json(SIGNED)


def test_a_signed_card_is_read_as_bytes_and_as_json() -> None:
    for document in (BYTES, BYTES + b"\n", SIGNED, json.loads(BYTES)):
        card = check_card(document, (OTHER.public, KEY.public))
        assert card == SIGNED
        assert card["publisher"] == {"name": "ours", "key": KEY.public.id}
    assert sign_card(CARD, KEY) == sign_card(SIGNED, KEY) == SIGNED


def test_each_refusal_has_its_own_words() -> None:
    changed = {**SIGNED, "guarantee": "none"}
    signature = SIGNED["signature"]
    renamed = {**SIGNED, "signature": {**signature, "key": OTHER.public.id}}
    said: set[str] = set()
    for kind, document, rule in (
        (UnsignedCard, CARD, "format 1, from before"),
        (UnsignedCard, {**CARD, "card_format": 2, "signature": None}, "is not signed: anybody"),
        (UnknownKey, sign_card(CARD, OTHER), "none of the 1 trusted"),
        (UnknownKey, renamed, "none of the 1 trusted"),
        (WrongSignature, changed, "was changed after it was signed"),
        (WrongSignature, {**SIGNED, "more": 1}, "was changed after"),
        (WrongSignature, {**SIGNED, "signature": {"key": 1}}, "has not the form"),
        (WrongSignature, json.dumps(SIGNED).encode(), "not written as it was signed"),
        (NewerCard, {**SIGNED, "card_format": 3}, "of format 3; this version reads 2. Update"),
        (DamagedCard, b"{", "cannot be read as JSON"),
        (DamagedCard, b"[]", "is none"),
        (DamagedCard, {}, "is none"),
        (DamagedCard, {**SIGNED, "card_format": "2"}, "no whole number"),
        (DamagedCard, {**SIGNED, "cost": float("nan")}, "cannot be read"),
        (DamagedCard, b"[" * 100_000, "cannot be read"),
    ):
        with pytest.raises(kind, match=rule) as refused:
            check_card(document, KEYS)
        assert "\n" not in str(refused.value)
        said.add(str(refused.value))
    assert len(said) == 10


def test_no_key_is_trusted_unless_it_was_given() -> None:
    with pytest.raises(UnknownKey, match="none of the 0 trusted"):
        check_card(SIGNED)


def test_a_key_that_signs_in_the_name_of_another_is_refused() -> None:
    """Both are trusted, and the signature is a true one; the card says that another published."""
    ours, theirs = SIGNED["publisher"], {"name": "ours", "key": OTHER.public.id}
    for publisher in (ours, theirs, None):
        card = {**CARD, "card_format": 2, "publisher": publisher}
        signed = OTHER.sign(b"noisefloor card, format 2\n" + canonical_json(card))
        text = base64.b64encode(signed).decode()
        forged = {**card, "signature": {"key": OTHER.public.id, "ed25519": text}}
        with pytest.raises(WrongSignature, match="names another publisher"):
            check_card(forged, (KEY.public, OTHER.public))


def test_a_recipient_who_insists_gets_an_unsigned_card_and_no_newer_or_damaged_one() -> None:
    assert check_card(CARD, unsigned=True) == CARD
    assert check_card(json.dumps(CARD, indent=1).encode(), unsigned=True) == CARD
    assert check_card(SIGNED, unsigned=True) == SIGNED
    for wrong in ({**CARD, "card_format": 3}, {}, b"null"):
        with pytest.raises(BadCard):
            check_card(wrong, unsigned=True)


@examples(300)
@given(place=st.integers(0, len(BYTES) - 1), mask=st.integers(1, 255))
def test_no_byte_of_a_signed_card_can_be_changed(place: int, mask: int) -> None:
    changed = bytearray(BYTES)
    changed[place] ^= mask
    with pytest.raises(BadCard):
        check_card(bytes(changed), KEYS)


def test_no_bit_of_a_signed_card_can_be_changed() -> None:
    for bit in range(8 * len(BYTES)):
        changed = bytearray(BYTES)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(BadCard):
            check_card(bytes(changed), KEYS)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@examples(100)
@given(name=st.sampled_from([*SIGNED, "new"]), value=_JSON)
def test_no_field_can_be_changed_and_hostile_ones_are_refused_in_words(
    name: str, value: Any
) -> None:
    if value == SIGNED.get(name) and type(value) is type(SIGNED.get(name)):
        return
    with pytest.raises(NoisefloorError):
        check_card({**SIGNED, name: value}, KEYS)
