"""Documents as what modules are trained on: padded rows, each laid out by itself.

Texts are cut to about their own length by ``PaddedInputs``, so that what a row holds within its
cut may depend on that row alone. An encoder should end with the last piece, so its row has the
text at the end of its own cut, and nothing (-1) before it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.errors import BadTable
from noisefloor.publication.text.documents import Documents
from noisefloor.publication.text.generators.shapes import STEP, EncoderReads, GeneratorShape
from noisefloor.publication.text.generators.vocabulary import PieceVocabulary

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class TrainingTexts:
    """Texts as rows of places.

    Attributes:
        inputs: All pieces but the last of a text, then zeros, [texts, positions].
        read: What an encoder reads, -1 where there is nothing; no columns without an encoder.
        labels: Of each text.
        targets: The piece after each input, -1 where there is none.
        lengths: Pieces of each text.
        reads_text: Whether what an encoder reads is as long as the inputs.
    """

    inputs: Rows
    read: Rows
    labels: Rows
    targets: Rows
    lengths: Rows
    reads_text: bool

    def __getitem__(self, rows: Rows | slice) -> "TrainingTexts":
        return TrainingTexts(
            self.inputs[rows],
            self.read[rows],
            self.labels[rows],
            self.targets[rows],
            self.lengths[rows],
            self.reads_text,
        )

    @property
    def count(self) -> int:
        """How many texts."""
        return len(self.labels)


def lay_out(
    documents: Documents,
    vocabulary: PieceVocabulary,
    shape: GeneratorShape,
    reads: EncoderReads | None = None,
) -> TrainingTexts:
    """Return documents as rows for a module of a shape.

    Args:
        documents: Any of at most the shape's longest.
        vocabulary: Their places.
        shape: Of the module.
        reads: What an encoder is given; as in training if left out.

    Raises:
        BadTable: A text is longer than the shape's longest.
    """
    lengths = documents.lengths
    if lengths.max(initial=0) > shape.longest:
        raise BadTable("documents", f"Expected texts of at most {shape.longest} pieces.")
    width = shape.positions
    owners = documents.owners
    column = np.arange(len(documents.pieces)) - documents.offsets[owners]
    places = vocabulary.places(documents.pieces)
    whole = np.full((documents.count, width + 1), -1, dtype=np.int64)
    whole[owners, column] = places
    inputs = np.where(whole[:, 1:] >= 0, whole[:, :-1], 0)
    read = whole[:, :0]
    reads_text = shape.kind == "encoder-decoder" and (reads or shape.reads) == "text"
    if reads_text:
        read = np.full((documents.count, width), -1, dtype=np.int64)
        cut = np.maximum(-(-lengths // STEP), 1) * STEP
        read[owners, column + (cut - lengths)[owners]] = places
    elif shape.kind == "encoder-decoder":
        read = seed_rows(whole[:, 0], shape)
    return TrainingTexts(
        np.ascontiguousarray(inputs),
        np.ascontiguousarray(read),
        documents.labels.astype(np.int64),
        np.ascontiguousarray(whole[:, 1:]),
        lengths.astype(np.int64),
        reads_text,
    )


def seed_rows(seeds: Rows, shape: GeneratorShape) -> Rows:
    """Return what an encoder reads where it is given the first piece of a text alone.

    One that was trained on whole texts gets it as the text of one piece that it is.
    """
    before = STEP - 1 if shape.reads_text else 0
    return np.pad(seeds[:, None], ((0, 0), (before, 0)), constant_values=-1)
