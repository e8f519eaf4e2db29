"""The public tokeniser that texts are counted and written with: of a backbone, without weights.

Two kinds are read from tokenizer.json: WordPiece of BERT, whose pieces go on with a word where
they begin with ``##``, and byte-level BPE of GPT-2 and its successors, whose pieces begin a word
where they begin with a space (written as ``Ġ``).
"""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import check_extra
from noisefloor.errors import BadBackbone
from noisefloor.publication.fine_tuning import (
    DEFAULT_BACKBONE,
    backbone_folder,
    shared_folder,
)

TOKENISER_FILE = "tokenizer.json"
_AT_ONCE = 1024
_BYTE_LEVEL_SPACES = "ĠĊĉč"
"""How byte-level vocabularies write a space, the two line ends and a tab; letters to Python."""

EXTRA = "text"

Pieces = NDArray[np.int32]
Offsets = NDArray[np.int64]


@dataclass(frozen=True)
class TextTokeniser:
    """Cuts texts into pieces of a public vocabulary, and writes pieces as texts.

    Attributes:
        name: Of the directory it was read from.
        tokenizer: A ``tokenizers.Tokenizer`` that neither cuts nor pads.
        sha256: Of its file.
    """

    name: str
    tokenizer: Any  # tokenizers has no types
    sha256: str

    @cached_property
    def size(self) -> int:
        """How many pieces there are, marks of models included."""
        return int(self.tokenizer.get_vocab_size(with_added_tokens=True))

    @cached_property
    def marks(self) -> NDArray[np.int64]:
        """Pieces that are no part of a text: padding, first and last marks and the like."""
        special = self.tokenizer.get_added_tokens_decoder()
        unused = [
            place for word, place in self.tokenizer.get_vocab().items() if word[:7] == "[unused"
        ]
        found = {place for place, token in special.items() if token.special} | set(unused)
        return np.array(sorted(found), dtype=np.int64)

    @cached_property
    def words(self) -> NDArray[np.object_]:
        """Each piece as the vocabulary writes it."""
        found = np.full(self.size, "", dtype=np.object_)
        for word, place in self.tokenizer.get_vocab(with_added_tokens=True).items():
            found[place] = word
        return found

    @cached_property
    def is_byte_level(self) -> bool:
        """Whether pieces are of bytes, with the spaces before them."""
        return "ByteLevel" in type(self.tokenizer.decoder).__name__

    @cached_property
    def continuations(self) -> NDArray[np.int64]:
        """Pieces that go on with a word: letters or digits that follow no space of their own.

        At the start of a text, byte-level pieces of this kind begin a word as well.
        """
        goes_on = _goes_on_byte_level if self.is_byte_level else _goes_on_word_piece
        found = [place for place, word in enumerate(self.words) if goes_on(word)]
        return np.setdiff1d(np.array(found, dtype=np.int64), self.marks)

    def cut(self, texts: Sequence[str] | NDArray[Any], longest: int) -> tuple[Pieces, Offsets]:
        """Return the first pieces of each text, all in one row, and where each text begins.

        Args:
            texts: Any texts; one that has no piece is empty.
            longest: The most pieces of a text; whatever follows is left out.
        """
        parts: list[NDArray[np.int32]] = []
        for start in range(0, len(texts), _AT_ONCE):
            some = list(texts[start : start + _AT_ONCE])
            for one in self.tokenizer.encode_batch_fast(some, add_special_tokens=False):
                parts.append(np.array(one.ids[:longest], dtype=np.int32))
        offsets = np.zeros(len(parts) + 1, dtype=np.int64)
        np.cumsum([len(part) for part in parts], out=offsets[1:])
        return np.concatenate(parts or [np.empty(0, np.int32)]), offsets

    def written(self, pieces: Pieces, offsets: Offsets) -> list[str]:
        """Return each row of pieces as a text."""
        rows = np.split(pieces, offsets[1:-1])
        texts: list[str] = []
        for start in range(0, len(rows), _AT_ONCE):
            some = [row.tolist() for row in rows[start : start + _AT_ONCE]]
            texts += self.tokenizer.decode_batch(some, skip_special_tokens=True)
        # Byte-level pieces have their spaces within, the first one of a text too.
        return [text.strip() for text in texts] if self.is_byte_level else texts


def _goes_on_word_piece(word: str) -> bool:
    return word[:2] == "##"


def _goes_on_byte_level(word: str) -> bool:
    return word[:1].isalnum() and word[:1] not in _BYTE_LEVEL_SPACES


def shared_tokeniser() -> TextTokeniser:
    """Return the tokeniser of this machine's backbone, loaded once while its file is the same."""
    check_extra("Publishing texts", EXTRA, "tokenizers")
    return tokeniser_in(shared_folder())


def tokeniser_in(folder: Path) -> TextTokeniser:
    """Return the tokeniser of a directory, loaded once while its file is the same."""
    file = folder / TOKENISER_FILE
    return _loaded(folder, file.stat().st_mtime_ns if file.is_file() else 0)


@cache
def _loaded(folder: Path, changed_ns: int) -> TextTokeniser:
    return load_tokeniser(folder)


def load_tokeniser(source: str | os.PathLike[str] = DEFAULT_BACKBONE) -> TextTokeniser:
    """Load the tokeniser of a backbone, and nothing else of it.

    Args:
        source: A directory with tokenizer.json, or the name of a fetched model.

    Raises:
        MissingExtra: tokenizers are not installed.
        MissingData: A named model was not fetched; the text says how.
        BadBackbone: The directory holds no such tokeniser.
    """
    check_extra("Publishing texts", EXTRA, "tokenizers")
    from tokenizers import Tokenizer

    folder = backbone_folder(Path(source) if isinstance(source, os.PathLike) else source)
    file = folder / TOKENISER_FILE
    if not file.is_file():
        raise BadBackbone(folder, f"expected a tokeniser in {TOKENISER_FILE}")
    content = file.read_bytes()
    try:
        json.loads(content)
        tokenizer: Any = Tokenizer.from_buffer(content)
    except Exception as error:  # whatever its parser raises on a file of somebody else's
        raise BadBackbone(
            folder, f"{TOKENISER_FILE} cannot be read ({type(error).__name__})"
        ) from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return TextTokeniser(folder.name, tokenizer, hashlib.sha256(content).hexdigest())
