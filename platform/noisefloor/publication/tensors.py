"""Arrays as safetensors files, and a loader that refuses a file that its card does not describe.

The form holds numbers and texts only: reading one runs no code. It has no checksum of its own, so
a reader of a file compares its SHA-256 with the card's, which its publisher signed.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.cards import CardDocument, TrustedKeys, check_card
from noisefloor.checks import check_extra
from noisefloor.errors import BadSnapshot

MEDIA_TYPE = "application/octet-stream"

MOST_RELEASE_BYTES = 64 << 20
"""Of a published file; a method refuses a plan whose file would be larger."""


def check_writable() -> None:
    """Refuse to publish, before anything is charged, where files cannot be written."""
    check_extra("Publishing", "models", "safetensors")


def write_tensors(
    tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, str] | None = None
) -> bytes:
    """Write arrays and texts as one file."""
    from safetensors import numpy as files  # lazy: the core does without

    whole = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    return files.save(whole, dict(metadata or {}))


def read_tensors(content: bytes) -> dict[str, NDArray[Any]]:
    """Read the arrays of a file, or raise BadSnapshot."""
    from safetensors import SafetensorError
    from safetensors import numpy as files

    try:
        return dict(files.load(content))
    except (SafetensorError, ValueError, KeyError, TypeError):
        raise BadSnapshot("Artefact: is no safetensors file.") from None


def read_metadata(content: bytes) -> dict[str, str]:
    """Read the texts of a file, or raise BadSnapshot.

    The file begins with the length of its header, which is JSON.
    """
    try:
        size = int.from_bytes(content[:8], "little")
        header: Any = json.loads(content[8 : 8 + size]) if size <= len(content) - 8 else None
        return {str(key): str(text) for key, text in header.get("__metadata__", {}).items()}
    except (ValueError, AttributeError, RecursionError):
        raise BadSnapshot("Artefact: is no safetensors file.") from None


def load_table(
    content: bytes, card: CardDocument, keys: TrustedKeys = (), *, unsigned: bool = False
) -> dict[str, NDArray[Any]]:
    """Return the arrays of a published file, once its publisher signed for it.

    Args:
        content: As it was fetched.
        card: Its card, as it was fetched: bytes, or what they are as JSON.
        keys: Of the publishers that are trusted, or the file that holds them.
        unsigned: Whether to insist on a card whose signature is not checked.

    Raises:
        BadCard: The card is unsigned, of another key, changed, of a newer format or damaged.
        BadSnapshot: The file was changed, or is another one, or no such file at all.
    """
    check_release(content, card, keys, unsigned=unsigned)
    return read_tensors(content)


def check_release(
    content: bytes, card: CardDocument, keys: TrustedKeys = (), *, unsigned: bool = False
) -> dict[str, Any]:  # Any: JSON
    """Return the card of a file once it is signed, and the file is the one that it describes.

    See ``load_table``; nothing of the file is read but its hash.
    """
    checked = check_card(card, keys, unsigned=unsigned)
    if hashlib.sha256(content).hexdigest() != checked["content_sha256"]:
        raise BadSnapshot("Artefact: is not the one of this card (SHA-256 differs).")
    return checked
