"""Texts as pieces: each text cut to its longest length, with the marks that the model expects.

A record of one text is ``[CLS] text [SEP]``, a pair is ``[CLS] first [SEP] second [SEP]``, or
whatever marks the tokeniser of the model has. Every text is cut to the longest length of its own
column: one text never shortens the other, so what a record becomes follows from that record alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.errors import BadParameter, BadTable
from noisefloor.publication.fine_tuning.backbone import Backbone
from noisefloor.tables import TextSchema, check_texts

LENGTH_STEP = 8
"""Records run through layers padded to the next multiple of this of their own length."""

_AT_ONCE = 1024


@dataclass(frozen=True, slots=True, eq=False)
class TokenTable:
    """The pieces of records, a row for each.

    Attributes:
        ids: Of pieces, padded at the end: [records, positions].
        segments: 1 for pieces of the second text, else 0.
        lengths: Pieces of each record, marks included.
        cut: How many texts of each column were longer than its longest length. It is a fact about
            the records: for their holder alone, and in no release.
    """

    ids: NDArray[np.int32]
    segments: NDArray[np.int8]
    lengths: NDArray[np.int64]
    cut: Mapping[str, int]

    @property
    def count(self) -> int:
        """How many records."""
        return len(self.lengths)

    @property
    def padded_lengths(self) -> NDArray[np.int64]:
        """The length of each record, rounded up: it follows from that record alone."""
        steps = -(-self.lengths // LENGTH_STEP)
        return np.asarray(np.minimum(steps * LENGTH_STEP, self.ids.shape[1]))

    def __getitem__(self, rows: NDArray[Any] | slice) -> "TokenTable":
        return TokenTable(self.ids[rows], self.segments[rows], self.lengths[rows], self.cut)


def longest_row(backbone: Backbone, schema: TextSchema) -> int:
    """Return the most pieces of a record, marks included, or refuse what the model cannot hold."""
    marks = int(backbone.tokenizer.num_special_tokens_to_add(len(schema.texts) == 2))
    longest = sum(schema.texts.values()) + marks
    if longest > backbone.positions:
        rule = f"at most {backbone.positions - marks} pieces in all: the model has no more places"
        raise BadParameter("text", sum(schema.texts.values()), rule)
    return longest


def tokenise(
    backbone: Backbone,
    schema: TextSchema,
    texts: Mapping[str, Sequence[Any] | NDArray[Any]],
    file: str = "texts",
) -> TokenTable:
    """Cut texts into pieces, or raise BadTable with column, row and rule.

    Args:
        backbone: Whose tokeniser cuts.
        schema: Names the text columns and their longest lengths.
        texts: The texts of each column, none empty.
        file: What an error calls them.
    """
    longest = longest_row(backbone, schema)
    columns = [_encodings(backbone, name, texts, file) for name in schema.texts]
    if len({len(column) for column in columns}) > 1:
        raise BadTable(file, "Expected as many texts in each column.")
    cut = {
        name: _shortened(column, limit)
        for (name, limit), column in zip(schema.texts.items(), columns, strict=True)
    }
    return _table(backbone, columns, longest, cut)


def _encodings(backbone: Backbone, name: str, texts: Mapping[str, Any], file: str) -> list[Any]:
    """Return the pieces of one column, without marks, as the tokeniser holds them."""
    if name not in texts:
        raise BadTable(file, "Expected this column, it is missing.", name)
    column = check_texts(texts[name], file, name)
    found: list[Any] = []
    for start in range(0, len(column), _AT_ONCE):
        part = list(column[start : start + _AT_ONCE])
        found += backbone.tokenizer.encode_batch(part, add_special_tokens=False)
    return found


def _shortened(column: list[Any], limit: int) -> int:
    """Cut the texts of a column in place, and return how many were longer."""
    long = [one for one in column if len(one) > limit]
    for one in long:
        one.truncate(limit)
    return len(long)


def _table(
    backbone: Backbone, columns: list[list[Any]], longest: int, cut: Mapping[str, int]
) -> TokenTable:
    mark = backbone.tokenizer.post_process
    rows = [mark(*record) for record in zip(*columns, strict=True)]
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    width = min(-(-max(lengths, default=1) // LENGTH_STEP) * LENGTH_STEP, longest)
    ids = np.full((len(rows), width), backbone.padding, dtype=np.int32)
    segments = np.zeros((len(rows), width), dtype=np.int8)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = row.ids
        segments[place, : len(row)] = row.type_ids
    return TokenTable(ids, segments, lengths, cut)
