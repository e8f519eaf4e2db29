"""Posts on their way to a publisher: a frame kind for labelled texts, bounded in bytes.

Texts travel as they are. Frames hide who sent which row and in which order, and nothing else: what
is written in a text is seen by their collector, who has to be trusted. Noise is added where
the collected texts are published, and not before.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from noisefloor.checks import check_count
from noisefloor.publication.text.documents import text_column
from noisefloor.tables import TextRecords, TextSchema, check_texts
from noisefloor.wire import Kind, Symbols, Text, joined, record_kind

POSTED_TEXTS = "posted-texts"
MOST_POST_BYTES = 1 << 16
"""Of a post: a frame fits several of the longest."""

_TEXT, _CLASS = "text", "label"


@dataclass(frozen=True, slots=True)
class PostedText(Text):
    """A text of a post: of at most ``most_bytes`` bytes, and of more than white space.

    Nothing is published from a table with an empty text. Were one collected, whoever sent it
    would stop all publications of its corpus.
    """

    def broken_rule(self, array: pa.Array) -> str:
        """No text may be longer than the bound, and none may be empty."""
        # Named: a class with slots is made anew, and a bare super() means the old one.
        rule = Text.broken_rule(self, array)
        if not rule and not all(text.strip() for text in array.to_pylist()):
            return "has an empty text"
        return rule


def posted_texts_kind(classes: int, most_bytes: int) -> Kind:
    """Make the kind whose reports are a text and the place of its class; rows are collected.

    Args:
        classes: Of the label.
        most_bytes: Of a text, in UTF-8.
    """
    check_count(most_bytes, "most_bytes", most=MOST_POST_BYTES)
    return record_kind(POSTED_TEXTS, {_TEXT: PostedText(most_bytes), _CLASS: Symbols(classes)})


def posts_of(texts: Sequence[str] | NDArray[np.object_], labels: NDArray[np.int64]) -> object:
    """Return texts and labels as the columns of the kind."""
    return {_TEXT: list(texts), _CLASS: labels}


def cut_to_bytes(texts: Iterable[str], most_bytes: int) -> list[str]:
    """Return each text cut to at most ``most_bytes`` of UTF-8, between two characters."""
    return [_cut(text, most_bytes) for text in texts]


def _cut(text: str, most_bytes: int) -> str:
    if len(text) * 4 <= most_bytes:
        return text
    return text.encode("utf-8")[:most_bytes].decode("utf-8", "ignore")


def posted_records(
    kind: Kind, batches: Sequence[pa.RecordBatch], schema: TextSchema
) -> TextRecords | None:
    """Return the records of collected batches; None if nothing was collected.

    A post without a text is refused where frames are taken. Should an aggregator that knows no
    such rule have collected one, it is left out here: it must not stop the publications of all.

    Args:
        kind: Of the frames.
        batches: Rows as an aggregator collected them.
        schema: Of the records; it has one column of texts.
    """
    columns = kind.decode(joined(kind, batches))
    kept = [row for row, text in enumerate(columns[_TEXT]) if text.strip()]
    if not kept:
        return None
    name, _ = text_column(schema)
    texts = check_texts([columns[_TEXT][row] for row in kept], POSTED_TEXTS, name)
    labels = columns[_CLASS].astype(np.int64)[kept]
    for array in (texts, labels):
        array.flags.writeable = False
    return TextRecords(schema, {name: texts}, labels)
