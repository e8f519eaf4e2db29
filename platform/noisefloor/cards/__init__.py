"""Cards: what is said of a published file, signed by its publisher.

    key = SigningKey.create(Path("publisher.key"), "example")   # once; publisher.key.pub beside it
    signed = sign_card(card, key)                               # what is handed out with the file
    check_card(signed, read_keys("publisher.key.pub"))          # a recipient, before it loads

``signing`` are the keys and their files, ``card`` is the form of a card and its checks. A
recipient trusts the keys that it was given, and no other: whoever changes a file and its card
together has to sign with another key, which is refused.
"""

from noisefloor.cards.card import (
    CARD_FORMAT,
    CardDocument,
    card_format,
    check_card,
    is_signed,
    sign_card,
)
from noisefloor.cards.signing import PublicKey, SigningKey, TrustedKeys, read_keys

__all__ = [
    "CARD_FORMAT",
    "CardDocument",
    "PublicKey",
    "SigningKey",
    "TrustedKeys",
    "card_format",
    "check_card",
    "is_signed",
    "read_keys",
    "sign_card",
]
