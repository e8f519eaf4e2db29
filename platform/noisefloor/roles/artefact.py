"""A published artefact: bytes, what they are, and a card that says what was guaranteed of them.

What is stored begins with ``NFA`` and the version of its layout. The card in it has a format of
its own: one of format 1 was not signed, and is handed out as what it is.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any

from noisefloor.canonical_json import canonical_json
from noisefloor.errors import BadParameter, BadSnapshot
from noisefloor.privacy import Claim, Guarantee, Neighbours, TrustModel, number_or_inf

MAGIC = b"NFA1"
MOST_CARD_BYTES = 1 << 20
_NEWER = frozenset(b"%d" % version for version in range(2, 10))

_MEDIA_TYPE = re.compile(r"[a-z]+/[a-z0-9][a-z0-9.+-]{0,63}", re.ASCII)

_PROTECTED = {
    Neighbours.BIT: "whether one bit of somebody's data was set",
    Neighbours.MOVE_ONE: "which of two ads one click was on",
    Neighbours.ITEM: "what one entry of somebody's data was",
    Neighbours.RECORD_ADD_REMOVE: "whether any one record was in the data",
    Neighbours.RECORD_SUBSTITUTE: "whether any one record was in the data or another in its place",
    Neighbours.DOCUMENT: "whether any one text was in the data",
    Neighbours.USER: "anything about any one person's data",
}
_TRUSTED = {
    TrustModel.LOCAL: "Noise was added on the device: nobody has to be trusted.",
    TrustModel.CENTRAL: (
        "Noise was added by the publisher, who saw the data and has to be trusted."
    ),
}


@dataclass(frozen=True, slots=True)
class Artefact:
    """What is published.

    Attributes:
        content: The bytes.
        media_type: What they are, as in HTTP.
        card: What is said of them: numbers, texts, lists and objects of these; signed, if the
            publisher has a key.
    """

    content: bytes
    media_type: str
    card: dict[str, Any]  # Any: JSON

    def __post_init__(self) -> None:
        if not _MEDIA_TYPE.fullmatch(self.media_type):
            raise BadParameter("media_type", self.media_type, f"to match {_MEDIA_TYPE.pattern}")

    @property
    def etag(self) -> str:
        """The hash of card and content, in the quotes of HTTP's ETag."""
        return f'"{hashlib.blake2b(self.packed(), digest_size=16).hexdigest()}"'

    @property
    def card_bytes(self) -> bytes:
        """The card as it is handed out: the very bytes that were signed, with the signature."""
        return canonical_json(self.card, allow_nan=False)

    def packed(self) -> bytes:
        """Write the artefact as one piece of bytes, which is what is stored."""
        head = canonical_json({"media_type": self.media_type, "card": self.card}, allow_nan=False)
        if len(head) > MOST_CARD_BYTES:
            raise BadParameter("card", "<card>", f"at most {MOST_CARD_BYTES} bytes")
        body = len(head).to_bytes(4, "big") + head + self.content
        return MAGIC + hashlib.sha256(body).digest() + body


def unpack_artefact(data: bytes) -> Artefact:
    """Read an artefact back, or raise BadSnapshot: damaged bytes are not published."""
    magic, digest, body = data[:4], data[4:36], data[36:]
    if magic[:3] == MAGIC[:3] and magic[3:] in _NEWER:
        rule = f"this version reads {MAGIC[3:].decode()}. Update noisefloor"
        raise BadSnapshot(f"Artefact: is stored in layout {magic[3:].decode()}; {rule}.")
    if magic != MAGIC or hashlib.sha256(body).digest() != digest:
        raise BadSnapshot("Artefact: is not one, or is damaged.")
    end = 4 + int.from_bytes(body[:4], "big")
    try:
        head = json.loads(body[4:end])
        return Artefact(body[end:], head["media_type"], head["card"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise BadSnapshot("Artefact: its card cannot be read.") from None


def guarantee_in_words(guarantee: Guarantee) -> str:
    """Say what a guarantee promises, in words for people who do not know the letters."""
    protected = _PROTECTED[guarantee.neighbours]
    if not guarantee.is_finite:
        return f"Nothing is guaranteed ({guarantee.reason}). It may show {protected}."
    slack = (
        f" but for a probability of {guarantee.delta:g} that more comes out"
        if guarantee.delta
        else ""
    )
    return (
        f"Whoever sees this learns little about {protected}: no outcome gets more than "
        f"e^{guarantee.epsilon:g} times as likely by it{slack}. {_TRUSTED[guarantee.model]}"
    )


def claim_fields(claim: Claim) -> dict[str, Any]:  # Any: JSON
    """Write what was claimed and what was proved, side by side, with the verdict."""
    return {
        "claimed": _guarantee_fields(claim.claimed),
        "proved": _guarantee_fields(claim.proved),
        "verdict": claim.verdict,
    }


def _guarantee_fields(guarantee: Guarantee) -> dict[str, Any]:  # Any: JSON
    return {
        "epsilon": number_or_inf(guarantee.epsilon),
        "delta": guarantee.delta,
        "neighbours": guarantee.neighbours.value,
        "model": guarantee.model.value,
        "reason": guarantee.reason,
    }
