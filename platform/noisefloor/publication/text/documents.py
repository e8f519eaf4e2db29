"""Labelled texts as rows of pieces of a public vocabulary."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.errors import BadParameter
from noisefloor.publication.text.tokeniser import Offsets, Pieces, TextTokeniser
from noisefloor.tables import TextRecords


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


def read_documents(records: TextRecords, tokeniser: TextTokeniser) -> Documents:
    """Cut the texts of records into pieces; each is cut by itself, to the schema's length."""
    if len(records.schema.texts) != 1:
        raise BadParameter("columns", "<texts>", "one column of texts: pairs are not published")
    ((name, longest),) = records.schema.texts.items()
    pieces, offsets = tokeniser.cut(records.texts[name], longest)
    return Documents(pieces, offsets, np.asarray(records.labels, dtype=np.int64))
