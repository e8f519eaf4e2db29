"""A classifier as it is published: layers of weights, and how a record becomes their input.

The file needs nothing but numpy to be evaluated: dense layers with ReLU between them,
on features that follow from the schema in the file's own metadata. A linear model is one layer.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.cards import CardDocument, TrustedKeys
from noisefloor.errors import BadParameter, BadSnapshot, BadTable
from noisefloor.publication.tensors import (
    check_release,
    read_metadata,
    read_tensors,
    write_tensors,
)
from noisefloor.tables import Categories, OneHot, schema_fields, schema_of

FORM = "dense"

Floats = NDArray[np.float32]
Layer = tuple[Floats, Floats]
"""Weights, a row for each input, and biases."""


@dataclass(frozen=True, slots=True, eq=False)
class PublishedModel:
    """Dense layers on the one-hot features of a public schema.

    Attributes:
        encoding: How a record becomes features.
        layers: From the features to a figure for each class.
        held_out: How many held-out records are predicted right and wrong, with noise that was
            paid for, where an accuracy was.
    """

    encoding: OneHot
    layers: tuple[Layer, ...]
    held_out: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if not self.layers:
            raise BadParameter("layers", "<none>", "at least one")
        inner = [len(biases) for _, biases in self.layers[:-1]]
        sizes = [self.encoding.width, *inner, self.encoding.classes]
        for (weights, biases), (before, after) in zip(self.layers, pairwise(sizes), strict=True):
            if weights.shape != (before, after) or biases.shape != (after,):
                raise BadParameter("layers", weights.shape, f"({before}, {after}) and its biases")
            if not (np.isfinite(weights).all() and np.isfinite(biases).all()):
                raise BadParameter("layers", "<weights>", "finite numbers")

    @property
    def parameters(self) -> int:
        """How many numbers are published."""
        return sum(weights.size + biases.size for weights, biases in self.layers)

    def logits(self, features: Floats) -> Floats:
        """Return a figure for each class: the larger, the likelier."""
        return dense_logits(self.layers, features)

    def predict_classes(self, features: Floats) -> NDArray[np.int64]:
        """Return the predicted class of each row of features."""
        return np.asarray(self.logits(features).argmax(axis=1))

    def predict(self, table: Mapping[str, Sequence[Any]]) -> list[str | int | float]:
        """Return the prediction for each row: a category of the label, or the lower edge of a bin.

        Args:
            table: The values of each feature column, by its name.

        Raises:
            BadTable: A column is missing, or a value lies outside of the schema.
        """
        label = self.encoding.schema.column(self.encoding.label)
        names = label.values if isinstance(label, Categories) else label.edges[:-1]
        return [names[place] for place in self.predict_classes(self.encoding.features_of(table))]

    def written(self) -> bytes:
        """Return the file that is published."""
        tensors: dict[str, NDArray[Any]] = {}
        for number, (weights, biases) in enumerate(self.layers):
            tensors |= {f"weights.{number}": weights, f"biases.{number}": biases}
        about: dict[str, Any] = {  # Any: JSON
            "form": FORM,
            "label": self.encoding.label,
            "schema": schema_fields(self.encoding.schema),
        }
        if self.held_out is not None:
            about["held_out"] = list(self.held_out)
        # Not sorted: the order of the columns is that of the features.
        return write_tensors(tensors, {"noisefloor": json.dumps(about)})

    @classmethod
    def read(cls, content: bytes) -> "PublishedModel":
        """Read a published file, or raise BadSnapshot."""
        tensors, about = read_tensors(content), _about(read_metadata(content))
        try:
            encoding = OneHot(schema_of(about["schema"]), str(about["label"]))
            count = len(tensors) // 2
            layers = [(tensors[f"weights.{i}"], tensors[f"biases.{i}"]) for i in range(count)]
            return cls(encoding, tuple(layers), _held_out(about.get("held_out")))
        except (BadParameter, BadTable, KeyError, TypeError, ValueError):
            raise BadSnapshot("Artefact: holds no model of dense layers.") from None


def _held_out(payload: Any) -> tuple[int, int] | None:  # Any: JSON
    if payload is None:
        return None
    right, wrong = payload
    if type(right) is not int or type(wrong) is not int:
        raise TypeError
    return right, wrong


def load_model(
    content: bytes, card: CardDocument, keys: TrustedKeys = (), *, unsigned: bool = False
) -> PublishedModel:
    """Return a published model, once its publisher signed for it.

    Args:
        content: As it was fetched.
        card: Its card, as it was fetched: bytes, or what they are as JSON.
        keys: Of the publishers that are trusted, or the file that holds them.
        unsigned: Whether to insist on a card whose signature is not checked.

    Raises:
        BadCard: The card is unsigned, of another key, changed, of a newer format or damaged.
        BadSnapshot: The file was changed, or is another one, or holds no model.
    """
    check_release(content, card, keys, unsigned=unsigned)
    return PublishedModel.read(content)


def dense_logits(layers: Sequence[Layer], features: Floats) -> Floats:
    """Run features through dense layers with ReLU between them."""
    for number, (weights, biases) in enumerate(layers):
        features = features @ weights + biases
        if number < len(layers) - 1:
            np.maximum(features, 0, out=features)
    return features


def _about(metadata: Mapping[str, str]) -> dict[str, Any]:  # Any: JSON
    try:
        about = json.loads(metadata.get("noisefloor", ""))
        if about["form"] == FORM:
            return dict(about)
    except (ValueError, KeyError, TypeError):
        pass
    raise BadSnapshot("Artefact: is no model; its metadata say something else.")


@dataclass(frozen=True, slots=True)
class ClassificationScores:
    """What a model reached on examples.

    Attributes:
        accuracy: Share of examples whose class was predicted right.
        macro_f1: Mean over the classes of the harmonic mean of precision and recall; that of a
            class that was never predicted is 0.
        n: Examples.
    """

    accuracy: float
    macro_f1: float
    n: int


def classification_scores(
    predicted: NDArray[np.integer], labels: NDArray[np.integer], classes: int
) -> ClassificationScores:
    """Compare predicted with true classes."""
    if np.shape(predicted) != np.shape(labels) or not len(labels):
        raise BadParameter("predicted", np.shape(predicted), "one for each label, at least one")
    pairs = np.bincount(labels * classes + predicted, minlength=classes**2).reshape(
        classes, classes
    )
    hits, sides = np.diag(pairs), pairs.sum(axis=0) + pairs.sum(axis=1)
    f1 = np.divide(2.0 * hits, sides, out=np.zeros(classes), where=sides > 0)
    return ClassificationScores(float(hits.sum() / len(labels)), float(f1.mean()), len(labels))
