"""Publishing texts: documents in, made-up documents with a guarantee out.

    tokeniser = load_tokeniser()                       # of the public backbone; no weights
    documents = read_documents(records, tokeniser)     # one text column, cut to its longest length

``documents`` holds texts as pieces, ``tokeniser`` cuts and writes them, ``posted_texts`` is the
frame kind in which posts travel, ``pseudo_texts`` the file that is published. Beside them:
``entities`` and ``generalisation`` for names, ``ngrams`` and ``generators`` write texts,
``evaluation`` judges them.
"""

from noisefloor.publication.text.documents import (
    Documents,
    plain_text,
    read_documents,
    text_column,
)
from noisefloor.publication.text.posted_texts import (
    POSTED_TEXTS,
    PostedText,
    cut_to_bytes,
    posted_records,
    posted_texts_kind,
    posts_of,
)
from noisefloor.publication.text.pseudo_texts import (
    TEXTS_MEDIA_TYPE,
    PseudoTexts,
    load_pseudo_texts,
)
from noisefloor.publication.text.tokeniser import (
    TextTokeniser,
    load_tokeniser,
    shared_tokeniser,
)

__all__ = [
    "POSTED_TEXTS",
    "TEXTS_MEDIA_TYPE",
    "Documents",
    "PostedText",
    "PseudoTexts",
    "TextTokeniser",
    "cut_to_bytes",
    "load_pseudo_texts",
    "load_tokeniser",
    "plain_text",
    "posted_records",
    "posted_texts_kind",
    "posts_of",
    "read_documents",
    "shared_tokeniser",
    "text_column",
]
