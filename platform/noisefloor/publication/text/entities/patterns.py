"""Entities that have a form: e-mail addresses, handles, dates and numbers in digits."""

import re
from collections.abc import Iterable, Sequence

from noisefloor.publication.text.entities.mentions import EntityKind, Mentions

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"

# Each begins where no part of a word precedes it, so that long runs of letters are read once.
_PATTERNS = {
    EntityKind.EMAIL: r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
    EntityKind.HANDLE: r"(?<![\w@.+-])@\w+(?![\w@])(?!\.\w)",
    EntityKind.DATE: r"(?<!\w)(?:"
    r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./]\d{1,2}[./](?:\d{4}|\d{2})|\d{4}年(?:\d{1,2}月(?:\d{1,2}日)?)?|"
    rf"{_MONTH}\s{_DAY}(?:,?\s\d{{4}})?|{_DAY}\s(?:of\s)?{_MONTH}(?:,?\s\d{{4}})?|"
    rf"{_MONTH},?\s\d{{4}}|(?:1[5-9]|20)\d\d(?:s|'s)?"
    r")(?!\w)",
    EntityKind.NUMBER: r"(?<![\w.,])(?:"
    r"\+?\(?\d{1,4}\)?(?:[ .-]\(?\d{2,4}\)?){2,5}|[+-]?\d+(?:,\d{3})*(?:\.\d+)?%?"
    r")(?!\w)",
}
_COMPILED = {kind: re.compile(pattern, re.IGNORECASE) for kind, pattern in _PATTERNS.items()}

FORMAL_KINDS = (EntityKind.EMAIL, EntityKind.HANDLE)
"""What no statistical tagger is trained for."""


class PatternTagger:
    """Entities by regular expressions.

    Args:
        kinds: Among EMAIL, HANDLE, DATE and NUMBER.
    """

    def __init__(self, kinds: Iterable[EntityKind] = tuple(_PATTERNS)) -> None:
        self.kinds = tuple(kind for kind in EntityKind if kind in set(kinds))

    @property
    def label(self) -> str:
        """The kinds, for a card."""
        return f"patterns ({', '.join(kind.name for kind in self.kinds)})"

    def close(self) -> None:
        """Do nothing: there are no workers."""

    def tag(self, texts: Sequence[str]) -> Mentions:
        """Return what has one of the forms; a number that is part of a date is both."""
        rows = [
            (document, *found.span(), int(kind))
            for kind in self.kinds
            for document, text in enumerate(texts)
            for found in _COMPILED[kind].finditer(text)
        ]
        documents, starts, ends, kinds = map(list, zip(*rows, strict=True)) if rows else [[]] * 4
        return Mentions.of(texts, documents, starts, ends, kinds)
