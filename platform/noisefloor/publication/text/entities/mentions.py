"""Mentions of people, places and the like in texts: spans in columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.errors import BadParameter

Integers = NDArray[np.int64]


class EntityKind(IntEnum):
    """What a mention names; the first three are the paper's."""

    PERSON = 0
    LOCATION = 1
    ORGANISATION = 2
    DATE = 3
    NUMBER = 4
    EMAIL = 5
    HANDLE = 6


@dataclass(frozen=True, slots=True, eq=False)
class Mentions:
    """Spans of texts, in the order of documents, starts, ends and kinds.

    Attributes:
        documents: The place of each mention's text.
        starts: The first character of each.
        ends: One after the last character of each.
        kinds: ``EntityKind`` as a number.
        surfaces: Each as it is written.
    """

    documents: Integers
    starts: Integers
    ends: Integers
    kinds: NDArray[np.int8]
    surfaces: NDArray[np.object_]

    def __post_init__(self) -> None:
        # Names are replaced, merged and counted document by document: out of order some would
        # stay in the texts, and a document would count more often than noise is drawn for.
        columns = (self.documents, self.starts, self.ends)
        if not np.array_equal(np.lexsort(columns[::-1]), np.arange(self.count)):
            raise BadParameter("mentions", "<rows>", "in the order of documents, starts and ends")

    @classmethod
    def of(
        cls,
        texts: Sequence[str],
        documents: Sequence[int] | Integers,
        starts: Sequence[int] | Integers,
        ends: Sequence[int] | Integers,
        kinds: Sequence[int] | NDArray[Any],
    ) -> "Mentions":
        """Sort spans, drop those that stand twice, and cut their surfaces out of the texts."""
        columns = [np.asarray(one, dtype=np.int64) for one in (documents, starts, ends, kinds)]
        if len({len(one) for one in columns}) != 1:
            raise BadParameter("spans", "<spans>", "columns of one length")
        rows = np.unique(np.stack(columns, axis=1), axis=0)
        _check_spans(rows, np.array([len(text) for text in texts], dtype=np.int64))
        surfaces = np.empty(len(rows), dtype=np.object_)
        for row, (document, start, end, _) in enumerate(rows.tolist()):
            surfaces[row] = texts[document][start:end]
        first, second, third, last = (np.ascontiguousarray(column) for column in rows.T)
        return cls(first, second, third, last.astype(np.int8), surfaces)

    @property
    def count(self) -> int:
        """How many mentions."""
        return len(self.documents)

    def __getitem__(self, rows: NDArray[Any] | slice) -> "Mentions":
        return Mentions(
            self.documents[rows],
            self.starts[rows],
            self.ends[rows],
            self.kinds[rows],
            self.surfaces[rows],
        )

    def of_kind(self, kind: EntityKind) -> Integers:
        """Return the rows of one kind."""
        return np.flatnonzero(self.kinds == kind)

    def of_documents(self, documents: Integers) -> "Mentions":
        """Return the mentions of some documents, numbered as the documents are listed.

        Args:
            documents: Places, each at most once and ascending.
        """
        places = np.searchsorted(documents, self.documents)
        is_there = places < len(documents)
        is_there[is_there] = documents[places[is_there]] == self.documents[is_there]
        some = self[is_there]
        return Mentions(places[is_there], some.starts, some.ends, some.kinds, some.surfaces)

    def disjoint(self) -> "Mentions":
        """Merge mentions that overlap, so that nothing of any of them stays in a text.

        Each run of mentions that overlap becomes one span over all of them. Its kind and surface
        are those of the longest; of equals, of the first.
        """
        if not self.count:
            return self
        far = int(self.ends.max()) + 1
        reach = np.maximum.accumulate(self.documents * far + self.ends)
        begins = self.documents * far + self.starts
        is_first = np.append(True, begins[1:] >= reach[:-1])
        run = np.cumsum(is_first) - 1
        order = np.lexsort((np.arange(self.count), self.starts - self.ends, run))
        longest = order[np.searchsorted(run[order], np.arange(run[-1] + 1))]
        firsts = np.flatnonzero(is_first)
        ends = np.maximum.reduceat(self.ends, firsts)
        return Mentions(
            self.documents[firsts],
            self.starts[firsts],
            ends,
            self.kinds[longest],
            self.surfaces[longest],
        )


def join_mentions(texts: Sequence[str], parts: Sequence[Mentions]) -> Mentions:
    """Return the mentions that several taggers found in the same texts."""
    return Mentions.of(
        texts,
        np.concatenate([np.empty(0, np.int64), *(one.documents for one in parts)]),
        np.concatenate([np.empty(0, np.int64), *(one.starts for one in parts)]),
        np.concatenate([np.empty(0, np.int64), *(one.ends for one in parts)]),
        np.concatenate([np.empty(0, np.int8), *(one.kinds for one in parts)]),
    )


def _check_spans(rows: Integers, lengths: Integers) -> None:
    if not len(rows):
        return
    documents, starts, ends, kinds = rows.T
    if documents.min() < 0 or documents.max() >= len(lengths):
        raise BadParameter("documents", "<documents>", "places of the texts")
    if starts.min() < 0 or (ends <= starts).any() or (ends > lengths[documents]).any():
        raise BadParameter("spans", "<spans>", "within their texts, one character at least")
    if kinds.min() < 0 or kinds.max() >= len(EntityKind):
        raise BadParameter("kinds", "<kinds>", "places of EntityKind")
