"""Labelled texts as rows of pieces of a public vocabulary."""

import html
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.errors import BadParameter
from noisefloor.publication.text.tokeniser import Offsets, Pieces, TextTokeniser
from noisefloor.tables import TextRecords, TextSchema


@dataclass(frozen=True, slots=True, eq=False)
class Documents:
    """Documents as pieces, one after the other.

    Attributes:
        pieces: Of all documents.
        offsets: Where each document begins, and at the end where the last one ends.
        labels: The place of each document's class.
    """

    pieces: Pieces
    offsets: Offsets
    labels: NDArray[np.int64]

    def __post_init__(self) -> None:
        if len(self.offsets) != len(self.labels) + 1 or self.offsets[-1] != len(self.pieces):
            raise BadParameter("offsets", "<offsets>", "where each document begins, and the end")
        # Sparse matrices are built on these arrays, and sort theirs in place.
        for array in (self.pieces, self.offsets, self.labels):
            array.flags.writeable = False

    @property
    def count(self) -> int:
        """How many documents."""
        return len(self.labels)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Pieces of each document."""
        return np.diff(self.offsets)

    @property
    def owners(self) -> NDArray[np.int64]:
        """The document of each piece."""
        return np.repeat(np.arange(self.count), self.lengths)

    def __getitem__(self, rows: NDArray[Any] | slice) -> "Documents":
        chosen = np.arange(self.count)[rows]
        lengths = self.lengths[chosen]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        places = np.arange(offsets[-1]) + np.repeat(self.offsets[chosen] - offsets[:-1], lengths)
        return Documents(self.pieces[places], offsets, self.labels[chosen])


_TAG = re.compile(r"</?[A-Za-z][^<>]{0,200}>")
"""A tag of HTML, such as a line break in a review."""


def plain_text(text: str) -> str:
    """Return a text without tags of HTML, and with what its character references stand for."""
    return html.unescape(_TAG.sub(" ", text))


def text_column(schema: TextSchema) -> tuple[str, int]:
    """Return the name and the longest length of the one column of texts."""
    if len(schema.texts) != 1:
        raise BadParameter("columns", "<texts>", "one column of texts: pairs are not published")
    ((name, longest),) = schema.texts.items()
    return name, longest


def read_documents(records: TextRecords, tokeniser: TextTokeniser) -> Documents:
    """Cut the texts of records into pieces, without markup, each by itself to the schema's length.

    A text that has no piece, such as one of tags alone, is a document without pieces.
    """
    name, longest = text_column(records.schema)
    pieces, offsets = tokeniser.cut([plain_text(one) for one in records.texts[name]], longest)
    return Documents(pieces, offsets, np.asarray(records.labels, dtype=np.int64))
