"""Spelling variants: case, accents, points, ``the`` and short forms make no other name."""

import functools
import re
import unicodedata

_MARKS = re.compile(r"[.\u2019'`\u00b4]")
_ACCENTS = re.compile(r"[\u0300-\u036f]")
_OTHERS = re.compile(r"[\W_]+")
_POSSESSIVE = re.compile(r"['\u2019]s\b", re.IGNORECASE)
_SHORT = {"saint": "st", "sainte": "ste", "mount": "mt", "fort": "ft"}


@functools.lru_cache(maxsize=1 << 16)
def spelling_key(name: str) -> str:
    """Return what all spellings of a name have in common."""
    if name.isascii():
        plain = name.lower()
    else:
        # Marks of Latin, Greek and Cyrillic letters alone: in other scripts they are letters.
        apart = _ACCENTS.sub("", unicodedata.normalize("NFKD", name))
        plain = unicodedata.normalize("NFC", apart).casefold()
    plain = _MARKS.sub("", _POSSESSIVE.sub("", plain))
    words = [_SHORT.get(word, word) for word in _OTHERS.split(plain) if word]
    return " ".join(words[1:] if len(words) > 1 and words[0] == "the" else words)
