"""Entities by an encoder that labels pieces, from a directory as transformers write it.

Nothing is downloaded, and only safetensors are read: weights that were pickled run code when they
are read. A word has the label of its first piece. Words of one kind that follow each other are
one mention, unless a label says that another begins.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from noisefloor.checks import check_extra
from noisefloor.errors import BadBackbone
from noisefloor.publication.text.entities.labels import kind_of
from noisefloor.publication.text.entities.mentions import EntityKind, Mentions
from noisefloor.publication.text.entities.tagger import (
    Spans,
    mentions_of,
    trimmed,
    window_batches,
)

EXTRA = "text-models"

CONFIG, WEIGHTS, SHARDS = "config.json", "model.safetensors", "model.safetensors.index.json"


class TokenTagger:
    """A token-classification model of a directory.

    Args:
        folder: With config.json, model.safetensors and the files of a fast tokeniser; config.json
            has ``id2label`` with labels such as ``B-PER``.

    Raises:
        MissingExtra: transformers are not installed.
        BadBackbone: The directory holds no such model; the text names it and the rule.
    """

    def __init__(self, folder: str | Path) -> None:
        check_extra("Tagging entities by a model", EXTRA, "torch", "transformers", "safetensors")
        self.folder = Path(folder)
        _check_files(self.folder)
        self._labels = _labels(self.folder)
        self._model, self._tokenizer = _load(self.folder)

    @property
    def label(self) -> str:
        """The directory's name, for a card."""
        return self.folder.name

    def close(self) -> None:
        """Do nothing: there are no workers."""

    def tag(self, texts: Sequence[str]) -> Mentions:
        """Return the mentions in some texts, window by window."""
        places, found = [], []
        for where, windows in window_batches(texts):
            places.append(where)
            found.append(self._spans(windows))
        return mentions_of(texts, places, found)

    def _spans(self, windows: list[str]) -> Spans:
        rows = []
        for place, window in enumerate(windows):
            for start, end, kind in _joined(self._words(window), self._labels):
                first, last = trimmed(window, start, end, kind)
                if first < last:
                    rows.append((place, first, last, int(kind)))
        return np.array(rows, dtype=np.int64).reshape(-1, 4)

    def _words(self, window: str) -> list["_Word"]:
        """Return the words of a window with their labels; a long one stands in several rows.

        A window runs by itself: no other text has a part in the last digits of its numbers.
        """
        import torch

        cut = self._tokenizer(window, truncation=True, return_overflowing_tokens=True)
        words: list[_Word] = []
        last = -1
        for encoding in cut.encodings:
            ids, mask = torch.tensor([encoding.ids]), torch.tensor([encoding.attention_mask])
            with torch.no_grad():
                logits = self._model(input_ids=ids, attention_mask=mask).logits
            labels = logits[0].argmax(-1).tolist()
            pieces = zip(encoding.word_ids, encoding.offsets, labels, strict=True)
            for word, (start, end), label in pieces:
                if word is None:
                    continue
                if word == last:
                    words[-1] = words[-1]._replace(end=end)
                else:
                    words.append(_Word(start, end, label))
                last = word
        return words


class _Word(NamedTuple):
    start: int
    end: int
    label: int


def _joined(
    words: Sequence[_Word], labels: Sequence[str]
) -> Iterator[tuple[int, int, EntityKind]]:
    """Yield spans of words of one kind."""
    start, end, now = 0, 0, None
    for word in words:
        label = labels[word.label]
        kind = kind_of(label)
        if kind is not None and kind is now and label[:2].upper() not in ("B-", "S-", "U-"):
            end = word.end
            continue
        if now is not None:
            yield start, end, now
        start, end, now = word.start, word.end, kind
    if now is not None:
        yield start, end, now


def _check_files(folder: Path) -> None:
    """Refuse a directory that is no model, or whose weights run code."""
    if not folder.is_dir():
        raise BadBackbone(folder, "expected a directory, there is none of that name")
    if not (folder / CONFIG).is_file():
        raise BadBackbone(folder, f"expected a model directory with {CONFIG}")
    if not (folder / WEIGHTS).is_file() and not (folder / SHARDS).is_file():
        rule = f"expected weights in {WEIGHTS}; pickled ones run code when they are read"
        raise BadBackbone(folder, rule)


def _labels(folder: Path) -> list[str]:
    """Return the labels of a configuration by their number."""
    try:
        content = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        by_place = {int(place): str(label) for place, label in content["id2label"].items()}
        labels = [by_place[place] for place in range(len(by_place))]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise BadBackbone(folder, f"expected {CONFIG} to have id2label") from None
    if not any(kind_of(label) is not None for label in labels):
        raise BadBackbone(folder, "expected id2label to name entities, such as B-PER and I-LOC")
    return labels


def _load(folder: Path) -> tuple[Any, Any]:  # Any: transformers has a class per family
    import torch
    from transformers import AutoModelForTokenClassification, AutoTokenizer

    try:
        model, info = AutoModelForTokenClassification.from_pretrained(
            folder,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            dtype=torch.float32,
            output_loading_info=True,
        )
        tokenizer = AutoTokenizer.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
    except Exception as error:  # whatever its parsers raise on a file of somebody else's
        rule = f"cannot be read by transformers ({type(error).__name__})"
        raise BadBackbone(folder, rule) from None
    if info["missing_keys"] or info["mismatched_keys"]:
        raise BadBackbone(folder, f"expected weights for all of {CONFIG}, its head included")
    if not tokenizer.is_fast or tokenizer.pad_token_id is None:
        raise BadBackbone(folder, "expected a fast tokeniser with a piece for padding")
    most = int(getattr(model.config, "max_position_embeddings", 512))
    # RoBERTa's table of positions starts after the piece for padding.
    most -= 2 if "roberta" in str(model.config.model_type) else 0
    tokenizer.model_max_length = min(most, int(tokenizer.model_max_length))
    model.eval()
    return model, tokenizer
