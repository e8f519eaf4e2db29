"""What all taggers share: the protocol, what is hidden from them, and windows of long texts.

A tagger reads each text by itself, in windows of bounded length, so that a text of a megabyte
costs what a thousand short ones do. Tags of HTML and control characters become spaces for the
tagger's eyes alone: places in the text stay as they are.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from noisefloor.publication.text.entities.mentions import EntityKind, Mentions, join_mentions

LONGEST_WINDOW = 8192
"""Characters that a tagger sees at once."""

WINDOWS_AT_ONCE = 64
"""Windows of a batch. Batches are cut by the texts alone, not by the number of processes."""

Spans = NDArray[np.int64]
"""Rows of a window, a start, an end and a kind."""

_HTML = re.compile(
    r"</?(?:a|abbr|b|big|blockquote|br|center|code|dd|div|dl|dt|em|font|h[1-6]|hr|i|img|li|ol|p|"
    r"pre|s|small|span|strike|strong|sub|sup|table|tbody|td|th|thead|tr|tt|u|ul)\s{0,9}/?>",
    re.IGNORECASE,
)
"""Tags without attributes alone: an attribute may hold a name."""

_CHARACTER = re.compile(r"&(?:[a-z]{2,8}|#[0-9]{1,7}|#x[0-9a-f]{1,6});", re.IGNORECASE)

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2028\u2029\ufeff\ud800-\udfff]")
_BREAKS = (
    re.compile(r"\n\s*\n"),
    re.compile(r"[.!?]['\")\]]?\s|[\u3002\uff01\uff1f]"),
    re.compile(r"\s"),
)
_WORD = re.compile(r"\w")
_POSSESSIVE = re.compile(r"['\u2019]s$", re.IGNORECASE)


class Tagger(Protocol):
    """Finds mentions."""

    @property
    def label(self) -> str:
        """What it is, for a card."""

    def close(self) -> None:
        """End its workers, if there are any; they start again when they are needed."""

    def tag(self, texts: Sequence[str]) -> Mentions:
        """Return the mentions in some texts; what is found in one depends on it alone."""


@dataclass(frozen=True, slots=True)
class CombinedTagger:
    """Several taggers, each of which sees every text.

    Attributes:
        parts: Taggers; mentions of several that overlap are all returned.
    """

    parts: tuple[Tagger, ...]

    @property
    def label(self) -> str:
        """What its parts are, for a card."""
        return " and ".join(part.label for part in self.parts)

    def close(self) -> None:
        """End the workers of its parts."""
        for part in self.parts:
            part.close()

    def tag(self, texts: Sequence[str]) -> Mentions:
        """Return the mentions that any of them finds."""
        return join_mentions(texts, [part.tag(texts) for part in self.parts])


def visible(text: str) -> str:
    """Return a text of the same length, with spaces for what is HTML or control characters."""
    shown = _HTML.sub(_blank, text) if "<" in text else text
    shown = _CHARACTER.sub(_blank, shown) if "&" in shown else shown
    return _CONTROL.sub(" ", shown)


def windows(text: str, longest: int = LONGEST_WINDOW) -> Iterator[tuple[int, int]]:
    """Yield where windows of a text begin and end: after a paragraph, a sentence or a word.

    The last break in the second half of a window ends it; without one it is cut at its length.
    """
    start = 0
    while len(text) - start > longest:
        end = _break(text, start + longest // 2, start + longest)
        yield start, end
        start = end
    yield start, len(text)


def window_batches(texts: Sequence[str]) -> Iterator[tuple[Spans, list[str]]]:
    """Yield the windows of all texts in batches: rows of document and start, and what is seen.

    Windows without a letter or a digit are left out.
    """
    places: list[tuple[int, int]] = []
    seen: list[str] = []
    for document, text in enumerate(texts):
        shown = visible(text)
        for start, end in windows(shown):
            window = shown[start:end]
            if _WORD.search(window) is None:
                continue
            places.append((document, start))
            seen.append(window)
            if len(seen) == WINDOWS_AT_ONCE:
                yield np.array(places, dtype=np.int64), seen
                places, seen = [], []
    if seen:
        yield np.array(places, dtype=np.int64), seen


def mentions_of(texts: Sequence[str], places: Sequence[Spans], found: Sequence[Spans]) -> Mentions:
    """Return spans of windows as mentions of texts.

    Args:
        texts: In which the windows are.
        places: Document and start of each window, batch by batch.
        found: Spans of each batch.
    """
    parts = [
        np.column_stack(
            (
                where[spans[:, 0], 0],
                where[spans[:, 0], 1] + spans[:, 1],
                where[spans[:, 0], 1] + spans[:, 2],
                spans[:, 3],
            )
        )
        for where, spans in zip(places, found, strict=True)
    ]
    rows = np.concatenate([np.empty((0, 4), dtype=np.int64), *parts])
    return Mentions.of(texts, rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3])


def trimmed(text: str, start: int, end: int, kind: EntityKind) -> tuple[int, int]:
    """Return a span without space around it and without a possessive; empty if nothing is left."""
    surface = text[start:end]
    if kind <= EntityKind.ORGANISATION:
        surface = _POSSESSIVE.sub("", surface.rstrip())
    start += len(surface) - len(surface.lstrip())
    return start, start + len(surface.strip())


def _blank(found: re.Match[str]) -> str:
    return " " * len(found.group())


def _break(text: str, least: int, most: int) -> int:
    """Return the end of the last paragraph, sentence or word that ends within bounds."""
    for pattern in _BREAKS:
        last = 0
        for found in pattern.finditer(text, least, most):
            last = found.end()
        if last:
            return last
    return most
