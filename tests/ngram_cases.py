"""Made-up documents, a public corpus and a tokeniser of few words, for n-grams."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from made_up_texts import SIZE, class_texts
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication.text import Documents, TextTokeniser, load_tokeniser
from noisefloor.publication.text.ngrams import NgramPlan, PublicCorpus
from tiny_backbones import SPECIAL, write_piece_file

LENGTH = 20


@cache
def number_tokeniser() -> TextTokeniser:
    """Return a tokeniser of words that are numbers, after the marks of BERT."""
    with TemporaryDirectory() as folder:
        words = tuple(f"w{number}" for number in range(SIZE))
        return load_tokeniser(write_piece_file(Path(folder), words))


def in_words(documents: Documents) -> Documents:
    """Return documents whose pieces are words of the tokeniser, not marks."""
    pieces = (documents.pieces + len(SPECIAL)).astype(np.int32)
    return Documents(pieces, documents.offsets, documents.labels)


def private_texts(count: int, seed: int = 1) -> Documents:
    """Return documents of two classes."""
    return in_words(class_texts(count, seed, "private"))


@cache
def public_texts(count: int = 600) -> PublicCorpus:
    """Return a public corpus of the same kind."""
    return PublicCorpus(
        "made up", in_words(class_texts(count, 2, "public", pull=0.1)), number_tokeniser()
    )


def a_plan(
    epsilon: float = 4.0,
    neighbours: Neighbours = Neighbours.RECORD_ADD_REMOVE,
    classes: int = 2,
    longest: int = LENGTH,
) -> NgramPlan:
    """Return a plan for made-up documents."""
    cost = Guarantee(epsilon, neighbours, delta=1e-5, model=TrustModel.CENTRAL)
    return NgramPlan.of(cost, classes, longest, number_tokeniser().size)
