"""Publishing texts: documents in, made-up documents with a guarantee out.

    tokeniser = load_tokeniser()                       # of the public backbone; no weights
    documents = read_documents(records, tokeniser)     # one text column, cut to its longest length

``documents`` holds texts as pieces.
"""

from noisefloor.publication.text.documents import Documents, read_documents
from noisefloor.publication.text.tokeniser import (
    TextTokeniser,
    load_tokeniser,
    shared_tokeniser,
)

__all__ = ["Documents", "TextTokeniser", "load_tokeniser", "read_documents", "shared_tokeniser"]
