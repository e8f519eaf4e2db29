"""The public corpora that a publisher counts by: fetched data sets, or a file of its own."""

import os
from functools import cache
from pathlib import Path

import numpy as np

from noisefloor.errors import BadParameter
from noisefloor.publication.text.documents import Documents, plain_text, text_column
from noisefloor.publication.text.ngrams.public_corpus import PublicCorpus
from noisefloor.publication.text.tokeniser import (
    TOKENISER_FILE,
    TextTokeniser,
    shared_tokeniser,
    tokeniser_in,
)
from noisefloor.tables import PUBLIC_TEXT_SCHEMAS, load_texts

OWN_TEXTS_VARIABLE = "NOISEFLOOR_PUBLIC_TEXTS"
"""Names a table of texts, with its schema beside it, that this publisher knows to be public.

If a tokenizer.json lies beside them as well, texts are cut by it where these are the public texts.
"""

OWN = "own"
DEFAULT = "rotten-tomatoes"

_LONGEST = 512
"""Pieces of a public text that are counted."""


def public_names() -> tuple[str, ...]:
    """Return what a request may name as public texts."""
    return (*PUBLIC_TEXT_SCHEMAS, *((OWN,) if os.environ.get(OWN_TEXTS_VARIABLE) else ()))


def counting_tokeniser(name: str) -> TextTokeniser:
    """Return what texts are cut by: the vocabulary of own public texts, or the backbone's.

    Args:
        name: Of the public corpus.
    """
    table = Path(os.environ.get(OWN_TEXTS_VARIABLE, ""))
    if name == OWN and table.is_file() and (table.parent / TOKENISER_FILE).is_file():
        return tokeniser_in(table.parent.resolve())
    return shared_tokeniser()


def public_corpus(name: str, tokeniser: TextTokeniser) -> PublicCorpus:
    """Return a public corpus, cut into pieces once.

    Args:
        name: Of a data set of texts, or ``own``: the file that the environment names. Requests
            name no files: a directory of the publisher is nobody else's to choose.
        tokeniser: Cuts it.

    Raises:
        BadParameter: There is none of that name.
        MissingData: It was not fetched; the text says how.
        BadTable: The file breaks a rule.
    """
    if name not in public_names():
        rule = f"one of {', '.join(public_names())} (own: the file in ${OWN_TEXTS_VARIABLE})"
        raise BadParameter("public", "<text>", rule)
    source = os.environ[OWN_TEXTS_VARIABLE] if name == OWN else name
    path = Path(source)
    return _cut(name, source, path.stat().st_mtime_ns if path.is_file() else 0, tokeniser)


@cache
def _cut(name: str, source: str, changed_ns: int, tokeniser: TextTokeniser) -> PublicCorpus:
    records = load_texts(source)
    column, _ = text_column(records.schema)
    pieces, offsets = tokeniser.cut([plain_text(one) for one in records.texts[column]], _LONGEST)
    labels = np.zeros(records.count, dtype=np.int64)
    return PublicCorpus(name, Documents(pieces, offsets, labels), tokeniser)
