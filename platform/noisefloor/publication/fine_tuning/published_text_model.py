"""A text classifier as it is published: what was trained, and nothing of the backbone.

The file is safetensors. Layers count from 1, the first above the embeddings; D is the width of the
features, C the number of classes:

    head.weight, head.bias                 [C, D] and [C]; public scales of features are folded in
    layers.6.output.dense.weight, ...      parameters of a layer that replace those of the backbone
    embeddings.word_embeddings.weight, ... likewise
    adapters.6.output.dense.left, .right   [m, k] and [k, n]: the layer's weight plus left @ right

Its metadata have the schema (text columns with their longest lengths, label and names of classes),
the layers whose means are the features, and the hashes of backbone and tokeniser. So a file that
fits no other backbone says so.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.errors import BadParameter, BadSnapshot, BadTable
from noisefloor.publication.tensors import (
    MOST_RELEASE_BYTES,
    read_metadata,
    read_tensors,
    write_tensors,
)
from noisefloor.tables import TextSchema, text_schema_fields, text_schema_of

FORM = "text-classifier"
HEAD_WEIGHT, HEAD_BIAS = "head.weight", "head.bias"
LAYERS, EMBEDDINGS, ADAPTERS = "layers.", "embeddings.", "adapters."
LEFT, RIGHT = ".left", ".right"

Floats = NDArray[np.float32]
Shapes = Mapping[str, tuple[int, ...]]

_HEADER_BYTES = 1 << 16
_NAME_BYTES = 256
"""More than the header of a file takes for its metadata, and for each tensor."""


@dataclass(frozen=True, slots=True, eq=False)
class TextModelFile:
    """What is published of a text classifier.

    Attributes:
        schema: What a record is, its texts and its label.
        pooled: Layers whose means over pieces are the features, counted from 1.
        backbone_sha256: Of the backbone that it was trained on.
        tokeniser_sha256: Of its tokeniser.
        tensors: What was trained, by name.
    """

    schema: TextSchema
    pooled: tuple[int, ...]
    backbone_sha256: str
    tokeniser_sha256: str
    tensors: Mapping[str, Floats]

    def __post_init__(self) -> None:
        weight, bias = self.tensors.get(HEAD_WEIGHT), self.tensors.get(HEAD_BIAS)
        classes = self.schema.classes.size
        if weight is None or bias is None:
            raise BadParameter("tensors", sorted(self.tensors), f"{HEAD_WEIGHT} and {HEAD_BIAS}")
        if weight.ndim != 2 or len(weight) != classes or bias.shape != (classes,):
            raise BadParameter(HEAD_WEIGHT, weight.shape, f"a row for each of {classes} classes")
        if not self.pooled or weight.shape[1] % len(self.pooled):
            raise BadParameter(HEAD_WEIGHT, weight.shape, f"whole widths of layers {self.pooled}")
        for name, tensor in self.tensors.items():
            _check_tensor(name, tensor)

    @property
    def parameters(self) -> int:
        """How many numbers are published."""
        return sum(tensor.size for tensor in self.tensors.values())

    @property
    def trained(self) -> tuple[str, ...]:
        """What was trained, in words: ``head``, ``layer 6``, ``adapters of layer 6``."""
        found = ["head"]
        for name in sorted(self.tensors):  # a file is read in any order, and a card has to agree
            kind, _, rest = name.partition(".")
            layer = rest.partition(".")[0]
            words = {"layers": f"layer {layer}", "adapters": f"adapters of layer {layer}"}
            found.append(words.get(kind, kind))
        return tuple(dict.fromkeys(found))

    def written(self) -> bytes:
        """Return the file that is published."""
        about = {
            "form": FORM,
            "schema": text_schema_fields(self.schema),
            "pooling": {"kind": "mean", "layers": list(self.pooled)},
            "backbone_sha256": self.backbone_sha256,
            "tokeniser_sha256": self.tokeniser_sha256,
        }
        return write_tensors(self.tensors, {"noisefloor": json.dumps(about)})

    @classmethod
    def read(cls, content: bytes) -> "TextModelFile":
        """Read a published file, or raise BadSnapshot."""
        tensors, metadata = read_tensors(content), read_metadata(content)
        try:
            about = json.loads(metadata["noisefloor"])
            if about["form"] != FORM or about["pooling"]["kind"] != "mean":
                raise KeyError
            return cls(
                schema=text_schema_of(about["schema"]),
                pooled=tuple(int(one) for one in about["pooling"]["layers"]),
                backbone_sha256=str(about["backbone_sha256"]),
                tokeniser_sha256=str(about["tokeniser_sha256"]),
                tensors=tensors,
            )
        except (BadParameter, BadTable, KeyError, TypeError, ValueError, AttributeError):
            raise BadSnapshot("Artefact: holds no text classifier.") from None


def _check_tensor(name: str, tensor: NDArray[Any]) -> None:
    is_known = name in (HEAD_WEIGHT, HEAD_BIAS) or name.startswith((LAYERS, EMBEDDINGS, ADAPTERS))
    if not is_known:
        raise BadParameter("tensors", name, "of the head, of layers, embeddings or adapters")
    if tensor.dtype != np.float32 or not np.isfinite(tensor).all():
        raise BadParameter(name, "<numbers>", "finite single floats")


def is_text_model(content: bytes) -> bool:
    """Say whether a published file is a text classifier, by its metadata alone."""
    try:
        about = json.loads(read_metadata(content).get("noisefloor", ""))
        return isinstance(about, dict) and about.get("form") == FORM
    except (BadSnapshot, ValueError):
        return False


def release_bytes(shapes: Shapes) -> int:
    """Return the most that a file with tensors of these shapes takes."""
    numbers = sum(int(np.prod(shape)) for shape in shapes.values())
    return 4 * numbers + _HEADER_BYTES + _NAME_BYTES * len(shapes)


def check_release_bytes(shapes: Shapes) -> int:
    """Return the size of a release from its plan, or refuse it before anything is charged.

    Raises:
        BadParameter: It is larger than a release may be.
    """
    size = release_bytes(shapes)
    if size > MOST_RELEASE_BYTES:
        rule = (
            f"so few that a release takes at most {MOST_RELEASE_BYTES >> 20} MiB; these take "
            f"{size >> 20}: train fewer layers, or adapters"
        )
        raise BadParameter("trained parameters", f"<{len(shapes)} tensors>", rule)
    return size
