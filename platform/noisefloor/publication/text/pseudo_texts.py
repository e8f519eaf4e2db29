"""The file of a release of texts: JSON Lines, one made-up text with its label in each.

    {"mood": "good", "review": "a fine film and a clever story"}

Reading it needs nothing of this package. Line ends inside of texts are written as escapes,
so that a line is a text.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.cards import CardDocument, TrustedKeys
from noisefloor.errors import BadParameter, BadSnapshot
from noisefloor.publication.tensors import check_release
from noisefloor.publication.text.documents import text_column
from noisefloor.tables import TextRecords, TextSchema

TEXTS_MEDIA_TYPE = "application/x-ndjson"
FORMAT = "jsonl"


@dataclass(frozen=True, slots=True, eq=False)
class PseudoTexts:
    """Texts that are published.

    Attributes:
        schema: Of the texts that they stand for.
        texts: Made-up texts.
        labels: The place of each text's class.
    """

    schema: TextSchema
    texts: Sequence[str]
    labels: NDArray[np.int64]

    def __post_init__(self) -> None:
        text_column(self.schema)
        if len(self.texts) != len(self.labels):
            raise BadParameter("labels", len(self.labels), f"one for each of {len(self.texts)}")

    @property
    def count(self) -> int:
        """How many texts."""
        return len(self.texts)

    def written(self) -> bytes:
        """Return the file that is published."""
        name, _ = text_column(self.schema)
        values = self.schema.classes.values
        lines = [
            json.dumps({name: text, self.schema.label: values[label]}, ensure_ascii=False)
            for text, label in zip(self.texts, self.labels.tolist(), strict=True)
        ]
        # JSON escapes line feeds; these two end a line for some readers as well.
        whole = "\n".join([*lines, ""]).replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
        return whole.encode("utf-8", "backslashreplace")

    @classmethod
    def read(cls, content: bytes, schema: TextSchema) -> "PseudoTexts":
        """Read a published file, or raise BadSnapshot."""
        name, _ = text_column(schema)
        places = {value: place for place, value in enumerate(schema.classes.values)}
        texts, labels = [], []
        try:
            for line in content.decode("utf-8").split("\n")[:-1]:
                row = json.loads(line)
                if set(row) != {name, schema.label} or not isinstance(row[name], str):
                    raise ValueError
                texts.append(row[name])
                labels.append(places[row[schema.label]])
        except (ValueError, KeyError, TypeError, RecursionError):
            raise BadSnapshot("Artefact: holds no texts of this schema.") from None
        return cls(schema, texts, np.array(labels, dtype=np.int64))

    def records(self) -> TextRecords:
        """Return the texts as records, to train on; a text without pieces is left out."""
        name, _ = text_column(self.schema)
        kept = np.array([bool(text.strip()) for text in self.texts], dtype=np.bool_)
        column = np.array(self.texts, dtype=np.object_)[kept]
        return TextRecords(self.schema, {name: column}, self.labels[kept])


def load_pseudo_texts(
    content: bytes,
    card: CardDocument,
    schema: TextSchema,
    keys: TrustedKeys = (),
    *,
    unsigned: bool = False,
) -> PseudoTexts:
    """Return published texts, once their publisher signed for them.

    Args:
        content: As it was fetched.
        card: Its card, as it was fetched: bytes, or what they are as JSON.
        schema: Of the texts; the card says which columns there are.
        keys: Of the publishers that are trusted, or the file that holds them.
        unsigned: Whether to insist on a card whose signature is not checked.

    Raises:
        BadCard: The card is unsigned, of another key, changed, of a newer format or damaged.
        BadSnapshot: The file was changed, or is another one, or holds no such texts.
    """
    check_release(content, card, keys, unsigned=unsigned)
    return PseudoTexts.read(content, schema)
