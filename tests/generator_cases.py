"""Small documents, plans and generators of every kind, all from seeded draws."""

from collections.abc import Sequence

import numpy as np

from noisefloor.privacy import Neighbours
from noisefloor.publication.private_sgd import SgdPlan, initialise
from noisefloor.publication.text import Documents
from noisefloor.publication.text.generators import (
    GeneratorPlan,
    GeneratorShape,
    PieceVocabulary,
    TextGenerator,
    most_frequent_pieces,
)
from noisefloor.publication.text.generators.model_weights import weights_of
from noisefloor.publication.text.generators.modules import module_of
from noisefloor.randomness import SeededSource

LABELS = ("bad", "good")
LONGEST = 11
FIRST_PIECE, PIECES = 100, 20


def documents_of(texts: Sequence[Sequence[int]], labels: Sequence[int] | None = None) -> Documents:
    """Return documents from lists of pieces."""
    offsets = np.concatenate([[0], np.cumsum([len(text) for text in texts])]).astype(np.int64)
    pieces = np.array([piece for text in texts for piece in text], dtype=np.int32)
    own = np.zeros(len(texts)) if labels is None else np.array(labels)
    return Documents(pieces, offsets, own.astype(np.int64))


def some_documents(count: int = 24, *path: str | int) -> Documents:
    """Return documents of 0 to 11 pieces, of both labels."""
    drawn = SeededSource(7, "documents", *path).generator()
    lengths = drawn.integers(0, LONGEST + 1, count)
    texts = [drawn.integers(FIRST_PIECE, FIRST_PIECE + PIECES, one).tolist() for one in lengths]
    return documents_of(texts, drawn.integers(0, 2, count).tolist())


def a_vocabulary(size: int = 12) -> PieceVocabulary:
    """Return a public vocabulary that lacks some of the documents' pieces."""
    frequent = np.repeat(np.arange(PIECES), np.arange(PIECES, 0, -1)) + FIRST_PIECE
    return most_frequent_pieces(frequent, size, is_public=True)


SHAPES = {
    "encoder-decoder": GeneratorShape(
        kind="encoder-decoder", vocabulary=13, longest=LONGEST, embedding=6, hidden=5
    ),
    "encoder-decoder, tied, for both labels": GeneratorShape(
        kind="encoder-decoder",
        vocabulary=13,
        longest=LONGEST,
        classes=2,
        embedding=6,
        hidden=5,
        layers=2,
        is_tied=True,
    ),
    "encoder-decoder from the seed": GeneratorShape(
        kind="encoder-decoder", vocabulary=13, longest=LONGEST, embedding=6, hidden=5, reads="seed"
    ),
    "language model for both labels": GeneratorShape(
        kind="language-model", vocabulary=13, longest=LONGEST, classes=2, embedding=6, hidden=5
    ),
    "transformer": GeneratorShape(
        kind="transformer", vocabulary=13, longest=LONGEST, embedding=8, hidden=9, heads=2
    ),
    "transformer, tied, for both labels": GeneratorShape(
        kind="transformer",
        vocabulary=13,
        longest=LONGEST,
        classes=2,
        embedding=8,
        hidden=9,
        heads=2,
        layers=2,
        is_tied=True,
    ),
}


def a_generator(shape: GeneratorShape, *path: str | int) -> TextGenerator:
    """Return a generator with drawn weights, far from uniform."""
    weights = []
    for place in range(1 if shape.classes else 2):
        module = module_of(shape)
        initialise(module, SeededSource(8, "generator", place, *path))
        weights.append(weights_of(module))
    return TextGenerator(shape, a_vocabulary(), LABELS, "0" * 64, tuple(weights))


def a_plan(
    shape: GeneratorShape,
    *,
    examples: Sequence[int] = (12, 12),
    dropout: float = 0.0,
    neighbours: Neighbours = Neighbours.RECORD_ADD_REMOVE,
) -> GeneratorPlan:
    """Return a plan of four steps with some noise, without looking for a budget."""
    sizes = [sum(examples)] if shape.classes else examples
    trainings = tuple(
        SgdPlan(
            examples=size, expected_batch=6, steps=4, noise_multiplier=0.7, neighbours=neighbours
        )
        for size in sizes
    )
    return GeneratorPlan(
        shape=shape, trainings=trainings, delta=1e-5, noise_multiplier=0.7, dropout=dropout
    )
