"""The form of a card: one object of JSON, with its format and a signature of all the rest.

    {"card_format": 2, "publisher": {"name": ..., "key": ID}, ..., "content_sha256": ...,
     "signature": {"key": ID, "ed25519": BASE64}}

What is signed is the canonical JSON of the card without ``signature``, after a line that says
what it is: so a signature of a card is one of nothing else. Cards of format 1 had neither format
nor signature.
"""

import base64
import binascii
import json
import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from noisefloor.canonical_json import canonical_json
from noisefloor.cards.signing import SIGNATURE_BYTES, SigningKey, TrustedKeys, trusted_keys
from noisefloor.errors import (
    DamagedCard,
    NewerCard,
    UnknownKey,
    UnsignedCard,
    WrongSignature,
)

CARD_FORMAT = 2
FORMAT, SIGNATURE = "card_format", "signature"
MOST_CARD_BYTES = 1 << 20

_DOMAIN = b"noisefloor card, format 2\n"
_HASH = "content_sha256"
_KEY_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)

CardDocument: TypeAlias = bytes | Mapping[str, Any]  # Any: JSON
"""A card as it was fetched: its bytes, or what they are as JSON."""


def sign_card(card: Mapping[str, Any], key: SigningKey) -> dict[str, Any]:  # Any: JSON
    """Return a card with who signed it, and the signature of all of it.

    The same card gets the same signature.
    """
    public = key.public
    whole = {**_unsigned(card), "publisher": {"name": public.name, "key": public.id}}
    whole[FORMAT] = CARD_FORMAT
    signature = base64.b64encode(key.sign(_message(whole))).decode("ascii")
    return {**whole, SIGNATURE: {"key": public.id, "ed25519": signature}}


def check_card(
    document: CardDocument, keys: TrustedKeys = (), *, unsigned: bool = False
) -> dict[str, Any]:  # Any: JSON
    """Return a card once a trusted key signed it, as it stands.

    Bytes have to be those that were signed, to the last one; of JSON the values are compared.

    Args:
        document: As it was fetched.
        keys: Those that the recipient trusts, or the file that holds them.
        unsigned: Whether to insist on a card whose signature is not checked. Its form still is.

    Raises:
        DamagedCard: It is no card.
        NewerCard: Only a newer version reads it.
        UnsignedCard: Nobody signed it.
        UnknownKey: It was signed by another key.
        WrongSignature: It was changed after it was signed.
    """
    card, is_exact = _read(document)
    version = card_format(card)
    if version > CARD_FORMAT:
        rule = f"this version reads {CARD_FORMAT}. Update noisefloor"
        raise NewerCard(f"Card: is of format {version}; {rule}.")
    if not unsigned:
        _check_signature(card, keys)
        if not is_exact:
            rule = "not written as it was signed, in canonical JSON: it was changed"
            raise WrongSignature(f"Card: is {rule}. Fetch it again, or read it as JSON.")
    return card


def card_format(card: Mapping[str, Any]) -> int:  # Any: JSON
    """Return the format of a card; DamagedCard for what is none."""
    version = card.get(FORMAT, 1)
    if type(version) is not int or version < 1:
        raise DamagedCard("Card: its format is no whole number from 1 on.")
    return version


def is_signed(card: Mapping[str, Any]) -> bool:  # Any: JSON
    """Tell whether a card has a signature, whatever it is worth."""
    return card.get(SIGNATURE) is not None


def _read(document: CardDocument) -> tuple[dict[str, Any], bool]:  # Any: JSON
    """Return the card in a document, and whether the document is written as it is signed."""
    try:
        if isinstance(document, bytes):
            card = json.loads(document) if len(document) <= MOST_CARD_BYTES else None
        else:
            card = dict(document)
        written = canonical_json(card, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        raise DamagedCard("Card: cannot be read as JSON.") from None
    if not isinstance(card, dict) or not isinstance(card.get(_HASH), str):
        raise DamagedCard(f"Card: is none; expected an object of JSON with {_HASH}.")
    return card, not isinstance(document, bytes) or written == document.removesuffix(b"\n")


def _check_signature(card: Mapping[str, Any], keys: TrustedKeys) -> None:  # Any: JSON
    signature = card.get(SIGNATURE)
    if signature is None:
        why = " (format 1, from before cards were signed)" if FORMAT not in card else ""
        raise UnsignedCard(
            f"Card: is not signed{why}: anybody may have written it. Insist by unsigned=True."
        )
    named, signed = _signature_fields(signature)
    trusted = trusted_keys(keys)
    key = trusted.get(named)
    if key is None:
        raise UnknownKey(
            f"Card: is signed by key {named}, which is none of the {len(trusted)} trusted ones. "
            "Get the publisher's public key from the publisher, not from where the card is."
        )
    if not key.verifies(signed, _message(_unsigned(card))):
        raise WrongSignature("Card: was changed after it was signed: the signature is of another.")
    # Of two trusted publishers none can speak in the name of the other.
    if card.get("publisher") != {"name": key.name, "key": key.id}:
        raise WrongSignature("Card: names another publisher than the one who signed it.")


def _signature_fields(signature: object) -> tuple[str, bytes]:
    """Return the key's id and the signature, which have one form only."""
    try:
        if not isinstance(signature, Mapping) or set(signature) != {"key", "ed25519"}:
            raise ValueError
        named, text = signature["key"], signature["ed25519"]
        if not isinstance(named, str) or not _KEY_ID.fullmatch(named):
            raise ValueError
        signed = base64.b64decode(text, validate=True)
        is_canonical = base64.b64encode(signed).decode("ascii") == text
        if len(signed) != SIGNATURE_BYTES or not is_canonical:
            raise ValueError
    except (ValueError, TypeError, binascii.Error):
        raise WrongSignature(
            "Card: its signature has not the form of one: it was changed."
        ) from None
    return named, signed


def _unsigned(card: Mapping[str, Any]) -> dict[str, Any]:  # Any: JSON
    return {name: value for name, value in card.items() if name != SIGNATURE}


def _message(card: Mapping[str, Any]) -> bytes:  # Any: JSON
    return _DOMAIN + canonical_json(dict(card), allow_nan=False)
