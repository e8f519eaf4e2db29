"""Names that a tagger missed: those of the originals that stand in what was published.

Names and texts are compared as words in lower case, so punctuation and spaces do not hide one.
The search is exact: a name of three words is three words in a row.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary.audit import AttackOutcome
from noisefloor.publication.text import Documents
from noisefloor.publication.text.evaluation import number_windows

_WORD = re.compile(r"\w+")

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class MissedNames:
    """How often each name stands in published texts.

    Attributes:
        occurrences: Of each name, in all texts.
        texts: How many texts have it.
        searched: How many texts there were.
    """

    occurrences: Counts = field(repr=False)
    texts: Counts = field(repr=False)
    searched: int

    @property
    def found(self) -> NDArray[np.int64]:
        """The places, in the list that was given, of the names that occur."""
        return np.flatnonzero(self.occurrences)

    @property
    def outcome(self) -> AttackOutcome:
        """The share of names that occur; nothing is promised of a tagger."""
        return AttackOutcome(len(self.found), len(self.occurrences), 0.0, 1.0)


def search_names(names: Sequence[str], texts: Sequence[str]) -> MissedNames:
    """Look for names in published texts, word by word and in lower case.

    Sees:      the published texts.
    Knows:     names that the originals had: of synthetic texts all, or those of people sought.
    Guesses:   that a name that is still there was not generalised.

    Args:
        names: Of one word or more; one without any word never occurs.
        texts: As they were published.
    """
    # Words that no name has are all one: the vocabulary stays that of the names.
    known: dict[str, int] = {}
    named = [[known.setdefault(word, len(known) + 1) for word in _words(name)] for name in names]
    sought = _as_documents(named)
    searched = _as_documents([[known.get(word, 0) for word in _words(text)] for text in texts])
    occurrences = np.zeros(len(named), dtype=np.int64)
    counts = np.zeros(len(named), dtype=np.int64)
    for length in np.unique(sought.lengths[sought.lengths > 0]).tolist():
        rows = np.flatnonzero(sought.lengths == length)
        (mine, theirs), different = number_windows([sought[rows], searched], length)
        pairs = np.unique(theirs.owners * different + theirs.numbers) % different
        occurrences[rows] = np.bincount(theirs.numbers, minlength=different)[mine.numbers]
        counts[rows] = np.bincount(pairs, minlength=different)[mine.numbers]
    return MissedNames(occurrences, counts, len(texts))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _as_documents(rows: Sequence[Sequence[int]]) -> Documents:
    """Return rows of word numbers as documents."""
    offsets = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([len(row) for row in rows], out=offsets[1:])
    words = np.fromiter((word for row in rows for word in row), np.int32, int(offsets[-1]))
    return Documents(words, offsets, np.zeros(len(rows), dtype=np.int64))
