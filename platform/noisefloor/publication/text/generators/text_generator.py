"""A generator as it is published: sizes, vocabulary, and weights of one or several models.

The file is safetensors. Tensors are named by the place of the model and the parameter
(``0.decoder.weight_ih_l0``); ``vocabulary`` has the pieces of the tokeniser and ``shares`` their
shares of the corpus that they were chosen from. Its metadata have the shape, the names of labels,
the tokeniser's hash and whether the vocabulary is public.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.errors import BadParameter, BadSnapshot
from noisefloor.publication.tensors import (
    MOST_RELEASE_BYTES,
    read_metadata,
    read_tensors,
    write_tensors,
)
from noisefloor.publication.text.generators.shapes import GeneratorShape
from noisefloor.publication.text.generators.vocabulary import PieceVocabulary

FORM = "text-generator"
_PIECES, _SHARES = "vocabulary", "shares"

Weights = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True, slots=True, eq=False)
class TextGenerator:
    """One model for all labels, or one for each.

    Attributes:
        shape: Of each model.
        vocabulary: What they can write.
        labels: Their names, in the order of the documents' labels.
        tokeniser_sha256: Of the tokeniser whose pieces these are.
        weights: Of each model, by parameter; a tied matrix is there once.
    """

    shape: GeneratorShape
    vocabulary: PieceVocabulary
    labels: tuple[str | int, ...]
    tokeniser_sha256: str
    weights: tuple[Weights, ...]

    def __post_init__(self) -> None:
        if self.shape.vocabulary != self.vocabulary.size:
            raise BadParameter("vocabulary", self.vocabulary.size, f"== {self.shape.vocabulary}")
        if self.shape.classes not in (0, len(self.labels)):
            raise BadParameter("labels", len(self.labels), f"== {self.shape.classes}")
        if len(self.weights) != (1 if self.shape.classes else len(self.labels)):
            raise BadParameter("weights", f"<{len(self.weights)} models>", "one, or one a label")
        for one in self.weights:
            for name, tensor in one.items():
                if tensor.dtype != np.float32 or not np.isfinite(tensor).all():
                    raise BadParameter(name, "<numbers>", "finite single floats")

    @property
    def is_conditional(self) -> bool:
        """Whether one model is for all labels."""
        return self.shape.classes > 0

    @property
    def parameters(self) -> int:
        """How many numbers are published."""
        return sum(tensor.size for one in self.weights for tensor in one.values())

    def written(self) -> bytes:
        """Return the file that is published."""
        about = {
            "form": FORM,
            "shape": self.shape.as_json(),
            "labels": list(self.labels),
            "tokeniser_sha256": self.tokeniser_sha256,
            "has_public_vocabulary": self.vocabulary.is_public,
        }
        tensors: dict[str, NDArray[Any]] = {  # Any: whole numbers and floats
            _PIECES: self.vocabulary.pieces,
            _SHARES: self.vocabulary.shares,
        }
        for place, one in enumerate(self.weights):
            tensors |= {f"{place}.{name}": tensor for name, tensor in one.items()}
        return write_tensors(tensors, {"noisefloor": json.dumps(about)})

    @classmethod
    def read(cls, content: bytes) -> "TextGenerator":
        """Read a published file, or raise BadSnapshot."""
        tensors, metadata = read_tensors(content), read_metadata(content)
        try:
            about = json.loads(metadata["noisefloor"])
            if about["form"] != FORM:
                raise KeyError
            shape = GeneratorShape.from_json(about["shape"])
            labels = tuple(about["labels"])
            pieces, shares = tensors.pop(_PIECES), tensors.pop(_SHARES)
            if pieces.dtype != np.int32 or pieces.ndim != 1:
                raise KeyError
            weights: list[dict[str, NDArray[np.float32]]] = [
                {} for _ in range(1 if shape.classes else len(labels))
            ]
            for name in sorted(tensors):
                place, _, parameter = name.partition(".")
                weights[int(place)][parameter] = tensors[name]
            vocabulary = PieceVocabulary(pieces, shares, about["has_public_vocabulary"] is True)
            sha256 = str(about["tokeniser_sha256"])
            return cls(shape, vocabulary, labels, sha256, tuple(weights))
        except (BadParameter, KeyError, IndexError, TypeError, ValueError, AttributeError):
            raise BadSnapshot("Artefact: holds no text generator.") from None


def check_generator_bytes(shape: GeneratorShape, models: int) -> int:
    """Return about how many numbers' bytes a release takes, or refuse one that is too large.

    Raises:
        BadParameter: It is larger than a release may be.
    """
    width, hidden, layers = shape.embedding, shape.hidden, shape.layers
    last = width if shape.is_tied or shape.kind == "transformer" else hidden
    tables = shape.vocabulary * (width + (0 if shape.is_tied else last) + 1)
    if shape.kind == "transformer":
        inner = layers * (4 * width * width + 2 * width * hidden) + shape.positions * width
    else:
        one = 4 * hidden * (width + hidden) + (layers - 1) * 8 * hidden * hidden
        inner = one * (2 if shape.kind == "encoder-decoder" else 1)
    size = 4 * models * (tables + inner)
    if size > MOST_RELEASE_BYTES:
        rule = f"so small that a release takes at most {MOST_RELEASE_BYTES >> 20} MiB"
        raise BadParameter("vocabulary", shape.vocabulary, rule)
    return size
